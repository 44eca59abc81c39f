"""A kind of edit is one file: the API, the client and the command line take it."""

import json
import subprocess
import sys

import pytest

from headlight.schemas.edits import KINDS

KIND = '''
"""Multiply the scores of attention by a factor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from headlight.model.interventions.intervention import PlacedIntervention
from headlight.schemas.edit_kinds.form import AttentionEdit


@dataclass(frozen=True, kw_only=True)
class Sharpening(PlacedIntervention):
    factor: float

    def edits(self, places):
        for path in places.attentions(self):
            yield f"{path}.scores", lambda scores: scores * self.factor


class SharpenRequest(AttentionEdit):
    """Sharpen attention."""

    asks = f"{__name__}:Sharpening"
    kind: Literal["sharpen"]
    factor: float
'''
USE = """
import json, sys
import numpy as np
import headlight.schemas.edit_kinds as kinds
kinds.__path__.append(sys.argv[1])

import httpx
from fastapi.testclient import TestClient
from typer.testing import CliRunner
from headlight.cli import app
from headlight.client import Client
shown = CliRunner().invoke(app, ["trace", "--help"]).stdout
is_light = "torch" not in sys.modules

from headlight.main import create_app
from headlight.settings import Settings
settings = {"zoo_dir": sys.argv[2], "default_model": "tiny", "device": "cpu"}
site, sharp = "decoder.layers.0.self_attention.scores", [{"kind": "sharpen", "factor": 3.0}]
asked = {"text": "the cat", "capture": [site]}

class Served(httpx.BaseTransport):
    def handle_request(self, request):
        whole = {"content": request.read(), "headers": dict(request.headers)}
        answer = http.request(request.method, str(request.url), **whole)
        kind = {"content-type": answer.headers["content-type"]}
        return httpx.Response(answer.status_code, content=answer.content, headers=kind)

with TestClient(create_app(Settings(**settings)), base_url="http://localhost") as http:
    document = http.get("/openapi.json").json()["components"]["schemas"]
    plain = http.post("/api/v1/trace", json=asked).json()["tensors"]
    posted = http.post("/api/v1/trace", json={**asked, "edits": sharp}).json()["tensors"]
    wrong = http.post("/api/v1/trace", json={**asked, "edits": [{"kind": "sharpen"}]})
    client = Client("http://localhost", transport=Served())
    called = client.trace("the cat", capture=[site], edits=sharp)
    at_once = {"n_tokens": 1, "temperature": 0, "capture": [site]}
    events = [list(client.generate("the cat", **at_once, edits=each)) for each in ([], sharp)]
environment = {f"HEADLIGHT_{name.upper()}": value for name, value in settings.items()}
words = ["trace", "the cat", "--capture", site, "--edits", json.dumps(sharp), "--json"]
typed = CliRunner().invoke(app, words, env=environment)

def last(answer):
    return [answer[site]["data"][head][-1] for head in range(4)]

def written(events):
    (step,) = [each for each in events if hasattr(each, "tensors")]
    return np.ravel(step.tensors[site].data).tolist()

print(json.dumps({
    "help": shown,
    "is_light": is_light,
    "mapping": document["TraceRequest"]["properties"]["edits"]["anyOf"][0]["items"],
    "form": document["SharpenRequest"],
    "plain": last(plain),
    "posted": last(posted),
    "called": called[site][:, -1].tolist(),
    "typed": last(json.loads(typed.stdout)["tensors"]),
    "generated": [written(each) for each in events],
    "wrong": [wrong.status_code, wrong.json()["detail"]],
}))
"""


def run(code, *arguments):
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)


@pytest.fixture(scope="module")
def used(tmp_path_factory, zoo):
    """Return the answers of every interface to a kind of edit from a folder outside the package."""
    folder = tmp_path_factory.mktemp("kinds")
    (folder / "sharpen.py").write_text(KIND)
    result = run(USE, str(folder), str(zoo))
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout.splitlines()[-1])


def test_the_document_of_the_api_has_the_form_of_a_new_kind(used):
    assert used["mapping"]["discriminator"]["mapping"]["sharpen"].endswith("/SharpenRequest")
    assert used["form"]["description"] == "Sharpen attention."
    assert set(used["form"]["properties"]) == {"kind", "factor", "layer", "where"}


@pytest.mark.parametrize("way", ["posted", "called", "typed"])
def test_a_new_kind_edits_the_pass_however_it_is_asked(used, way):
    for edited, plain in zip(used[way], used["plain"], strict=True):
        assert edited == pytest.approx([3 * number for number in plain], rel=1e-4)


def test_a_new_kind_edits_every_step_of_a_generation(used):
    plain, edited = used["generated"]
    assert plain
    assert edited == pytest.approx([3 * number for number in plain], rel=1e-4)


def test_the_command_line_lists_a_new_kind_without_pytorch(used):
    assert "sharpen" in used["help"]
    assert used["is_light"]


def test_a_wrong_field_of_a_new_kind_is_named(used):
    status, detail = used["wrong"]
    assert status == 422
    assert "edits.0.factor" in detail


def test_a_file_that_cannot_be_imported_is_named(tmp_path):
    (tmp_path / "broken.py").write_text("1 / 0")
    code = "import sys; from headlight.schemas import edit_kinds as kinds\n"
    code += "kinds.__path__.append(sys.argv[1]); import headlight.schemas.edits"
    result = run(code, str(tmp_path))
    assert result.returncode == 1
    assert "headlight.schemas.edit_kinds.broken" in result.stderr.splitlines()[-1]


def test_every_kind_has_a_name_and_a_description():
    assert len(KINDS) == 14
    assert all(form.__doc__ for form in KINDS.values())
