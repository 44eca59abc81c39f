"""One trace of each shipped model, every site, as the first release computed it: tests/golden.

Numbers may differ between processors by rounding; names, axes, order and everything else may not
differ at all. Sites may be added.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load

ROOT = Path(__file__).parents[1]
GOLDEN = [
    ROOT / "tests" / "golden" / f"{config.parent.name}.safetensors"
    for config in sorted((ROOT / "model" / "zoo").glob("*/config.json"))
]
TEXTS = {
    "stories": "The red hen ran, and the red hen",
    "translate": "The cat sleeps.",
    "fill": "The cat sat on the [MASK].",
    "sums": "47*23=47*20+47*3=940+141=1081",
    **dict.fromkeys(("sums-imitation", "sums-direct"), "47*23="),
}
REQUESTS = {
    path.stem: {
        "model": path.stem,
        "text": TEXTS.get(path.stem, "One day a fox met a crow."),
        "capture": ["*"],
    }
    for path in GOLDEN
}
ROUNDING = 1e-6
"""Of the largest number of an array: a small one may be the difference of two large ones."""
OF_ONE_ANSWER = {"id", "timings"}  # differ from one release, or one pass, to the next


def metadata_of(content: bytes) -> dict[str, Any]:
    """Everything of a safetensors file but the arrays, each entry read as JSON."""
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    return {name: json.loads(text) for name, text in header["__metadata__"].items()}


def assert_is_golden(path: Path, content: bytes) -> None:
    """Compare an answer, one safetensors file, with the golden one at a path."""
    told, now = metadata_of(path.read_bytes()), metadata_of(content)
    assert now.keys() == told.keys()
    now["axes"] = {name: axes for name, axes in now["axes"].items() if name in told["axes"]}
    assert list(now["axes"]) == list(told["axes"])
    for side in ("tokens", "target_tokens"):  # tokens may be told more of
        now[side] = now[side] and [
            {name: value for name, value in token.items() if name in old}
            for token, old in zip(now[side], told[side], strict=True)
        ]
    for name in told.keys() - OF_ONE_ANSWER:
        assert now[name] == told[name], name
    expected, actual = load(path.read_bytes()), load(content)
    assert actual.keys() >= expected.keys()
    for site, array in expected.items():
        assert actual[site].dtype == array.dtype
        limit = max(2e-5, ROUNDING * float(np.abs(array[np.isfinite(array)]).max(initial=0)))
        np.testing.assert_allclose(actual[site], array, rtol=1e-4, atol=limit, err_msg=site)
