"""The modules of `static/js` joined into one script, without a build step.

Each module becomes a function in a registry that all scripts of a page share, so what is loaded
later finds the instances that are there. Bundlers were considered: each needs Node or a program of
its own where the server runs. The tree allows less: Prettier sets every import and export at the
start of a line, nothing that is exported is assigned again, and no module imports itself on a way
round.
"""

import posixpath
import re
from collections.abc import Iterable
from functools import cache

from headlight.settings import HOME

SCRIPTS = HOME / "static" / "js"

AWAITED = re.compile(r"\bawait import\('(\.[^']+)'\)")
DYNAMIC = re.compile(r"\bimport\('(\.[^']+)'\)")
"""Imports that run while a page is used; group 1 is the module's address."""

# Prettier puts each of these comments on its own line; they are a quarter of the code.
_COMMENT = re.compile(r"^ */\*\*(?:(?!\*/).)*\*/\n", re.MULTILINE | re.DOTALL)
_IMPORT = re.compile(r"^import (?:\* as (\w+)|(\{[^}]*\})) from '(\.[^']+)';", re.MULTILINE)
_DECLARED = re.compile(r"^export (?=(?:async )?(?:function\*?|class|const) (\w+))", re.MULTILINE)
_NAMED = re.compile(r"^export \{([\w, \n]*)\};\n", re.MULTILINE)
_TOP_AWAIT = re.compile(r"^(?:const .* = )?await ", re.MULTILINE)

REGISTRY = """const { parts: $parts, need: $need, load: $load } = (self.headlightCode ??= (() => {
const parts = {}, made = {};
const need = (name) => (made[name] ??= parts[name]());
const load = async (path) => {
const name = path.replace('./', '');
if (!(name in parts)) await import('./' + name);
return need(name);
};
return { parts, need, load };
})());
"""


def joined(
    entries: Iterable[str], follow: re.Pattern[str] | None = None, without: Iterable[str] = ()
) -> str:
    """Return a script that registers these modules of `static/js`, and all that they import.

    Args:
        entries: their paths in `static/js`.
        follow: which dynamic imports are joined as well; none: they are loaded when asked for.
        without: modules that another script of the page registers.
    """
    names = modules_of(entries, follow) - set(without)
    return REGISTRY + "".join(map(_function, sorted(names)))


def modules_of(entries: Iterable[str], follow: re.Pattern[str] | None = None) -> set[str]:
    """Return the paths of these modules and of all that they import."""
    names: set[str] = set()
    open_names = list(entries)
    while open_names:
        name = open_names.pop()
        if name not in names:
            names.add(name)
            text = _text(name)
            addresses = [address for *_, address in _IMPORT.findall(text)]
            addresses += follow.findall(text) if follow else []
            open_names += [_resolved(address, name) for address in addresses]
    return names


@cache
def _text(name: str) -> str:
    return _COMMENT.sub("", (SCRIPTS / name).read_text(encoding="utf-8"))


def _resolved(address: str, importer: str) -> str:
    """Resolve a relative import: `../words/text.js` in `plot/chart.js` is `words/text.js`."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(importer), address))


@cache
def _function(name: str) -> str:
    """Return the statement that registers a module; called, its function returns the exports."""
    text = _text(name)
    exports = _DECLARED.findall(text) + [
        e.strip() for e in ",".join(_NAMED.findall(text)).split(",")
    ]

    def taken(match: re.Match[str]) -> str:
        variables = match[1] or match[2].replace(" as ", ": ")
        return f"const {variables} = $need('{_resolved(match[3], name)}');"

    text = _NAMED.sub("", _DECLARED.sub("", _IMPORT.sub(taken, text)))
    text = DYNAMIC.sub(lambda match: f"$load('{_resolved(match[1], name)}')", text)
    text = text.replace(" import(module)", " $load(module)")
    is_async = "async " if _TOP_AWAIT.search(text) else ""
    returned = ", ".join(filter(None, exports))
    return f"$parts['{name}'] ??= ({is_async}() => {{\n{text}return {{ {returned} }};\n}});\n"
