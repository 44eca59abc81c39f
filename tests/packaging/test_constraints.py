"""The constraints file: everything pinned, nothing that ties it to a machine or an index."""

import re
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
GROUPS = PYPROJECT["dependency-groups"]
DIRECT = [
    Requirement(line)
    for line in [*PYPROJECT["project"]["dependencies"], *GROUPS["test"], *GROUPS["tools"]]
]
# Packages of a CUDA build: torch itself names their exact versions.
PINNED_BY_TORCH = set(PYPROJECT["tool"]["uv"]["exclude-dependencies"])


def constraint_lines() -> list[str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return [line for line in lines if line.strip() and not line.lstrip().startswith("#")]


CONSTRAINTS = [Requirement(line) for line in constraint_lines()]


def pinned_version(name: str, python: str | None = None) -> str:
    """The version the constraints give a package, on this Python or on another one."""
    environment = {"python_full_version": f"{python}.0", "python_version": python} if python else {}
    pins = [
        constraint
        for constraint in CONSTRAINTS
        if canonicalize_name(constraint.name) == canonicalize_name(name)
        and (constraint.marker is None or constraint.marker.evaluate(environment))
    ]
    assert len(pins) == 1, f"{name} has {len(pins)} pins in constraints.txt, needs 1"
    (specifier,) = pins[0].specifier
    return specifier.version


def installed_requirements(name: str, seen: set[str]) -> Iterator[Requirement]:
    """What a distribution asks for, and what that asks for, as far as it applies here."""
    for line in metadata.requires(name) or []:
        requirement = Requirement(line)
        applies = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        key = canonicalize_name(requirement.name)
        if applies and key not in seen | PINNED_BY_TORCH:
            seen.add(key)
            yield requirement
            yield from installed_requirements(key, seen)


@pytest.mark.parametrize("line", constraint_lines())
def test_a_constraint_is_one_exact_public_version(line: str) -> None:
    assert re.fullmatch(r"[a-z0-9-]+==[0-9][0-9a-z.]*( ; .+)?", line)


@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13"])
@pytest.mark.parametrize("requirement", DIRECT, ids=str)
def test_every_dependency_has_one_pin_that_it_accepts(
    requirement: Requirement, python: str
) -> None:
    assert requirement.specifier.contains(pinned_version(requirement.name, python))


def test_what_is_installed_is_what_is_pinned() -> None:
    wrong = {}
    for requirement in installed_requirements("headlight", set()):
        installed = Version(metadata.version(requirement.name)).public
        if installed != pinned_version(requirement.name):
            wrong[requirement.name] = installed
    assert wrong == {}
