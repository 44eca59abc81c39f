"""docs/ideas.md: every row opens an experiment or a view of a trained model."""

import json
import re
from functools import cache
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest

from headlight.chapters.outcomes import address_parts
from headlight.model.checkpoint.loading import ZOO, load
from headlight.model.experiments.experiment_registry import EXPERIMENTS
from headlight.model.tracing import trace

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| (\d+) \| (.+) \| \[[^\]]+\]\((\S+)\) \|$", re.M)
DOCUMENT = (ROOT / "docs" / "ideas.md").read_text()
ROWS = ROW.findall(DOCUMENT)
EXPERIMENT_LINKS = [link for *_, link in ROWS if link.startswith("/experiments")]
PAGE_LINKS = [link for *_, link in ROWS if link.startswith("/#")]
REGISTRY = (ROOT / "static/js/views/view_registry.js").read_text()
VIEWS = {
    entry.split("'")[0]: entry
    for entry in REGISTRY.split("const ENTRIES")[1].split("\n    id: '")[1:]
}
SHARED = [*address_parts(), "chapter", "chapter_step"]


def parameters_of(link):
    return dict(parse_qsl(urlsplit(link).fragment, strict_parsing=True))


def test_there_are_76_rows_and_each_opens_something():
    assert [int(number) for number, *_ in ROWS] == list(range(1, 77))
    assert len(EXPERIMENT_LINKS) + len(PAGE_LINKS) == 76
    assert len({idea for _, idea, _ in ROWS}) == 76
    listed = [line for line in DOCUMENT.splitlines() if re.match(r"\| *\d", line)]
    assert len(listed) == 76, "a row is not read by this test"


def test_every_experiment_has_a_row():
    opened = {parameters_of(link)["experiment"] for link in EXPERIMENT_LINKS}
    assert opened == set(EXPERIMENTS)


@pytest.mark.parametrize("link", EXPERIMENT_LINKS)
def test_a_link_to_an_experiment_has_parameters_that_it_takes(link):
    parameters = parameters_of(link)
    experiment = EXPERIMENTS[parameters.pop("experiment")]
    properties = experiment.parameters.model_json_schema()["properties"]
    values = {}
    for name, text in parameters.items():
        if name in ("beside", "frame", "picked"):  # the page's own
            continue
        kind = properties[name].get("type")
        if kind == "array":
            values[name] = [float(each) for each in text.split(",")]
        elif kind == "boolean":
            values[name] = {"0": False, "1": True}[text]
        else:
            values[name] = text if kind == "string" or "," in text else json.loads(text)
    validated = experiment.validate(values)
    if experiment.cost(validated).seconds < 1:
        assert next(experiment.start(validated))


@cache
def tokens_of(model, text):
    return len(trace(load(ZOO / model), text, capture=[]).tokens)


@pytest.mark.parametrize("link", PAGE_LINKS)
def test_a_link_to_the_page_names_a_view_and_a_model_that_reads_its_text(link):
    parameters = parameters_of(link)
    entry = VIEWS[parameters["view"]]
    for name, value in parameters.items():
        if name in SHARED:
            continue
        choices = re.search(rf"{name}: choice\(\[(.*?)\]\)", entry, re.S)
        assert choices, f"{parameters['view']} has no {name} to choose"
        assert f"'{value}'" in choices[1]
    model = parameters.get("model", "stories")
    assert tokens_of(model, parameters["text"]) > 3
    config = load(ZOO / model).config
    assert int(parameters.get("layer", 0)) < config.n_layers
    assert int(parameters.get("head", 0)) < config.n_heads
