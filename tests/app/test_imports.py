"""A server imports the modules that it needs, and none that its dependencies could bring."""

import json
import subprocess
import sys

SERVE = """
import json, sys
from headlight.main import create_app
from headlight.schemas.traces import TraceRequest
from headlight.settings import Settings
from headlight.tracing.service import trace_now
services = create_app(Settings(zoo_dir=sys.argv[1], default_model="tiny")).state.services
trace_now(TraceRequest(text="the cat sat on the mat"), services.registry, services.settings)
print(json.dumps(sorted(sys.modules)))
"""
# PyTorch's compiler alone takes as long to load as everything that a server needs.
HEAVY = {
    "httpx",
    "torch._dynamo",
    "torch._inductor",
    "sympy",
    "scipy",
    "pandas",
    "matplotlib",
    "plotly",
    "transformers",
    "nltk",
    "sacrebleu",
    "headlight.model.training",
    "headlight.model.evaluation",
}


def modules_after(code, *arguments):
    """The modules that a fresh Python has loaded after code that prints them last."""
    command = [sys.executable, "-c", code, *arguments]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return set(json.loads(said.splitlines()[-1]))


def test_serving_a_trace_loads_nothing_heavy_that_it_does_not_need(zoo):
    loaded = modules_after(SERVE, str(zoo))
    assert "torch" in loaded
    assert loaded & HEAVY == set()
