"""The shipped models give the numbers of the first release, over HTTP."""

import pytest
from fastapi.testclient import TestClient

from headlight.main import create_app
from headlight.settings import Settings
from tests.golden_traces import GOLDEN, REQUESTS, assert_is_golden


@pytest.fixture(scope="module")
def shipped():
    """Yield a server of the models that ship."""
    settings = Settings(device="cpu", precision="float32")
    with TestClient(create_app(settings), base_url="http://localhost") as client:
        yield client


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_a_shipped_model_still_gives_the_numbers_it_always_gave(path, shipped):
    answer = shipped.post(
        "/api/v1/trace", json=REQUESTS[path.stem], headers={"Accept": "application/x-safetensors"}
    )
    assert answer.status_code == 200, answer.text
    assert_is_golden(path, answer.content)
