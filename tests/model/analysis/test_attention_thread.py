"""The thread of a prediction is followed by shares, and every cut of it is a pass of its own."""

from functools import partial
from itertools import pairwise

import pytest

from headlight.analyses.differences import attribute
from headlight.model.analysis.attention_thread import MOST_STEPS, Thread
from headlight.model.analysis.logit_attribution import LogitDifference
from headlight.model.analysis.reasons import lifts_of
from headlight.model.checkpoint.loading import ZOO, load
from headlight.model.circuits.cut import Cut
from headlight.model.interventions.head_ablation import HeadAblation
from headlight.model.tracing import trace
from tests.model.analysis.test_score_attribution import STORY, parts_of, shares


@pytest.fixture(scope="module")
def stories():
    return load(ZOO / "stories")


def followed(model, text, target=None, token=None, against=None, interventions=(), heads=None):
    """Return the trace of a text and the steps of a prediction's thread."""
    bound = tuple(each.with_model(model) for each in interventions)
    read = trace(model, text, target, capture=["*"], interventions=bound, heads=heads)
    position = len(read.target_tokens or read.tokens) - 1
    order = read["logits"][position].argsort()[::-1]
    ids = {each.text: each.id for each in read.tokens}
    difference = LogitDifference(
        position=position,
        token=int(order[0]) if token is None else ids[token],
        against=int(order[1]) if against is None else ids[against],
    )
    split = partial(attribute, read, model)
    arrays = split(model.linear_exit, difference).arrays
    lifts = lifts_of(split, model.linear_exit, difference, read["logits"].shape[-1])
    return read, Thread(model, read, difference, bound).steps(arrays, lifts), arrays, difference


def test_the_first_step_is_the_head_with_the_largest_part_of_the_difference(stories):
    read, steps, arrays, difference = followed(stories, STORY, token=" fox", against=" dog")
    total = difference.in_trace(read)
    heads = arrays["self_attention.heads"].data
    layer, head = map(int, steps[0].name.split("."))
    assert heads[layer, head] == heads.max()
    assert steps[0].share == pytest.approx(heads.max() / total, rel=1e-5)
    assert steps[0].before == pytest.approx(total, rel=1e-5)
    assert steps[0].adds[0] - steps[0].adds[1] == pytest.approx(heads.max(), rel=1e-4)


def test_each_later_step_is_the_strongest_part_of_the_cell_before(stories):
    read, steps, _, _ = followed(stories, STORY, token=" fox", against=" dog")
    assert 2 <= len(steps) <= MOST_STEPS
    for before, step in pairwise(steps):
        made = parts_of(stories, read, before.cell)
        sides = {
            "query": shares(made.query_parts, made.query_side),
            "key": shares(made.key_parts, made.key_side),
        }
        largest = max(
            (value, side, name) for side, of in sides.items() for name, value in of.items()
        )
        assert (step.side, step.name) == largest[1:]
        assert step.share == pytest.approx(largest[0] / abs(made.score), rel=1e-4)
        assert step.before == pytest.approx(made.weights[0], rel=1e-5)


def test_a_cut_is_told_with_the_numbers_of_its_own_pass(stories):
    read, steps, _, difference = followed(stories, STORY, token=" fox", against=" dog")
    cut = Cut(edges=(steps[0].edge,)).with_model(stories)
    edited = trace(stories, STORY, capture=["logits"], interventions=[cut])
    assert steps[0].after == pytest.approx(difference.in_trace(edited), abs=1e-4)
    cell, step = steps[0].cell, steps[1]
    cut = Cut(edges=(step.edge,)).with_model(stories)
    edited = trace(stories, STORY, capture=["*.weights"], interventions=[cut])
    weight = edited[f"{cell.path}.weights"][cell.head, cell.query, cell.key]
    assert step.after == pytest.approx(weight, abs=1e-5)
    assert read[f"{cell.path}.weights"][cell.head, cell.query, cell.key] != pytest.approx(weight)


def test_a_thread_goes_on_through_a_head_to_the_token_that_it_read(stories):
    """Cut the copy through 2.0: head 1.1 speaks, and it looks there for the head before it."""
    _, steps, _, _ = followed(
        stories, STORY, token=" fox", against=" dog",
        interventions=[HeadAblation(heads=(0,), layer=2)],
    )  # fmt: skip
    assert [step.name for step in steps[:2]] == ["1.1", "0.1"]
    assert steps[1].side == "key"
    assert (steps[1].cell.query, steps[1].cell.key) == (3, 2)
    assert steps[1].weight > 0.9
    assert steps[2].kind in ("position", "token")


def test_a_translation_is_followed_into_its_source():
    model = load(ZOO / "translate")
    _, steps, _, _ = followed(model, "The red fox sat near the old house.", "Le renard")
    assert steps[0].cell.path.startswith("decoder")
    for step in steps[1:]:
        assert step.share > 0


def test_a_pass_that_has_a_cut_already_is_followed_without_others(stories):
    cut = Cut(edges=("2.0→logits",))
    _, steps, _, _ = followed(stories, STORY, token=" fox", against=" dog", interventions=[cut])
    assert all(step.edge is step.after is None for step in steps)


def test_a_trace_of_some_heads_is_followed_from_one_of_them(stories):
    _, steps, _, _ = followed(stories, STORY, token=" fox", against=" dog", heads=[5, 4])
    layer, head = steps[0].name.split(".")
    assert head in ("5", "4")
    assert steps[0].cell.head == int(head)
    assert f".layers.{layer}." in steps[0].cell.path
