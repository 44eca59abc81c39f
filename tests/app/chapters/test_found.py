"""A chapter for any model is about the one that is open: what it names is found there."""

import pytest

from headlight import load
from headlight.chapters.chapter import ChapterError, read_chapter
from headlight.chapters.found import filled, values_of
from headlight.chapters.library import Library
from headlight.model.analysis.attention_thread import _name

STEP = "## A\n\n```step\nopens: {text: a, layer: {{layer}}, head: {{head}}}\n```\n\nOf {{model}}.\n"
FRONT = "---\ntitle: A\nfinds: induction\n---\n\n"


@pytest.fixture(scope="module")
def shipped():
    return {each.id: each for each in Library().chapters()[0]}


def test_names_become_values_and_a_quote_ends_no_string():
    line = 'text: "{{text}}", layer: {{layer}}'
    assert filled(line, None) == 'text: "0", layer: 0'
    assert filled(line, {"text": 'a "b"', "layer": "3"}) == r'text: "a \"b\"", layer: 3'
    with pytest.raises(ValueError, match="nothing named 'text' is found; there are layer"):
        filled(line, {"layer": "3"})


def test_the_steps_open_what_was_found_in_this_model(shipped):
    for name in ("stories", "stories-preferred"):
        model = load(name)
        values = values_of("induction", model)
        (first, *_, last) = shipped["your-copy"].of_model(model).steps
        assert (first.opens.model, first.opens.text) == (name, values["text"])
        assert f"model={name}" in last.link
        steps = {step.title: step for step in shipped["your-copy"].of_model(model).steps}
        assert steps["Read the note"].opens.head == int(values["feeder_head"])
        assert "{{" not in "".join(step.text + step.link for step in steps.values())


def test_the_word_is_explained_by_its_strongest_head():
    model = load("stories")
    values = values_of("word", model)
    first = model.why(values["text"]).thread["steps"][0]
    assert _name("self_attention", int(values["layer"]), int(values["head"])) == first["name"]
    assert values["token"] == " were"


def test_a_model_that_has_nothing_of_the_kind_is_named(shipped):
    with pytest.raises(ValueError, match="no head of stories-small reads what followed"):
        shipped["your-copy"].of_model(load("stories-small"))
    with pytest.raises(ValueError, match="translate is no decoder"):
        shipped["your-word"].of_model(load("translate"))


def test_a_chapter_of_a_reader_may_hold_for_any_model():
    chapter = read_chapter(FRONT + STEP, "a.md", "a")
    assert chapter.steps[0].opens.layer == 0
    (step,) = chapter.of_model(load("stories")).steps
    assert (step.opens.layer, step.text) == (1, "Of stories.")
    with pytest.raises(ChapterError, match="line 3: finds"):
        read_chapter(FRONT.replace("induction", "magic") + STEP, "a.md", "a")
    wrong = read_chapter(FRONT + STEP.replace("{{model}}", "{{nothing}}"), "a.md", "a")
    with pytest.raises(ValueError, match="nothing named 'nothing'"):
        wrong.of_model(load("stories"))
