"""The table that every benchmark writes its figures into; it is printed when all have run.

A benchmark asks for the fixture `table` and adds a row for each promise about speed or size:

    table.add("Trace", "JSON, 32 tokens", "1.7 × the forward pass", "≤ 2 ×", is_met=True)

The table tells a figure next to its target; what an assertion refuses lies well past the target,
because machines are shared.
"""

import io
import os
import platform
import sys
import types
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

BENCH = Path(sys.prefix) / "bench"
WIDTH = 140
VERDICTS = {True: "met", False: "missed", None: ""}


@dataclass(frozen=True)
class Row:
    """A measured figure next to its target."""

    what: str
    measured: str
    target: str
    is_met: bool | None


@dataclass
class BenchmarkTable:
    """The figures of one run, by section."""

    sections: dict[str, list[Row]] = field(default_factory=dict)

    def add(self, section, what, measured, target="", is_met=None):
        """Add a row.

        Args:
            section: rows of one section stand together, in the order they were added.
            what: what was measured.
            measured: the figure with its unit.
            target: what it should be, in the same unit; empty where nothing was promised.
            is_met: whether it is; None where nothing was promised.
        """
        row = Row(what, str(measured), target, is_met)
        self.sections.setdefault(section, []).append(row)

    def text(self):
        """Return the machine's facts, and below them all rows, aligned."""
        drawn = Table(box=box.SIMPLE)
        for heading in ("", "measured", "target", ""):
            drawn.add_column(heading, overflow="fold")
        for section, rows in sorted(self.sections.items()):
            drawn.add_row(escape(section), style="bold")
            for row in rows:
                cells = (f"  {row.what}", row.measured, row.target, VERDICTS[row.is_met])
                drawn.add_row(*map(escape, cells))
            drawn.add_section()
        page = io.StringIO()
        Console(file=page, width=WIDTH).print(drawn)
        return "\n".join([machine(), *(line.rstrip() for line in page.getvalue().splitlines())])


def machine():
    """Return the processor, the versions and the number of threads."""
    gpu = f", {torch.cuda.get_device_name()}" if torch.cuda.is_available() else ""
    return (
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores{gpu} · "
        f"Python {platform.python_version()}, PyTorch {torch.__version__}, "
        f"{torch.get_num_threads()} thread(s) for a forward pass"
    )


FIGURES = pytest.StashKey[BenchmarkTable]()


def pytest_configure(config):
    """Begin the table of this run."""
    config.stash[FIGURES] = BenchmarkTable()


@pytest.fixture(scope="session")
def table(pytestconfig):
    """Return the table of this run."""
    return pytestconfig.stash[FIGURES]


@pytest.fixture(scope="session")
def bertviz():
    """BertViz, and in place of IPython the one class of it that is needed to get a file.

    None where it is not installed; `make bench-page` does that.
    """
    if not (BENCH / "bertviz").is_dir():
        return None
    display = types.ModuleType("IPython.display")
    written = type("Written", (), {"__init__": lambda self, data="": setattr(self, "data", data)})
    vars(display).update(HTML=written, Javascript=written, display=lambda *_: None)
    sys.modules |= {"IPython": types.ModuleType("IPython"), "IPython.display": display}
    sys.path.append(str(BENCH))
    import bertviz

    return bertviz


def pytest_terminal_summary(terminalreporter, config):
    """Print the table, where anything was measured."""
    figures = config.stash[FIGURES]
    if figures.sections:
        terminalreporter.section("benchmarks")
        terminalreporter.write_line(figures.text())
