"""The constraints file: everything pinned, nothing that ties it to a machine or an index."""

import re
import tomllib
from collections import defaultdict
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from headlight.model.extras import CHECKED, warn_if_newer

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
GROUPS = PYPROJECT["dependency-groups"]
DIRECT = [
    Requirement(line)
    for line in [*PYPROJECT["project"]["dependencies"], *GROUPS["test"], *GROUPS["tools"]]
]
# Packages of a CUDA build: torch itself names their exact versions.
PINNED_BY_TORCH = set(PYPROJECT["tool"]["uv"]["exclude-dependencies"])
LINES = [
    line
    for line in (ROOT / "constraints.txt").read_text().splitlines()
    if line.strip() and not line.lstrip().startswith("#")
]
CONSTRAINTS = defaultdict(list)
for requirement in map(Requirement, LINES):
    CONSTRAINTS[canonicalize_name(requirement.name)].append(requirement)


def pinned_versions(name, python=None):
    """Return the versions that the constraints give a package, on this Python or on another one."""
    environment = {"python_full_version": f"{python}.0", "python_version": python} if python else {}
    return [
        next(iter(constraint.specifier)).version
        for constraint in CONSTRAINTS.get(canonicalize_name(name), ())
        if (constraint.marker is None or constraint.marker.evaluate(environment))
    ]


def installed_requirements(name, seen):
    """Yield the requirements of a distribution, and theirs, as far as they apply here."""
    for line in metadata.requires(name) or []:
        requirement = Requirement(line)
        applies = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        key = canonicalize_name(requirement.name)
        if applies and key not in seen | PINNED_BY_TORCH:
            seen.add(key)
            yield requirement
            yield from installed_requirements(key, seen)


def test_every_constraint_is_one_exact_public_version():
    exact = re.compile(r"[a-z0-9-]+==[0-9][0-9a-z.]*( ; .+)?")
    assert LINES
    assert [line for line in LINES if not exact.fullmatch(line)] == []


def test_every_dependency_has_one_pin_that_it_accepts():
    for python in ("3.11", "3.12", "3.13", "3.14"):
        for requirement in DIRECT:
            pins = pinned_versions(requirement.name, python)
            assert len(pins) == 1, f"{requirement.name} has the pins {pins} on Python {python}"
            assert requirement.specifier.contains(pins[0]), f"{requirement}, pinned to {pins[0]}"


def test_a_library_newer_than_its_pin_is_warned_of(monkeypatch):
    pins = {name: pinned_versions(name)[0] for name in CHECKED}
    assert {name: tuple(map(int, pin.split(".")[:2])) for name, pin in pins.items()} == CHECKED
    for name in CHECKED:
        warn_if_newer.__wrapped__(name)
    monkeypatch.setattr("headlight.model.extras.version", lambda _: "5.24.1")
    with pytest.warns(UserWarning, match=r"transformers 5\.24\.1 is not checked with"):
        warn_if_newer.__wrapped__("transformers")


def test_what_is_installed_is_what_is_pinned():
    installed = {
        requirement.name: Version(metadata.version(requirement.name)).public
        for requirement in installed_requirements("headlight-viz", set())
    }
    wrong = {name: here for name, here in installed.items() if [here] != pinned_versions(name)}
    assert wrong == {}
