"""Settings of all tests."""

import gc
import os
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import TypeVar

import pytest
import torch

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)

# The models of the tests are tiny: a second thread gains nothing, and on a busy machine the threads
# would wait for each other.
torch.set_num_threads(1)

# Models that the user of this machine has added take no part.
os.environ["XDG_DATA_HOME"] = str(Path(tempfile.gettempdir()) / "headlight-tests-without-models")

BROWSER_TESTS = Path(__file__).parent / "browser"


# Libraries and collected tests are half a million objects that live to the end: they are left to no
# collection of garbage, which took a seventh of the processor time of the tests of app/.
gc.disable()


def pytest_collection_finish() -> None:
    """Collect garbage from now on, of what the tests themselves leave."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Check the report of one test."""
    return fail_silent_skip((yield), item.path)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Check the report of a file, which may be skipped whole."""
    return fail_silent_skip((yield), getattr(collector, "path", None))


def fail_silent_skip(report: Report, path: Path | None) -> Report:
    """Fail a skipped browser test under CI, where a skip goes unnoticed."""
    is_browser_test = path is not None and path.is_relative_to(BROWSER_TESTS)
    is_expected_failure = hasattr(report, "wasxfail")
    if report.skipped and os.environ.get("CI") and is_browser_test and not is_expected_failure:
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI does not accept: {report.longrepr}"
    return report
