"""The imports of the tree, read without running it: of Python by ast, of JavaScript by address."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
SCRIPTS = ROOT / "static" / "js"
DOTTED = re.compile(r"headlight(\.\w+)+(:\w+)?")


def module_name(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = parts[1:] if parts[0] == "app" else parts  # app/ is the package itself
    return ".".join(["headlight", *(parts[:-1] if parts[-1:] == ("__init__",) else parts)])


def modules(folder):
    return {module_name(path): path for path in sorted((ROOT / folder).rglob("*.py"))}


OF_APP, OF_MODEL, OF_LAB = modules("app"), modules("model"), modules("lab")
MODULES = OF_APP | OF_MODEL | OF_LAB


@cache
def tree_of(path):
    """Parse a file when the first test looks at it: collecting the tests parses nothing."""
    return ast.parse(path.read_text())


@cache
def imported_names(module):
    """Return every dotted name that a module imports, `from a import b` counting as `a.b`."""
    names = set()
    package = module.split(".")
    if MODULES[module].name != "__init__.py":
        package.pop()
    for node in ast.walk(tree_of(MODULES[module])):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            prefix = ".".join([*base, *([node.module] if node.module else [])])
            names |= {f"{prefix}.{alias.name}" for alias in node.names}
    return names


def imported_modules(module):
    """Return the modules of this project that a module imports."""
    names = imported_names(module)
    return {name if name in MODULES else name.rpartition(".")[0] for name in names} & set(MODULES)


@cache
def needed_modules(module):
    """Return the modules that a module imports, or names in a string, as `import_module` reads."""
    strings = (
        node.value
        for node in ast.walk(tree_of(MODULES[module]))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    named = {name.partition(":")[0] for name in strings if DOTTED.fullmatch(name)}
    return imported_modules(module) | (named & set(MODULES))


def js_imports(path):
    """Return the scripts that a script imports by a relative address; not types in comments."""
    code = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
    addresses = re.findall(r"""(?:from|import)\s*\(?["'](\.[^"']+)["']""", code)
    return [(path.parent / address).resolve() for address in addresses]
