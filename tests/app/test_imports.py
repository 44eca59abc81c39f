"""A server imports the modules that it needs, and none that its dependencies could bring."""

import json
import subprocess
import sys

import pytest

from headlight.models.foreign import load_checked
from tests.tiny_checkpoints import save_checkpoint

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
WITHOUT_COMPILER = """
import json, sys
from pathlib import Path
import torch
from headlight.models.foreign import load_checked
load_checked(Path(sys.argv[1]), Path(sys.argv[2]), is_alone=True)
loaded = sorted(sys.modules)
assert torch.distributed.is_available()
print(json.dumps(loaded))
"""
COMPILE = (
    'assert torch.compile(lambda number: number + 1, backend="eager")(torch.ones(1)).item() == 2'
)
# Loading PyTorch's compiler takes as long as loading everything that a server needs.
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
    "sacrebleu",
    "ray",
    "pyarrow",
    "duckdb",
    "headlight.lab",
}


def modules_after(code, *arguments):
    """Return the modules that a fresh Python has loaded after code that prints them last."""
    command = [sys.executable, "-c", code, *arguments]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return set(json.loads(said.splitlines()[-1]))


def test_serving_a_trace_loads_nothing_heavy_that_it_does_not_need(zoo):
    loaded = modules_after(SERVE, str(zoo))
    assert "torch" in loaded
    assert loaded & HEAVY == set()


@pytest.fixture
def checked(tmp_path):
    """Return the folder of another library's model, and the folder of its checks."""
    folders = save_checkpoint("gpt2", tmp_path / "gpt2"), tmp_path / "checks"
    load_checked(*folders)
    return map(str, folders)


def test_a_server_loads_a_checked_model_without_the_compiler(checked):
    loaded = modules_after(WITHOUT_COMPILER, *checked)
    assert "transformers" in loaded
    assert loaded & (HEAVY - {"transformers", "httpx"}) == set()


@pytest.mark.slow
def test_the_compiler_can_be_loaded_later(checked):
    assert "torch._dynamo" not in modules_after(WITHOUT_COMPILER + COMPILE, *checked)
