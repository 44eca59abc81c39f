"""The files that are made of the API's requests are current; `make openapi` renews them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from headlight.client import endpoints
from headlight.main import create_app
from headlight.settings import Settings
from tests.packaging import derived, reference

DOCUMENT = create_app(Settings(device="cpu")).openapi()
RENEW = "HEADLIGHT_RENEW_OPENAPI" in os.environ
ROOT = Path(__file__).parents[2]
FILES = {
    "app/client/arguments.py": derived.arguments,
    "docs/api.md": reference.reference,
    "static/js/state/address.js": derived.address,
    "static/js/api/schemas.d.ts": lambda: derived.page_types(DOCUMENT),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_made_is_current(name):
    content = FILES[name]()
    if RENEW:
        (ROOT / name).write_text(content)
    assert (ROOT / name).read_text() == content, f"{name} is stale: run `make openapi`"


WRONG = """
from headlight.client import Client
client = Client()
client.trace("a", layers=[0], edits={"kind": "no_scaling"})
client.trace("a", layer=[0])
client.trace("a", layers="all")
client.generate("a")
reveal_type(client.circuit(model="a", task="b").edges)
"""


@pytest.mark.slow
def test_a_checker_of_types_sees_the_arguments(tmp_path):
    (tmp_path / "headlight").mkdir()
    for path in (*(ROOT / "app").iterdir(), ROOT / "model"):
        (tmp_path / "headlight" / path.name).symlink_to(path)
    (tmp_path / "use.py").write_text(WRONG)
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", "", "use.py"]
    environment = {**os.environ, "MYPYPATH": str(tmp_path)}
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment)
    lines = [line for line in said.stdout.splitlines() if line.startswith("use.py")]
    assert [line.partition(": ")[0].removeprefix("use.py:") for line in lines] == [
        *("5", "6", "7", "8"),
    ]


def test_an_argument_that_no_request_has_is_refused_before_it_is_sent():
    with pytest.raises(TypeError, match=r"trace\(\) takes no argument layer; it takes .*layers"):
        endpoints.trace("a", layer=[0])
