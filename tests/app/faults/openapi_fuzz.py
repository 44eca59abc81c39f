"""The server does what its OpenAPI document says, whatever is sent: schemathesis asks.

`HEADLIGHT_EXAMPLES=500 pytest tests/app/faults/openapi_fuzz.py` looks longer; without it the
requests are always the same ones, so that a change is what makes a test fail. `make test-all` runs
it: loading schemathesis costs each worker of the default tests seconds.
"""

import os

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance

from headlight.main import create_app
from headlight.settings import Settings

N_EXAMPLES = int(os.environ.get("HEADLIGHT_EXAMPLES", "12"))
thorough = settings(
    max_examples=N_EXAMPLES,
    derandomize="HEADLIGHT_EXAMPLES" not in os.environ,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)


# A body that is too long is refused by its length, before it is read.
REFUSALS = {"checks": {"negative_data_rejection": {"expected-statuses": ["4xx"]}}}
api = schemathesis.openapi.from_dict(
    create_app(Settings(device="cpu")).openapi(), config=schemathesis.Config.from_dict(REFUSALS)
)


# A request may be as the document says and yet ask for a layer or a model that is not there: then
# it is refused, with a status that the document has too.
CHECKS = {"excluded_checks": [positive_data_acceptance]}
OF_A_MODEL = {
    "model",
    "layers",
    "heads",
    "capture",
    "edits",
    "forced",
    "skip",
    "target",
    "analyses",
}


# The server is a thread of this process; hypothesis takes the random ids it draws for a test's.
@pytest.mark.filterwarnings("ignore::hypothesis.errors.HypothesisDeprecationWarning")
@api.parametrize()
@thorough
def test_the_document_is_true(case, server):
    case.call_and_validate(base_url=server.url, **CHECKS)
    if case.meta.generation.mode.is_positive and isinstance(case.body, dict):
        case.body = {name: case.body[name] for name in case.body.keys() - OF_A_MODEL}
        if "n_tokens" in case.body:
            case.body["n_tokens"] = min(case.body["n_tokens"], 2)
        case.call_and_validate(base_url=server.url, **CHECKS)
