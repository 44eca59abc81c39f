"""An analysis, an edit and a field of a request are described once: all else is derived from it.

Each is added in another process, and found in the API and its document, in the client, on the
command line, in ids and in the reference.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from headlight.schemas.edits import KINDS
from tests.app.commands.test_html_export import archived

ROOT = Path(__file__).parents[2]
ANALYSIS = '''
"""An analysis of another package."""

from typing import Literal

from headlight.analyses.analysis import Analysis, AnalysisOptions, Result
from headlight.analyses.predictions import PredictionsRequest
from headlight.forms import Answer, TensorAnswer, option
from headlight.model.trace import NamedArray


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

    class Options(AnalysisOptions):
        """The scale of the greatest weights."""

        unit: Literal["share", "percent"] = option("share", "The unit.")
        floor: float = option(0.0, "The least weight that counts.", ge=0, le=1)

    def reason_against(self, description):
        return "it has an encoder" if description.config.has_encoder else None

    def compute(self, trace, model, ask):
        options = ask[self.Options]
        (site,) = (site for site in trace if site.endswith("layers.0.self_attention.weights"))
        greatest = trace[site].max((1, 2)) * (100 if options.unit == "percent" else 1)
        greatest[greatest < options.floor] = 0
        return Result({"first": NamedArray(("head",), greatest)}, {"unit": options.unit})
'''
EDIT = '''
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
    kind: Literal["sharper"]
    factor: float
'''
FIELD = '    shade: int = option(1, "A shade.", selects=True, ge=1, le=3)\n'
USE = """
import json, sys
import importlib.util
import inspect
import headlight.analyses
import headlight.schemas.edit_kinds
headlight.analyses.__path__.append(sys.argv[1] + "/analyses")
headlight.schemas.edit_kinds.__path__.append(sys.argv[1] + "/edits")
spec = importlib.util.find_spec("headlight.schemas.traces")
source = open(spec.origin).read()
mark = "    resolution: int | None = option("
assert source.count(mark) == 1
traces = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
exec(compile(source.replace(mark, sys.argv[3] + mark), spec.origin, "exec"), traces.__dict__)

from typer.testing import CliRunner
from headlight.cli import app
shown = CliRunner().invoke(app, ["trace", "--help"]).stdout
has_torch = "torch" in sys.modules

import httpx
import numpy as np
from fastapi.testclient import TestClient
from headlight import Client
from headlight.main import create_app
from headlight.settings import Settings
from tests.app.conftest import wait_until_ready
from tests.packaging.derived import arguments, calls, page_types
from tests.packaging.reference import reference

SITE = "decoder.layers.0.self_attention.scores"
SHARP = [{"kind": "sharper", "factor": 3.0}]
ASK = {"text": "the cat", "capture": [SITE], "analyses": ["greatest_weight"]}

class Served(httpx.BaseTransport):
    def handle_request(self, request):
        whole = {"content": request.read(), "headers": dict(request.headers)}
        answer = http.request(request.method, str(request.url), **whole)
        kind = {"content-type": answer.headers["content-type"]}
        return httpx.Response(answer.status_code, content=answer.content, headers=kind)

def post(**more):
    return http.post("/api/v1/trace", json={**ASK, **more}).json()

def typed(*words):
    asked = ["trace", "the cat", "--capture", SITE, "--analyses", "greatest_weight", "--json"]
    return json.loads(CliRunner().invoke(app, [*asked, *words]).stdout)

def figures(answer):
    last = [answer["tensors"][SITE]["data"][head][-1] for head in range(4)]
    greatest = answer["analyses"]["greatest_weight"]
    return {"id": answer["id"], "last": last, "unit": greatest["unit"]} | {
        "first": greatest["first"]["data"]
    }

def called(**more):
    trace = client.trace(**ASK, **more)
    greatest = trace.analyses["greatest_weight"]
    return {"id": trace.id, "last": trace[SITE][:, -1].tolist(), "unit": greatest["unit"]} | {
        "first": greatest["first"].tolist()
    }

def written(events):
    (step,) = [each for each in events if hasattr(each, "tensors")]
    return np.ravel(step.tensors[SITE].data).tolist()

OPTIONS = {"unit": "percent", "floor": 0.5}
settings = Settings(zoo_dir=sys.argv[2], default_model="tiny", device="cpu")
with TestClient(create_app(settings), base_url="http://localhost") as http:
    wait_until_ready(http.get)
    client = Client("http://localhost", transport=Served())
    at_once = {"n_tokens": 1, "temperature": 0, "capture": [SITE]}
    answers = {
        "plain": [figures(post()), called(), figures(typed())],
        "scaled": [
            figures(post(greatest_weight=OPTIONS)),
            called(greatest_weight=OPTIONS),
            figures(typed("--greatest-weight.unit", "percent", "--greatest-weight.floor", "0.5")),
        ],
        "edited": [
            figures(post(edits=SHARP)),
            called(edits=SHARP),
            figures(typed("--edits", json.dumps(SHARP))),
        ],
        "shaded": [figures(post(shade=2)), called(shade=2), figures(typed("--shade", "2"))],
        "generated": [
            written(client.generate("the cat", **at_once, edits=each)) for each in ([], SHARP)
        ],
        "wrong": [
            post(greatest_weight={"unit": "grams"}),
            post(edits=[{"kind": "sharper"}]),
            post(shade=4),
            post(model="filler", capture=[]),
            post(analyses=["rollout"], predictions={}),
        ],
        "help": shown,
        "has_torch": has_torch,
        "schemas": http.get("/openapi.json").json()["components"]["schemas"],
        "models": http.get("/api/v1/models").json()["models"],
        "page": http.post("/api/v1/page", json={"text": "the cat"}).text,
        "signature": list(inspect.signature(Client.trace).parameters),
        "documented": Client.trace.__doc__,
        "reference": reference(["tiny"]),
        "arguments": arguments(),
        "page types": page_types(http.get("/openapi.json").json()),
        "calls": calls(http.get("/openapi.json").json()),
    }
print(json.dumps(answers))
"""
WAYS = ["posted", "called", "typed"]
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
    """Return the answers of a server, the client and the command line, and the documents."""
    folder = tmp_path_factory.mktemp("added")
    for kind, source in (("analyses", ANALYSIS), ("edits", EDIT)):
        (folder / kind).mkdir()
        (folder / kind / "added.py").write_text(source)
    settings = {"HEADLIGHT_ZOO_DIR": str(zoo), "HEADLIGHT_DEFAULT_MODEL": "tiny"}
    said = python(USE, folder, zoo, FIELD, HEADLIGHT_DEVICE="cpu", COLUMNS="200", **settings)
    assert said.returncode == 0, said.stderr
    return json.loads(said.stdout.splitlines()[-1])


def test_the_document_of_the_api_has_all_three(answers):
    schemas = answers["schemas"]
    members = schemas["TraceRequest"]["properties"]
    assert "greatest_weight" in members["analyses"]["anyOf"][0]["items"]["enum"]
    assert (
        "greatest_weight: the greatest weight of each head." in members["analyses"]["description"]
    )
    options = members["greatest_weight"]
    assert options["anyOf"][0] == {"$ref": "#/components/schemas/GreatestWeightRequest"}
    assert "Read by greatest_weight." in options["description"]
    assert set(schemas["GreatestWeightRequest"]["properties"]) == {"unit", "floor"}
    answer = schemas["AnalysesAnswer"]["properties"]["greatest_weight"]
    assert answer["anyOf"][0] == {"$ref": "#/components/schemas/GreatestAnswer"}
    kinds = members["edits"]["anyOf"][0]["items"]["discriminator"]["mapping"]
    assert kinds["sharper"].endswith("/SharpenRequest")
    assert set(schemas["SharpenRequest"]["properties"]) == {"kind", "factor", "layer", "where"}
    assert members["shade"]["maximum"] == 3
    assert "shade" in schemas["TracesRequest"]["properties"]


@pytest.mark.parametrize("way", range(3), ids=WAYS)
def test_all_three_act_however_they_are_asked(answers, way):
    plain, scaled, edited = (answers[name][way] for name in ("plain", "scaled", "edited"))
    assert (plain["unit"], scaled["unit"]) == ("share", "percent")
    assert scaled["first"] == pytest.approx([100 * each for each in plain["first"]])
    for after, before in zip(edited["last"], plain["last"], strict=True):
        assert after == pytest.approx([3 * number for number in before], rel=1e-4)


@pytest.mark.parametrize("way", range(3), ids=WAYS)
def test_the_id_has_the_options_the_edit_and_the_field(answers, way):
    names = ("plain", "scaled", "edited", "shaded")
    assert len({answers[name][way]["id"] for name in names}) == 4
    assert all(answers[name][way]["id"] == answers[name][0]["id"] for name in names)


def test_an_edit_acts_in_every_step_of_a_generation(answers):
    plain, edited = answers["generated"]
    assert edited == pytest.approx([3 * number for number in plain], rel=1e-4)


def test_help_lists_all_three_without_pytorch(answers):
    for words in ("greatest_weight", "sharper", "--greatest-weight.floor", "--shade"):
        assert words in answers["help"]
    assert not answers["has_torch"]


def test_the_client_and_the_reference_name_all_three(answers):
    assert {"greatest_weight", "shade"} <= set(answers["signature"])
    assert "shade: A shade." in answers["documented"]
    for words in ("`--greatest-weight.unit`", "### sharper", "| `shade` | integer from 1 to 3 |"):
        assert words in answers["reference"]


def test_the_files_that_are_made_for_client_and_page_have_all_three(answers):
    for name, words in {
        "arguments": ["    greatest_weight: Mapping[str, Any] | None", "    shade: SupportsIndex"],
        "page types": ["  kind: 'sharper';", "  floor?: number;", "  shade?: number;"],
        "calls": ["  'shade',"],
    }.items():
        assert all(each in answers[name] for each in words), name


def test_a_wrong_value_is_named(answers):
    details = [each["detail"] for each in answers["wrong"]]
    for detail, words in zip(
        details,
        (
            "greatest_weight.unit",
            "edits.0.factor",
            "shade",
            "greatest_weight cannot be computed: it has an encoder",
            "ask for greatest_weight, logit_lens or next_token in analyses",
        ),
        strict=True,
    ):
        assert words in detail


def test_an_analysis_is_on_the_card_of_each_model_that_has_its_sites(answers):
    offered = {card["id"] for card in answers["models"] if "greatest_weight" in card["analyses"]}
    assert {"tiny", "turning"} <= offered
    assert not {"filler", "translator"} & offered


def test_an_analysis_is_in_the_saved_page(answers):
    header, (whole, *_) = archived(answers["page"])
    assert "greatest_weight" in header["card"]["analyses"]
    first = whole.analyses["greatest_weight"]["first"]
    assert first.tolist() == pytest.approx(answers["plain"][0]["first"])


@pytest.mark.parametrize("code", BROKEN)
def test_a_broken_analysis_names_itself(tmp_path, code):
    source = f"from headlight.analyses.analysis import Analysis\n{code}\n"
    (tmp_path / "broken.py").write_text(source)
    load = "import sys, headlight.analyses; headlight.analyses.__path__.append(sys.argv[1])"
    said = python(f"{load}; import headlight.schemas.traces", tmp_path)
    assert said.returncode
    assert BROKEN[code] in said.stderr


def test_an_edit_that_cannot_be_imported_is_named(tmp_path):
    (tmp_path / "broken.py").write_text("1 / 0")
    code = "import sys; from headlight.schemas import edit_kinds as kinds\n"
    code += "kinds.__path__.append(sys.argv[1]); import headlight.schemas.edits"
    said = python(code, tmp_path)
    assert said.returncode == 1
    assert "headlight.schemas.edit_kinds.broken" in said.stderr.splitlines()[-1]


def test_every_edit_has_a_name_and_a_description():
    assert all(form.__doc__ for form in KINDS.values())
