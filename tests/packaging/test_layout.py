"""The shape of the tree: what lies at its top, and which way its imports point."""

import ast
import re
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

TOP_LEVEL = {
    ".ci",
    ".dockerignore",
    ".gitignore",
    "CHANGELOG.md",
    "Dockerfile",
    "LICENSE",
    "Makefile",
    "README.md",
    "app",
    "compose.yaml",
    "constraints.txt",
    "model",
    "pyproject.toml",
    "static",
    "templates",
    "tests",
}

# Every module of a rank may import those of the ranks before it.
MODEL_LEAVES = {
    "headlight.model.colour",
    "headlight.model.config",
    "headlight.model.plotting",
    "headlight.model.example",
    "headlight.model.labels",
    "headlight.model.sites",
    "headlight.model.static_svg",
    "headlight.model.token_axes",
    "headlight.model.trace",
}
MODEL_PARTS = {
    "headlight.model.attention",
    "headlight.model.moe",
    "headlight.model.feed_forward",
    "headlight.model.hooks",
    "headlight.model.norms",
    "headlight.model.positions",
}
JS_RANKS = ["data", "state", "api", "plot", "ui", "views"]


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = parts[1:] if parts[0] == "app" else parts  # app/ is the package itself
    return ".".join(["headlight", *(parts[:-1] if parts[-1:] == ("__init__",) else parts)])


def modules(package: str) -> dict[str, Path]:
    return {module_name(path): path for path in sorted((ROOT / package).rglob("*.py"))}


MODULES = modules("app") | modules("model")


def imported_names(path: Path) -> set[str]:
    """Every dotted name that a file imports, `from a import b` counting as `a.b`."""
    names: set[str] = set()
    package = module_name(path).split(".")
    if path.name != "__init__.py":
        package.pop()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            prefix = ".".join([*base, *([node.module] if node.module else [])])
            names |= {f"{prefix}.{alias.name}" for alias in node.names}
    return names


def imported_modules(path: Path) -> set[str]:
    """The modules of this project that a file imports."""
    names = imported_names(path)
    return {name if name in MODULES else name.rpartition(".")[0] for name in names} & set(MODULES)


def test_the_top_level_holds_only_what_it_is_meant_to(committed: list[str]) -> None:
    assert {name.split("/")[0] for name in committed} <= TOP_LEVEL


@pytest.mark.parametrize("module", modules("model"))
def test_model_never_imports_app(module: str) -> None:
    of_app = set(modules("app"))
    assert not imported_modules(MODULES[module]) & of_app


@pytest.mark.parametrize("module", sorted(MODEL_LEAVES))
def test_leaves_of_model_import_nothing_of_the_project_but_leaves(module: str) -> None:
    assert imported_modules(MODULES[module]) <= MODEL_LEAVES


@pytest.mark.parametrize("module", sorted(MODEL_PARTS))
def test_parts_of_model_import_only_leaves_and_parts(module: str) -> None:
    assert imported_modules(MODULES[module]) <= MODEL_LEAVES | MODEL_PARTS


def test_imports_form_no_cycle() -> None:
    graph = {name: imported_modules(path) - {name} for name, path in MODULES.items()}
    TopologicalSorter(graph).prepare()


def test_javascript_imports_point_from_views_to_components_to_core() -> None:
    scripts = sorted((ROOT / "static" / "js").rglob("*.js"))
    against_the_grain = [
        f"{path.relative_to(ROOT)} imports {target.relative_to(ROOT)}"
        for path in scripts
        for target in js_imports(path)
        if js_rank(target) > js_rank(path)
    ]
    assert scripts
    assert against_the_grain == []


def js_imports(path: Path) -> list[Path]:
    """The scripts that a script imports by a relative address; types in comments do not count."""
    code = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
    addresses = re.findall(r"""(?:from|import)\s*\(?["'](\.[^"']+)["']""", code)
    return [(path.parent / address).resolve() for address in addresses]


def js_rank(path: Path) -> int:
    """The folder's place in JS_RANKS; main.js and offline.js may import from all of them."""
    folder = path.relative_to(ROOT / "static" / "js").parts[0]
    return JS_RANKS.index(folder) if folder in JS_RANKS else len(JS_RANKS)
