"""The modules of a package in which each file is one of a kind: of analyses, edits or recipes.

Such a package keeps no list: a file in one of the folders of its ``__path__`` is found by its name.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from importlib import import_module
from importlib.machinery import PathFinder
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType


def module_names(path: Iterable[str]) -> list[str]:
    """Return the names of the modules in the folders of a package, sorted; none is imported."""
    return sorted({module.name for module in iter_modules(list(path))})


def import_all(package: str, path: Iterable[str]) -> list[ModuleType]:
    """Import the modules of a package, in the order of `module_names`.

    Raises:
        ImportError: one of them cannot be imported; the message names it.
    """
    modules = []
    for name in module_names(path):
        try:
            modules.append(import_module(f"{package}.{name}"))
        except Exception as error:
            raise ImportError(
                f"{package}.{name} cannot be imported: {error}", name=f"{package}.{name}"
            ) from error
    return modules


def summary(path: Iterable[str], name: str) -> str:
    """Return the first sentence of a module's docstring, without what precedes a colon.

    The module is not imported.

    Raises:
        ImportError: there is no such module, or it cannot be parsed; the message names it.
    """
    spec = PathFinder.find_spec(name, list(path))
    try:
        if spec is None or spec.origin is None:
            raise ValueError("there is no such module")
        docstring = ast.get_docstring(ast.parse(Path(spec.origin).read_bytes())) or ""
    except (SyntaxError, ValueError, OSError) as error:
        raise ImportError(f"{name} cannot be described: {error}", name=name) from error
    first = " ".join(docstring.partition("\n\n")[0].split())
    return re.sub(r"^[^:]*`\w+`: ", "", first)
