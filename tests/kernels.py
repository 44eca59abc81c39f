"""A check that the environment chose the kernels of another processor: `make test-processors`.

The libraries ignore a name that they do not know, and the tests would run this processor's kernels
again. The settings, of PyTorch's own kernels, of oneDNN's and of MKL's:

- https://docs.pytorch.org/docs/stable/threading_environment_variables.html
- https://uxlfoundation.github.io/oneDNN/dev_guide_cpu_dispatcher_control.html
- https://www.intel.com/content/www/us/en/docs/onemkl/developer-guide-linux/current/specifying-code-branches.html
"""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping

import pytest

ASK = """
import torch
print("aten:", torch.backends.cpu.get_cpu_capability())
torch.nn.functional.gelu(torch.ones(64, 64))
torch.ones(8, 8) @ torch.ones(8, 8)
"""
# What the libraries say of themselves with a setting.
EXPECTED = {
    ("ATEN_CPU_CAPABILITY", "default"): "aten: DEFAULT",
    ("ATEN_CPU_CAPABILITY", "avx2"): "aten: AVX2",
    ("ONEDNN_MAX_CPU_ISA", "SSE41"): "cpu,isa:Intel SSE4.1",
    ("ONEDNN_MAX_CPU_ISA", "AVX2"): "cpu,isa:Intel AVX2",
    ("MKL_CBWR", "COMPATIBLE"): "CNR:COMPATIBLE",
}
SETTINGS = {name for name, _ in EXPECTED}


def read_kernels(environment: Mapping[str, str]) -> str:
    """Start PyTorch in an environment; return the libraries' own words on their kernels."""
    verbose = {**environment, "ONEDNN_VERBOSE": "1", "MKL_VERBOSE": "1"}
    command = [sys.executable, "-c", ASK]
    return subprocess.run(command, env=verbose, capture_output=True, text=True, check=True).stdout


def require_kernels(
    environment: Mapping[str, str], read: Callable[[Mapping[str, str]], str] = read_kernels
) -> None:
    """Check that the settings of an environment are known and have an effect.

    Raises:
        pytest.UsageError: there is no setting, one is unknown, or a library does not follow it.
    """
    chosen = [(name, environment[name]) for name in sorted(SETTINGS & environment.keys())]
    if not chosen:
        raise pytest.UsageError(f"no kernels are chosen; set one of {', '.join(sorted(SETTINGS))}")
    for name, value in chosen:
        if (name, value) not in EXPECTED:
            known = ", ".join(of for setting, of in EXPECTED if setting == name)
            raise pytest.UsageError(f"{name}={value} is not known here; choose {known}")
    told = read(environment)
    for name, value in chosen:
        if (expected := EXPECTED[name, value]) not in told:
            raise pytest.UsageError(f"{name}={value} has no effect: no '{expected}' in\n{told}")


def pytest_configure(config: pytest.Config) -> None:
    """Refuse to test this processor's own kernels; the workers inherit the setting."""
    if not hasattr(config, "workerinput"):
        require_kernels(os.environ)
