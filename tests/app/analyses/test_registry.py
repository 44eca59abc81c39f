"""An analysis is one module: all else is derived from it, and a broken one names itself."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from headlight.analyses.registry import ANALYSES
from headlight.schemas.traces import TraceRequest
from tests.app.commands.test_html_export import archived

ROOT = Path(__file__).parents[3]
GREATEST = '''
"""An analysis of another package."""

from headlight.analyses.analysis import Analysis, Result
from headlight.analyses.predictions import PredictionsRequest
from headlight.model.trace import NamedArray
from headlight.forms import Answer, TensorAnswer


class GreatestAnswer(Answer):
    """The greatest weights."""

    first: TensorAnswer
    unit: str


class GreatestWeight(Analysis):
    """The greatest weight of each head."""

    id = "greatest_weight"
    needs = ("*.layers.0.self_attention.weights",)
    answer = GreatestAnswer
    reads = (PredictionsRequest,)

    def reason_against(self, description):
        return "it has an encoder" if description.config.has_encoder else None

    def compute(self, trace, model, ask):
        (site,) = (site for site in trace if site.endswith("layers.0.self_attention.weights"))
        return Result({"first": NamedArray(("head",), trace[site].max((1, 2)))}, {"unit": "share"})
'''
USE = """
import json, sys
import headlight.analyses
headlight.analyses.__path__.append(sys.argv[1])

from typer.testing import CliRunner
from headlight.cli import app
shown = CliRunner().invoke(app, ["trace", "--help"]).stdout
has_torch = "torch" in sys.modules

from fastapi.testclient import TestClient
from headlight.client import endpoints
from headlight.main import create_app
from headlight.settings import Settings
from tests.app.conftest import wait_until_ready
settings = Settings(zoo_dir=sys.argv[2], default_model="tiny", device="cpu")
with TestClient(create_app(settings), base_url="http://localhost") as http:
    wait_until_ready(http.get)
    ask = {"text": "the cat", "capture": [], "analyses": ["greatest_weight"]}
    call = endpoints.trace(**ask)
    trace = call.read(http.request(**call.request()).content)
    document = http.get("/openapi.json").json()["components"]["schemas"]
    unread = {**ask, "analyses": ["rollout"], "predictions": {}}
    answers = {
        "help": shown,
        "has_torch": has_torch,
        "models": http.get("/api/v1/models").json()["models"],
        "members": document["TraceRequest"]["properties"]["analyses"],
        "answer": document["AnalysesAnswer"]["properties"]["greatest_weight"],
        "rest": http.post("/api/v1/trace", json=ask).json()["analyses"],
        "client": trace.analyses["greatest_weight"]["first"].tolist(),
        "refused": http.post("/api/v1/trace", json={**ask, "model": "filler"}).json()["detail"],
        "unread": http.post("/api/v1/trace", json=unread).json()["detail"],
        "page": http.post("/api/v1/page", json={"text": "the cat"}).text,
    }
words = ["trace", "the cat", "--analyses", "greatest_weight", "--json"]
answers["printed"] = json.loads(CliRunner().invoke(app, words).stdout)["analyses"]
print(json.dumps(answers))
"""
BROKEN = {
    "raise RuntimeError('no luck')": "headlight.analyses.broken cannot be imported: no luck",
    "class Vague(Analysis):\n    id = 'vague'": (
        "headlight.analyses.broken.Vague lacks needs, __doc__"
    ),
    "class Idle(Analysis):\n    'Nothing.'\n    id, needs = 'idle', ('logits',)": (
        "headlight.analyses.broken.Idle lacks compute"
    ),
    "from headlight.analyses.attention import Rollout\nclass Twin(Rollout):\n    'Again.'": (
        "headlight.analyses.broken.Twin and headlight.analyses.attention have the same id, rollout"
    ),
}


def python(code, *arguments, **environment):
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment)


@pytest.fixture(scope="module")
def answers(tmp_path_factory, zoo):
    """Return the answers of a server, the client and the command line with one more module."""
    folder = tmp_path_factory.mktemp("analyses")
    (folder / "greatest.py").write_text(GREATEST)
    settings = {"HEADLIGHT_ZOO_DIR": str(zoo), "HEADLIGHT_DEFAULT_MODEL": "tiny"}
    said = python(USE, folder, zoo, HEADLIGHT_DEVICE="cpu", COLUMNS="200", **settings)
    assert said.returncode == 0, said.stderr
    return json.loads(said.stdout.splitlines()[-1])


def test_a_module_is_an_analysis_in_the_document_of_the_api(answers):
    kinds, _ = answers["members"]["anyOf"]
    assert "greatest_weight" in kinds["items"]["enum"]
    assert "greatest_weight: the greatest weight of each head." in answers["members"]["description"]
    assert answers["answer"]["anyOf"][0] == {"$ref": "#/components/schemas/GreatestAnswer"}


def test_its_name_is_in_the_help_of_the_command_which_loads_no_pytorch(answers):
    assert "greatest_weight" in answers["help"]
    assert not answers["has_torch"]


def test_it_is_on_the_card_of_each_model_that_has_its_sites(answers):
    offered = {card["id"] for card in answers["models"] if "greatest_weight" in card["analyses"]}
    assert {"tiny", "turning"} <= offered
    assert not {"filler", "translator"} & offered
    assert "greatest_weight cannot be computed: it has an encoder" in answers["refused"]


def test_it_is_answered_over_rest_by_the_client_and_on_the_command_line(answers):
    answer = answers["rest"]["greatest_weight"]
    assert answer["unit"] == "share"
    assert answer["first"]["axes"] == ["head"]
    assert answers["client"] == pytest.approx(answer["first"]["data"])
    assert answers["printed"]["greatest_weight"] == answer


def test_it_is_in_the_saved_page(answers):
    header, (whole, *_) = archived(answers["page"])
    assert "greatest_weight" in header["card"]["analyses"]
    first = whole.analyses["greatest_weight"]["first"]
    assert first.tolist() == pytest.approx(answers["client"])


def test_an_option_that_nothing_reads_is_refused_with_its_name(answers):
    assert "ask for greatest_weight, logit_lens or next_token in analyses" in answers["unread"]


@pytest.mark.parametrize("code", BROKEN)
def test_a_broken_module_names_itself(tmp_path, code):
    source = f"from headlight.analyses.analysis import Analysis\n{code}\n"
    (tmp_path / "broken.py").write_text(source)
    load = "import sys, headlight.analyses; headlight.analyses.__path__.append(sys.argv[1])"
    said = python(f"{load}; import headlight.schemas.traces", tmp_path)
    assert said.returncode
    assert BROKEN[code] in said.stderr


def test_the_options_of_an_analysis_are_members_of_a_request_that_name_it():
    for name, analysis in ANALYSES.items():
        for kind in analysis.options:
            assert name in TraceRequest.model_fields[kind.member].description
