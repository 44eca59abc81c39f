"""The workflow of a hosted CI: its platforms, its commands, and what it may do."""

import re
import tomllib
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
WORKFLOW, PUBLISH = (
    yaml.safe_load((ROOT / ".github" / "workflows" / f"{name}.yml").read_text())
    for name in ("ci", "publish")
)
JOBS: dict[str, Any] = WORKFLOW["jobs"]
MATRIX = JOBS["test"]["strategy"]["matrix"]
STEPS = [step for job in JOBS.values() for step in job["steps"]]
RESOLVED = (ROOT / ".ci" / "resolve").read_text()


def resolved(name):
    """Return a list that the resolver's check goes through."""
    (words,) = re.findall(rf'^{name}="(.*?)"', RESOLVED, re.MULTILINE)
    return words.split()


def test_it_tests_every_python_that_the_pins_are_resolved_for():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert MATRIX["python"] == resolved("pythons")
    assert project["requires-python"] == f">={MATRIX['python'][0]}"
    listed = {line.rpartition(" ")[2] for line in project["classifiers"] if ":: 3." in line}
    assert listed <= set(MATRIX["python"])


def test_it_tests_every_platform_that_the_pins_are_resolved_for():
    runners = {
        "x86_64-manylinux_2_28": "ubuntu-24.04",
        "aarch64-manylinux_2_28": "ubuntu-24.04-arm",
        "aarch64-apple-darwin": "macos-15",
    }
    assert [runners[platform] for platform in resolved("supported")] == MATRIX["system"]


def test_it_runs_what_a_person_runs():
    commands = [step["run"] for step in STEPS if "run" in step]
    assert commands == [
        f"make {targets} PYTHON=python"
        for targets in ("test", "audit sbom", "documents", "image-test")
    ]


def test_the_parts_are_listed_by_one_version_of_the_tool():
    of_make = re.search(r"^CYCLONEDX_VERSION := (\S+)$", (ROOT / "Makefile").read_text(), re.M)
    of_image = re.search(r"cyclonedx-bom==(\S+)", (ROOT / "Dockerfile").read_text())
    assert of_make[1] == of_image[1]


def test_an_action_is_pinned_to_a_commit():
    steps = [*STEPS, *(step for job in PUBLISH["jobs"].values() for step in job["steps"])]
    actions = {step["uses"] for step in steps if "uses" in step}
    assert {action.partition("/")[0] for action in actions} == {"actions", "pypa"}
    assert all(re.fullmatch(r"[a-z-]+/[a-z-]+@[0-9a-f]{40}", action) for action in actions)


def test_only_the_job_that_builds_nothing_may_publish():
    assert PUBLISH["permissions"] == {"contents": "read"}
    may = {name: job.get("permissions") for name, job in PUBLISH["jobs"].items()}
    assert may == {"build": None, "publish": {"id-token": "write"}}
    assert not any("run" in step for step in PUBLISH["jobs"]["publish"]["steps"])


def test_it_can_change_nothing_and_ends():
    assert WORKFLOW["permissions"] == {"contents": "read"}
    assert all("permissions" not in job and job["timeout-minutes"] <= 60 for job in JOBS.values())
    checkouts = [step for step in STEPS if step.get("uses", "").startswith("actions/checkout@")]
    assert len(checkouts) == len(JOBS)
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)
