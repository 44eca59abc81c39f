"""CONTRIBUTING.md, CITATION.cff and the changelog agree with the code."""

import re
import tomllib
from pathlib import Path

import yaml

from headlight.chapters.chapter import read_chapter
from headlight.chapters.check import Checker, views
from headlight.settings import Settings

ROOT = Path(__file__).parents[2]
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def test_every_file_that_contributors_are_sent_to_exists():
    paths = {
        path
        for path in re.findall(r"`([\w./]+/[\w./]*)`", CONTRIBUTING)
        if path != "/api/v1/limits"
    }
    assert len(paths) > 10
    places = {path.replace("NAME", "*") for path in paths}
    assert [place for place in places if not list(ROOT.glob(place))] == []


def test_every_name_to_register_at_is_defined_where_it_is_said_to_be():
    places = re.findall(r"`(\w+)` in `([\w./]+)`", CONTRIBUTING)
    assert places
    definition = r"^(?:export |const |class |def )*{}\b.*[=:(]"
    missing = [
        f"{name} in {path}"
        for name, path in places
        if not re.search(definition.format(name), (ROOT / path).read_text(), re.MULTILINE)
    ]
    assert missing == []


def test_the_version_is_the_same_everywhere():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == VERSION
    client = tomllib.loads((ROOT / "app" / "client" / "pyproject.toml").read_text())["project"]
    assert client["version"] == VERSION
    zoo = tomllib.loads((ROOT / "model" / "zoo" / "pyproject.toml").read_text())["project"]
    assert zoo["version"] == VERSION
    assert zoo["dependencies"] == [f"headlight-viz=={VERSION}"]
    dockerfile = (ROOT / "Dockerfile").read_text()
    assert f'image.version="{VERSION}"' in dockerfile
    assert f'image.title="{zoo["name"].removesuffix("-zoo")}"' in dockerfile
    (newest, date), *_ = re.findall(
        r"^## \[(\S+)\] – (\S+)$", (ROOT / "CHANGELOG.md").read_text(), re.M
    )
    assert newest == VERSION
    assert str(citation["date-released"]) == date


CONDA = {"torch": "pytorch", "brotli": "brotli-python", "prometheus-client": "prometheus_client"}
"""Distributions that have another name there."""


def test_the_recipe_of_conda_asks_for_what_the_project_needs():
    recipe = yaml.safe_load((ROOT / ".ci" / "conda" / "recipe.yaml").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert (recipe["context"]["version"], recipe["package"]["name"]) == (VERSION, project["name"])
    pairs = [line.split(">=") for line in project["dependencies"]]
    needed = [f"{CONDA.get(name, name)} >={least}" for name, least in pairs]
    assert recipe["requirements"]["run"] == [f"python {project['requires-python']}", *needed]
    commands = [f"{name} = {place}" for name, place in project["scripts"].items()]
    assert recipe["build"]["python"]["entry_points"] == commands


def test_links_between_documents_lead_to_files():
    lost = [
        f"{path.name}: {link}"
        for path in (ROOT / "docs").glob("*.md")
        for link in re.findall(r"\]\((?!https?:|#|/)([^)#]+\.md)", path.read_text())
        if not (path.parent / link).exists()
    ]
    assert lost == []


def test_the_chapter_of_its_documentation_has_no_fault():
    document = (ROOT / "docs/chapters.md").read_text()
    (text,) = re.findall(r"^````markdown\n(.*?)^````$", document, re.MULTILINE | re.DOTALL)
    chapter = read_chapter(text, "who.md", "who")
    findings = list(Checker(Settings()).check(chapter, []))
    assert [finding.faults for finding in findings] == [[]] * 4
    assert all(f"`{view}`" in document for view in views())
