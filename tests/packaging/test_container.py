"""The promises of the container image that can be read off its files."""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
FINAL_STAGE = DOCKERFILE[DOCKERFILE.rindex("\nFROM ") :]


def instruction(name: str) -> str:
    """What follows the only instruction of that name in the final stage."""
    (text,) = re.findall(rf"^{name} ((?:.*\\\n)*.*)$", FINAL_STAGE, flags=re.MULTILINE)
    return text


def test_the_process_is_not_root() -> None:
    assert int(instruction("USER")) >= 1000


@pytest.mark.parametrize("name", ["ENTRYPOINT", "CMD"])
def test_signals_reach_the_process_without_a_shell(name: str) -> None:
    assert instruction(name).startswith("[")


def test_health_is_asked_with_what_the_image_has() -> None:
    assert 'CMD ["python", ' in instruction("HEALTHCHECK")
    assert "/healthz" in instruction("HEALTHCHECK")


def test_only_what_the_build_needs_is_sent_to_it() -> None:
    sent = re.findall(r"^!(\S+)$", (ROOT / ".dockerignore").read_text(), flags=re.MULTILINE)
    assert set(sent) == {
        "LICENSE",
        "README.md",
        "app",
        "constraints.txt",
        "model",
        "pyproject.toml",
        "static",
        "templates",
    }


def test_compose_runs_it_read_only_and_on_this_machine_alone() -> None:
    service = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]["headlight"]
    assert service["read_only"] is True
    assert service["tmpfs"] == ["/tmp"]
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
