"""Measure the heads of one model in a process of its own, which a server starts and can end.

It prints one line of JSON for each step: ``{"share": 0.25}`` while it measures, at the end
``{"sentences": 300}`` or ``{"error": "…"}``. The profile is written next to the weights.
"""

import argparse
import json
import os
from pathlib import Path

from headlight.model.device import choose_device
from headlight.model.profiles.folder import measure_folder
from headlight.models.foreign import load_folder
from headlight.models.model_registry import CHECKS

NICE = 10
"""How much lower its priority is than that of the server, which answers readers meanwhile."""
LEAST_STEP = 0.005
"""Smaller steps are not told."""


def main() -> int:
    """Measure the model that the command line names; the status is 1 if it cannot be measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sentences", type=int, required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--text", type=Path, nargs="*", default=())
    arguments = parser.parse_args()
    if hasattr(os, "nice"):
        os.nice(NICE)
    told = 0.0

    def tell(share: float) -> None:
        nonlocal told
        if share - told >= LEAST_STEP or share == 1:
            told = share
            _print({"share": round(share, 4)})

    try:
        device = choose_device(arguments.device)
        model = load_folder(arguments.folder, arguments.folder.parent / CHECKS, device=device)
        profile = measure_folder(arguments.folder, model, arguments.text, arguments.sentences, tell)
    except (ValueError, OSError, ImportError, MemoryError, RuntimeError) as error:
        _print({"error": _sentence(error, arguments.folder)})
        return 1
    _print({"sentences": profile["sentences"]})
    return 0


def _sentence(error: Exception, folder: Path) -> str:
    """Return the reason without the path of the folder on this machine."""
    why = str(error)
    if isinstance(error, OSError) and error.strerror:
        why = f"a file of it cannot be read or kept: {error.strerror.lower()}"
    return why.replace(str(folder), folder.name) or type(error).__name__


def _print(event: object) -> None:
    print(json.dumps(event), flush=True)  # noqa: T201


if __name__ == "__main__":
    raise SystemExit(main())
