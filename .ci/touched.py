"""Print the tests of what changed since a commit: those next to a file, and those that import it.

python .ci/touched.py {py,js} [COMMIT]    # HEAD unless it is named; untracked files count
"""

import re
import subprocess
import sys
from pathlib import Path

# Slow tests, and those that start a browser, are for `make test-browser` and `make test-all`.
APART = ("tests/browser/", "tests/slow/", "tests/benchmarks/", "tests/load/")
ROOMS = ("app", "model", "lab", "static", "tests")
is_test = re.compile(r"test_\w+\.py|\w+\.test\.js").fullmatch


def imports_of(path: Path) -> str:
    """Return an expression that finds imports of a file."""
    if path.suffix == ".js":
        return f"/{path.name}'"
    room, *inner = path.with_suffix("").parts
    module = {"app": ["headlight"], "tests": ["tests"]}.get(room, ["headlight", room]) + inner
    *packages, name = module[:-1] if module[-1] == "__init__" else module
    package = re.escape(".".join(packages))
    return rf"\b{package}\.{name}\b(?!\.)|from {package} import .*\b{name}\b"


def touched(ending: str, commit: str) -> set[str]:
    """Return the paths of the tests of one language."""
    ask = (["git", "diff", "--name-only", commit], ["git", "ls-files", "-o", "--exclude-standard"])
    listed = [subprocess.check_output(each, text=True).split() for each in ask]
    changed = {Path(line) for lines in listed for line in lines}
    known = {each for each in Path("tests").rglob(f"*.{ending}") if is_test(each.name)}
    tests = changed & known
    for path in changed - known:
        if path.suffix != f".{ending}" or path.parts[0] not in ROOMS:
            continue
        found = {each for each in known if re.search(imports_of(path), each.read_text())}
        place = Path("tests", *path.parts[1 if path.parts[0] in ("static", "tests") else 0 : -1])
        named = {place / f"test_{path.name}", place / f"{path.stem}.test.js"} & known
        tests |= found | named or {each for each in known if each.parent == place}
    return {
        str(test) for test in tests if not str(test).startswith((*APART, "tests/js/node_modules"))
    }


if __name__ == "__main__":
    sys.stdout.write(" ".join(sorted(touched(sys.argv[1], *sys.argv[2:] or ["HEAD"]))))
