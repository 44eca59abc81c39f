"""One trace of each shipped model, every site, as the first release computed it.

The files in tests/golden are the answers of that release. Numbers may differ between processors by
rounding; names, axes, order and everything else may not differ at all. Sites may be added.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from fastapi.testclient import TestClient
from safetensors import safe_open
from safetensors.numpy import load

from headlight.main import create_app
from headlight.settings import Settings

ROOT = Path(__file__).parents[2]
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
OF_ONE_ANSWER = {"id", "timings"}  # differ from one release, or one pass, to the next


@pytest.fixture(scope="module")
def shipped():
    """A server of the models that ship."""
    settings = Settings(device="cpu", precision="float32")
    with TestClient(create_app(settings), base_url="http://localhost") as client:
        yield client


def metadata(path):
    with safe_open(path, framework="numpy") as file:
        return {name: json.loads(text) for name, text in file.metadata().items()}


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_a_shipped_model_still_gives_the_numbers_it_always_gave(path, shipped, tmp_path):
    told = metadata(path)
    answer = shipped.post(
        "/api/v1/trace", json=REQUESTS[path.stem], headers={"Accept": "application/x-safetensors"}
    )
    assert answer.status_code == 200, answer.text
    (tmp_path / "now").write_bytes(answer.content)
    now = metadata(tmp_path / "now")
    assert now.keys() == told.keys()
    now["axes"] = {name: axes for name, axes in now["axes"].items() if name in told["axes"]}
    assert list(now["axes"]) == list(told["axes"])
    for name in told.keys() - OF_ONE_ANSWER:
        assert now[name] == told[name], name
    expected, actual = load(path.read_bytes()), load(answer.content)
    assert actual.keys() >= expected.keys()
    for site, array in expected.items():
        assert actual[site].dtype == array.dtype
        np.testing.assert_allclose(actual[site], array, rtol=1e-4, atol=2e-5, err_msg=site)
