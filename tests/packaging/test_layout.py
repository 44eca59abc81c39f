"""The shape of the tree: its top level, the direction of imports, and bounds on its size."""

import ast
import re
from graphlib import TopologicalSorter

import pytest

from tests.imports import (
    MODULES,
    OF_APP,
    OF_MODEL,
    ROOT,
    imported_modules,
    imported_names,
    js_imports,
    modules,
    needed_modules,
    tree_of,
)

TOP_LEVEL = {
    ".ci",
    ".dockerignore",
    ".github",  # the workflow of a hosted CI lies nowhere else
    ".gitignore",
    "CHANGELOG.md",
    "CITATION.cff",
    "CONTRIBUTING.md",
    "Dockerfile",
    "LICENSE",
    "MANIFEST.in",
    "Makefile",
    "README.md",
    "SECURITY.md",
    "app",
    "cluster.yaml",
    "compose.yaml",
    "constraints.txt",
    "docs",
    "lab",
    "model",
    "pyproject.toml",
    "setup.py",
    "static",
    "templates",
    "tests",
}

# A leaf of model/ imports only leaves, a part only leaves and parts.
MODEL_LEAVES = {
    "headlight.model.attention.terms",
    "headlight.model.cancellation",
    "headlight.model.config",
    "headlight.model.distributions",
    "headlight.model.interventions.intervention",
    "headlight.model.notebook",
    "headlight.model.plotting",
    "headlight.model.sites",
    "headlight.model.trace",
}
MODEL_PARTS = {
    "headlight.model.attention.kernels",
    "headlight.model.attention.layer",
    "headlight.model.attention.points",
    "headlight.model.attention.scores",
    "headlight.model.moe",
    "headlight.model.feed_forward",
    "headlight.model.hooks",
    "headlight.model.norms",
    "headlight.model.positions",
    "headlight.model.attention.blockwise",
    "headlight.model.attention.observer",
}
# A script imports from its own folder and from those before it.
JS_FOLDERS = ["words", "trace", "rules", "state", "api", "plot", "ui", "views"]

# Lines of code a folder may have. A commit that raises a number says in its body why.
MOST_LINES = {
    "app": 25_290,
    "lab": 9_100,
    "model": 37_560,
    "model/analysis": 4_580,
    "model/attention": 1_780,
    "model/foreign": 9_010,
    "static/js": 46_240,
    "static/js/views": 18_100,
}
MOST_OWN_LINES = 60
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# The product runs without the lab: it imports nothing of it.
LAB = "headlight.lab"
MOST_AWKWARD_DOCSTRINGS = 0
AWKWARD = re.compile(r"(What|Who|Whoever|Nobody|Told|Where)\b")


# The docstring of a room says what its files hold; of the experiments their registry does.
ROOMS = [
    path.parent
    for path in sorted((ROOT / "model").glob("*/__init__.py"))
    if path.parent.name != "experiments"
]


def test_the_top_level_holds_only_what_it_is_meant_to(committed):
    assert {name.split("/")[0] for name in committed} <= TOP_LEVEL


def test_imports_of_model_point_to_its_leaves_and_never_to_app():
    assert set(OF_MODEL) >= MODEL_LEAVES | MODEL_PARTS, "a module was renamed or merged"
    wrong = {}
    for name in OF_MODEL:
        allowed = MODEL_LEAVES if name in MODEL_LEAVES else MODEL_LEAVES | MODEL_PARTS
        if name not in MODEL_LEAVES | MODEL_PARTS:
            allowed = OF_MODEL.keys()
        wrong[name] = needed_modules(name) - allowed
    assert {name: imports for name, imports in wrong.items() if imports} == {}


def test_imports_form_no_cycle():
    TopologicalSorter({name: imported_modules(name) - {name} for name in MODULES}).prepare()


def room_of(module):
    """Return the room of a module of the application, `headlight.ROOM…`."""
    return module.split(".")[1] if "." in module else module


def test_a_request_is_described_below_what_serves_it():
    imports = {
        room: {
            room_of(each)
            for name in OF_APP
            if room_of(name) == room
            for each in imported_modules(name)
        }
        for room in map(room_of, OF_APP)
    }
    assert not imports["forms"] & imports.keys() - {"forms"}
    assert imports["analyses"] & imports.keys() <= {"analyses", "forms"}
    assert imports["schemas"] & imports.keys() <= {"schemas", "analyses", "forms"}
    assert {room for room in imports if "routes" in imports[room]} == {"routes", "main"}


def test_only_plotting_knows_plotly_in_model():
    knowing = {
        name
        for name in OF_MODEL
        if any(imported.split(".")[0] == "plotly" for imported in imported_names(name))
    }
    assert knowing <= {"headlight.model.plotting"}


def test_javascript_imports_point_from_views_to_data():
    scripts = sorted((ROOT / "static" / "js").rglob("*.js"))
    against_the_grain = [
        f"{path.relative_to(ROOT)} imports {target.relative_to(ROOT)}"
        for path in scripts
        for target in js_imports(path)
        if js_rank(target) > js_rank(path)
    ]
    assert scripts
    assert against_the_grain == []


def js_rank(path):
    """Return the place of a script's folder; scripts next to the folders may import them all."""
    folder = path.relative_to(ROOT / "static" / "js").parts[0]
    return JS_FOLDERS.index(folder) if folder in JS_FOLDERS else len(JS_FOLDERS)


def test_no_folder_outgrows_its_bound():
    lines = {
        folder: sum(
            len(path.read_text().splitlines())
            for kind in ("*.py", "*.js")
            for path in (ROOT / folder).rglob(kind)
        )
        for folder in MOST_LINES
    }
    assert {name: n for name, n in lines.items() if n > MOST_LINES[name]} == {}


def own_lines(function, source):
    """Count the lines of code of a body: without docstring, comments, and functions in it."""
    first, *others = function.body
    if ast.get_docstring(function) is not None:
        first = others[0] if others else first
    inside = {
        line
        for each in ast.walk(function)
        if isinstance(each, FUNCTIONS) and each is not function
        for line in range(each.lineno, each.end_lineno + 1)
    }
    lines = {*range(first.lineno, function.end_lineno + 1)} - inside
    return sum(bool(text := source[line - 1].strip()) and text[0] != "#" for line in lines)


def test_no_function_has_more_than_sixty_lines_of_its_own():
    """`own-lines` of `tests/js/eslint.config.js` is this test for the page."""
    sizes = {
        f"{name}.{node.name}": own_lines(node, path.read_text().splitlines())
        for name, path in MODULES.items()
        for node in ast.walk(tree_of(path))
        if isinstance(node, FUNCTIONS)
    }
    assert {name: lines for name, lines in sizes.items() if lines > MOST_OWN_LINES} == {}


def test_the_product_imports_nothing_of_the_lab():
    wrong = {
        name: {module for module in needed_modules(name) if module.startswith(LAB)}
        for name in OF_APP | OF_MODEL
    }
    assert {name: imports for name, imports in wrong.items() if imports} == {}


@pytest.mark.parametrize("folder", ROOMS, ids=lambda folder: folder.name)
def test_the_map_of_a_room_names_every_file(folder):
    listed = re.findall(r"^    (\w+) {2,}\S", (folder / "__init__.py").read_text(), re.MULTILINE)
    assert sorted([*listed, "__init__"]) == sorted(path.stem for path in folder.glob("*.py"))


def test_docstrings_begin_with_their_subject():
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    awkward = [
        f"{name}: {docstring.splitlines()[0]}"
        for name, path in (MODULES | modules("tests")).items()
        for node in ast.walk(tree_of(path))
        if isinstance(node, documented)
        and AWKWARD.match(docstring := ast.get_docstring(node) or "")
    ]
    assert len(awkward) <= MOST_AWKWARD_DOCSTRINGS, "\n".join(awkward)


def test_comments_of_scripts_begin_with_their_subject():
    scripts = sorted((ROOT / "static" / "js").rglob("*.js"))
    openings = ((path, re.findall(r"/\*\*\s*(?:\*\s*)?(.*)", path.read_text())) for path in scripts)
    awkward = [
        f"{path}: {line}" for path, lines in openings for line in lines if AWKWARD.match(line)
    ]
    assert awkward == []
