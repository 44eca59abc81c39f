"""Change the server's code in one place at a time, and see whether a test fails (`make mutants`).

A sample of mutants is drawn from the modules below, in proportion to their lines. Each is a new
process with one node of one syntax tree changed, which runs the tests that execute the changed
statement, those of the mirrored file first. A mutant that all of them pass has survived. Prose is
left as it is: docstrings, f-strings, and strings with a space in them. So are annotations and
decorators.

    python -m tests.mutants --size 200 --seed 1

mutmut 3.8 was tried: it needs the package laid out as in a wheel, and changes nothing outside
functions, where 280 of the 2,843 mutants are, such as those of the rate limiter's minute.

DeMillo, Lipton, Sayward (1978), Hints on test data selection, https://doi.org/10.1109/C-M.1978.218136
"""

import ast
import builtins
import json
import os
import random
import signal
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.machinery import SourceFileLoader
from itertools import accumulate, takewhile
from pathlib import Path
from types import CodeType
from typing import NoReturn

import pytest

ROOT = Path(__file__).parents[1]
MODULES = ("app/tracing/*.py", "app/serialization/*.py", "app/middleware/*.py", "model/tracing.py")
TESTS = (
    "tests/app/test_*.py",
    "tests/app/commands/test_trace.py",
    "tests/app/faults/test_*.py",
    "tests/app/middleware/test_*.py",
    "tests/app/routes/test_*.py",
    "tests/app/serialization/test_*.py",
    "tests/app/serving/test_*.py",
    "tests/app/tracing/test_*.py",
    "tests/model/test_batching.py",
    "tests/model/interventions/test_site_edit.py",
    "tests/model/test_tracing.py",
    "tests/model/analysis/test_*.py",
    "tests/model/foreign/test_tracing.py",
    "tests/packaging/test_openapi.py",
)
PRELOADED = ("fastapi.testclient", "hypothesis", "jaxtyping", "jinja2", "torch", "typer.testing")
OPTIONS = (
    *("--quiet", "-p", "no:cacheprovider", "-p", "no:schemathesis", "-p", "no:xdist"),
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),  # plugins are imported before the fork
)

MOST_SECONDS = 12.0
"""Of the tests of a group that a mutant meets, as long as they take without it."""

SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """A node of a file's tree, where it hangs, and what replaces it.

    `line` is that of the statement around it; 0: it runs when the module is imported.
    """

    path: Path
    tree: ast.Module
    line: int
    parent: ast.AST
    field: str
    index: int | None
    old: ast.AST
    new: ast.AST

    def __str__(self) -> str:
        place = f"{self.path.relative_to(ROOT)}:{getattr(self.old, 'lineno', self.line)}"
        texts = [" ".join(ast.unparse(node).split()) for node in (self.old, self.new)]
        same = takewhile(lambda pair: pair[0] == pair[1], zip(*texts, strict=False))
        begin = max(len(list(same)) - 30, 0)
        before, after = (text[begin : begin + 80] for text in texts)
        return f"{place}  {before}  →  {after}"

    def code(self) -> CodeType:
        """Compile the file with the change, which stays in the tree."""
        if self.index is None:
            setattr(self.parent, self.field, self.new)
        else:
            getattr(self.parent, self.field)[self.index] = self.new
        return compile(ast.fix_missing_locations(self.tree), str(self.path), "exec")


def replacements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield each changed form of a node."""
    match node:
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield ast.Constant(value + 1)
        case ast.Constant(value=str(value)) if value and " " not in value:
            yield ast.Constant(value + "X")
        case ast.Constant(value=bytes(value)) if value:
            yield ast.Constant(value + b"X")
        case ast.Compare(ops=[first, *others]):
            yield _with(node, ops=[SWAPPED[type(first)](), *others])
        case ast.BinOp() | ast.BoolOp() if type(node.op) in SWAPPED:
            yield _with(node, op=SWAPPED[type(node.op)]())
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield node.operand
        case ast.AugAssign():
            yield ast.Pass()
            if type(node.op) in SWAPPED:
                yield _with(node, op=SWAPPED[type(node.op)]())
        case ast.If() | ast.While() | ast.IfExp() if not isinstance(node.test, ast.Compare):
            yield _with(node, test=ast.UnaryOp(ast.Not(), node.test))
        case ast.comprehension(ifs=[first, *others]):
            yield _with(node, ifs=others)
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield ast.Return(ast.Constant(None))
        case ast.Expr() | ast.Raise():
            yield ast.Pass()
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield ast.Pass()
        case ast.Call():
            if len(node.args) > 1 and not isinstance(node.args[0], ast.Starred):
                first, second, *others = node.args
                yield _with(node, args=[second, first, *others])
            for index in range(len(node.keywords)):
                yield _with(node, keywords=node.keywords[:index] + node.keywords[index + 1 :])
        case ast.Break():
            yield ast.Continue()
        case ast.Continue():
            yield ast.Break()


def _with(node: ast.AST, **changed: object) -> ast.AST:
    changed_node = copy(node)
    for name, value in changed.items():
        setattr(changed_node, name, value)
    return changed_node


def mutants_of(path: Path) -> list[Mutant]:
    """List all mutants of a file."""
    tree = ast.parse(path.read_text())
    return [
        Mutant(path, tree, line, parent, field, index, old, ast.copy_location(new, old))
        for parent, field, index, old, line in _places(tree, line=0, is_inside=False)
        for new in replacements(old)
    ]


def _places(
    parent: ast.AST, line: int, *, is_inside: bool
) -> Iterator[tuple[ast.AST, str, int | None, ast.AST, int]]:
    is_inside = is_inside or isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef)
    for field, value in ast.iter_fields(parent):
        if field in ("annotation", "returns", "decorator_list"):
            continue
        for index, node in enumerate(value if isinstance(value, list) else [value]):
            if not isinstance(node, ast.AST) or isinstance(node, ast.JoinedStr) or _is_doc(node):
                continue
            around = node.lineno if is_inside and isinstance(node, ast.stmt) else line
            yield parent, field, index if isinstance(value, list) else None, node, around
            yield from _places(node, around, is_inside=is_inside)


def _is_doc(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def sample(size: int, seed: int) -> list[Mutant]:
    """Draw mutants of every module, as many as its share of the lines."""
    paths = [path for glob in MODULES for path in sorted(ROOT.glob(glob)) if mutants_of(path)]
    lines = [len(path.read_text().splitlines()) for path in paths]
    draw, chosen = random.Random(seed), []
    for number, path in enumerate(paths):
        first, last = (size * sum(lines[:n]) / sum(lines) for n in (number, number + 1))
        chosen += draw.sample(mutants_of(path), round(last) - round(first))
    return chosen


# --- the statements that each test executes -------------------------------------------------------


class Recorder:
    """A pytest plugin: the seconds of each test that passes, and the statements it executes."""

    def __init__(self) -> None:
        self.executed: set[tuple[str, int]] = set()
        self.tests: dict[str, tuple[float, list[tuple[str, int]]]] = {}

    def pytest_runtest_logstart(self) -> None:
        self.executed.clear()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        seconds, _ = self.tests.get(report.nodeid, (0.0, []))
        self.tests[report.nodeid] = seconds + report.duration, sorted(self.executed)
        if not report.passed:
            self.tests[report.nodeid] = float("inf"), []


class _Marker(ast.NodeTransformer):
    """Puts `__executed__.add((name, line))` before each statement of each function."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.depth = 0

    def generic_visit(self, node: ast.AST) -> ast.AST:
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        self.depth += is_function
        super().generic_visit(node)
        for field in ("body", "orelse", "finalbody") if self.depth else ():
            if isinstance(statements := getattr(node, field, None), list):
                marked = [part for each in statements for part in (self._mark(each.lineno), each)]
                setattr(node, field, marked)
        self.depth -= is_function
        return node

    def _mark(self, line: int) -> ast.stmt:
        return ast.parse(f"__executed__.add(({self.name!r}, {line}))").body[0]


def record(tests: Sequence[str], target: Path) -> int:
    """Run tests with marked modules; write what each of them takes and executes."""
    recorder = Recorder()
    builtins.__executed__ = recorder.executed  # type: ignore[attr-defined]

    def marked(path: Path) -> CodeType:
        tree = _Marker(str(path.relative_to(ROOT))).visit(ast.parse(path.read_text()))
        return compile(ast.fix_missing_locations(tree), str(path), "exec")

    _replace_code({path: marked(path) for glob in MODULES for path in ROOT.glob(glob)})
    pytest.main([*OPTIONS, *tests], plugins=[recorder])
    return target.write_text(json.dumps(recorder.tests)) and 0


def _replace_code(codes: dict[Path, CodeType]) -> None:
    """Let later imports of some files execute other code."""
    get_code = SourceFileLoader.get_code

    def replaced(loader: SourceFileLoader, name: str) -> CodeType | None:
        return codes.get(Path(loader.get_filename(name))) or get_code(loader, name)

    SourceFileLoader.get_code = replaced  # type: ignore[method-assign]


Recorded = dict[str, tuple[float, list[tuple[str, int]]]]


def tests_of(mutant: Mutant, recorded: Recorded) -> list[str]:
    """Choose the tests of the mirrored file, and the fastest of the others that execute a mutant.

    What a shared fixture executes is recorded of its first test only.
    """
    name = str(mutant.path.relative_to(ROOT))
    mirror = f"tests/{name.rpartition('/')[0]}/test_{mutant.path.name}"
    groups: dict[int, list[tuple[float, str]]] = {0: [], 1: [], 2: []}
    for test, (seconds, executed) in recorded.items():
        meets = any(place[0] == name and mutant.line in (0, place[1]) for place in executed)
        if test.startswith(mirror):
            groups[0 if meets else 1].append((seconds, test))
        elif meets:
            groups[2].append((seconds, test))
    chosen = []
    for group in groups.values():
        group.sort()
        totals = accumulate(seconds for seconds, _ in group)
        pairs = zip(totals, group, strict=True)
        chosen += [test for total, (_, test) in pairs if total < MOST_SECONDS]
    return chosen


# --- processes ------------------------------------------------------------------------------------


def in_processes(
    tasks: Sequence[Callable[[], int]], seconds: float, n_workers: int
) -> Iterator[tuple[int, int]]:
    """Fork for each task; yield its number and exit code, negative if it takes too long."""
    waiting = list(enumerate(tasks))[::-1]
    running: dict[int, tuple[int, float]] = {}
    while waiting or running:
        while waiting and len(running) < n_workers:
            number, task = waiting.pop()
            if not (process := os.fork()):
                _work(task)
            running[process] = number, time.monotonic() + seconds
        process, status = os.waitpid(-1, os.WNOHANG)
        if process in running:
            _end(process)
            yield running.pop(process)[0], os.waitstatus_to_exitcode(status)
        for late in [each for each, (_, end) in running.items() if time.monotonic() > end]:
            _end(late)
        time.sleep(0.02)


def _work(task: Callable[[], int]) -> NoReturn:
    os.setsid()
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    code = 1
    try:
        code = task()
    finally:
        os._exit(code)


def _end(process: int) -> None:
    """End a process, if it runs, and those that it started."""
    with suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)


def main() -> None:
    """Record, draw, run, and print those that survive."""
    parser = ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--size", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=min(4, os.cpu_count() or 1))
    parser.add_argument("--record", type=Path, help="where what tests execute is read, or written")
    asked = parser.parse_args()
    os.chdir(ROOT)
    for name in PRELOADED:
        import_module(name)
    with tempfile.TemporaryDirectory() as folder:
        recorded = _recorded(asked.record or Path(folder) / "record.json", asked.workers)
        chosen = sample(asked.size, asked.seed)
        tests = [tests_of(mutant, recorded) for mutant in chosen]

        def run(number: int) -> int:
            _replace_code({chosen[number].path: chosen[number].code()})
            options = (*OPTIONS, "-x", "--timeout=30", f"--basetemp={folder}/{number}")
            return int(pytest.main([*options, *tests[number]])) if tests[number] else 0

        tasks = [partial(run, number) for number in range(len(chosen))]
        codes = dict(_shown(in_processes(tasks, 25 * MOST_SECONDS, asked.workers), chosen))
    n_survived = list(codes.values()).count(0)
    n_late = sum(code < 0 for code in codes.values())
    text = f"{n_survived} of {len(chosen)} mutants survived, {n_late} took too long"
    sys.stdout.write(f"{text} (seed {asked.seed})\n")


def _recorded(path: Path, n_workers: int) -> Recorded:
    """Read what tests execute, or run them to know it."""
    if not path.exists():
        tests = [str(test) for glob in TESTS for test in sorted(Path().glob(glob))]
        parts = [path.with_suffix(f".{number}.json") for number in range(n_workers)]
        tasks = [partial(record, tests[n::n_workers], part) for n, part in enumerate(parts)]
        for _ in in_processes(tasks, 1800, n_workers):
            pass
        merged = [item for part in parts for item in json.loads(part.read_text()).items()]
        path.write_text(json.dumps(dict(merged)))
    return json.loads(path.read_text())


def _shown(
    results: Iterator[tuple[int, int]], mutants: Sequence[Mutant]
) -> Iterator[tuple[int, int]]:
    for number, code in results:
        if code <= 0:
            sys.stdout.write(f"{mutants[number]}{'  (took too long)' if code else ''}\n")
            sys.stdout.flush()
        yield number, code


if __name__ == "__main__":
    main()
