"""What each step came to: a line of JSON a step, in a file that outlives the run."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from headlight.model.checkpoint import write_whole

METRICS = "metrics.jsonl"


@dataclass(frozen=True)
class StepReport:
    """One step as it is shown and logged; losses in nats, ``valid_loss`` where it was measured."""

    step: int
    loss: float
    balance_loss: float
    valid_loss: float | None
    tokens: int
    seconds: float


def append_report(path: Path, report: StepReport) -> None:
    """Add a line to the file."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(report)) + "\n")


def drop_reports_after(path: Path, step: int) -> None:
    """Forget the lines of steps that will be made again, and one that was never finished."""
    if path.exists():
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        kept = [line for line in lines if line.endswith("\n") and json.loads(line)["step"] <= step]
        write_whole(path, lambda partial: partial.write_text("".join(kept), encoding="utf-8"))
