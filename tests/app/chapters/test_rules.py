"""Right answers, computed from the API's answers."""

import numpy as np
import pytest
from pydantic import TypeAdapter

from headlight.chapters.outcomes import Opens
from headlight.chapters.rules import Rule

OPENS = Opens(text="a b c", layer=0, head=0)
WEIGHTS = [[[1.0, 0.0, 0.0], [0.3, 0.7, 0.0], [0.5, 0.2, 0.3]]]


def rule(**members):
    return TypeAdapter(Rule).validate_python(members)


def trace(weights=WEIGHTS, tokens="abc", **analyses):
    tensors = {"decoder.layers.0.self_attention.weights": {"data": weights}}
    named = [{"text": f" {token}"} for token in tokens]
    return {"tokens": named, "target_tokens": None, "tensors": tensors, "analyses": analyses}


def outcome(answer, of, opens=OPENS):
    return of.outcome(opens, [answer])


def test_a_weight_is_found_by_the_texts_of_its_tokens():
    assert outcome(trace(), rule(of="weight", query="c", key="b")).right == 0.2
    assert outcome(trace(), rule(of="weight", key=0)).right == 0.5


def test_the_strongest_key_is_chosen_from_what_the_row_may_read():
    result = outcome(trace(), rule(of="strongest_key", query=1))
    assert (result.right, result.label) == (1, "“b”")
    assert [choice.value for choice in result.choices] == [0, 1]
    later = outcome(trace(), rule(of="strongest_key", not_first=True))
    assert (later.right, [choice.value for choice in later.choices]) == (2, [1, 2])


def test_two_tokens_of_one_text_are_told_apart():
    result = outcome(trace(tokens="aba"), rule(of="strongest_key"))
    assert [choice.label for choice in result.choices] == ["“a” (token 0)", "“b”", "“a” (token 2)"]


def test_the_strongest_head_and_cell_are_found():
    two = [*WEIGHTS, [[1.0, 0, 0], [0.9, 0.1, 0], [0.1, 0.8, 0.1]]]
    assert outcome(trace(two), rule(of="strongest_head", key="b")).right == 1
    cell = outcome(trace(), rule(of="strongest_cell", not_first=True))
    assert (cell.right, cell.label) == ([1, 1], "“b” attends to “b”")
    assert cell.cells == WEIGHTS[0]


def test_the_strongest_part_is_asked_for_and_found():
    of = rule(of="strongest_part", query=2, key=1)
    (ask,) = of.asks(OPENS)
    cell = ask.trace.model_dump()["score_attribution"]
    assert (cell["attention"], cell["query"], cell["key"]) == (
        "decoder.layers.0.self_attention",
        2,
        1,
    )
    parts = {
        "key_parts": [{"name": name} for name in ("token", "0.1", "constant")],
        "key_side": {"data": [1.0, 3.0, -4.0]},
    }
    made = outcome(trace(score_attribution=parts), of)
    assert (made.right, made.number) == ("0.1", 3.0)
    with pytest.raises(ValueError, match="number of “b”"):
        rule(of="strongest_part", query=2, key="b").asks(OPENS)


def test_a_rule_cuts_edges():
    asked = rule(of="weight", key=0, cut=["0.1→1.1.k"]).asks(OPENS)[0].trace
    assert [edit.kind for edit in asked.edits] == ["cut"]


def test_a_rule_asks_for_a_pass_without_heads_and_with_rounded_weights():
    of = rule(of="weight", key=0, off={"layer": 0, "heads": [1]}, bits=4)
    asked = of.asks(OPENS)[0].trace.model_dump(exclude_none=True)["edits"]
    assert [each["kind"] for each in asked] == ["heads_off", "quantize"]
    assert asked[1]["bits"] == 4
    with pytest.raises(ValueError, match="bits"):
        rule(of="weight", key=0, bits=1).asks(OPENS)


def test_the_strongest_expert_is_that_of_the_router():
    routed = trace()
    site = "decoder.layers.0.experts.router_probs"
    routed["tensors"] = {site: {"data": [[0.9, 0.1], [0.4, 0.6], [0.5, 0.4]]}}
    of = rule(of="strongest_expert", query="b")
    assert of.asks(OPENS)[0].trace.capture == [site]
    result = outcome(routed, of)
    assert (result.right, result.label) == (1, "expert 1")
    with pytest.raises(ValueError, match="has a layer"):
        of.asks(Opens(text="a b c"))


def test_answers_that_are_equally_right_are_a_fault():
    with pytest.raises(ValueError, match="equally right"):
        outcome(trace([[[1, 0, 0], [0.5, 0.5, 0], [0.4, 0.4, 0.2]]]), rule(of="strongest_key"))


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"of": "weight", "key": "x"}, "no token “x”"),
        ({"of": "weight", "key": 9}, "no token 9"),
        ({"of": "weight", "key": 0, "head": 7}, "no head 7"),
    ],
)
def test_a_place_that_there_is_not_is_a_fault(members, said):
    with pytest.raises(ValueError, match=said):
        outcome(trace(), rule(**members))


def test_a_prediction_is_chosen_from_the_likeliest():
    predicted = {
        "texts": [[" x", " z", " y"]] * 3,
        "probabilities": {"data": [[0.5, 0.3, 0.1]] * 3},
        "sampled": {"data": [[0.8, 0.2, 0.0]] * 3},
        "chosen_probabilities": {"data": [[0.3]] * 3},
    }
    answer = trace(next_token=predicted)
    result = outcome(answer, rule(of="next_token", among=3))
    assert (result.right, [choice.value for choice in result.choices]) == (" x", [" x", " y", " z"])
    assert outcome(answer, rule(of="probability")).right == 0.5
    assert outcome(answer, rule(of="probability", temperature=0.5)).right == 0.8
    assert outcome(answer, rule(of="probability", token=" z")).right == 0.3
    assert outcome(answer, rule(of="probability", token=" z", temperature=0.5)).right == 0.2


def test_an_entry_of_an_experiment_is_found_by_values_of_its_axes():
    arrays = {
        "kind": {"axes": ["kind"], "data": ["plain", "new"]},
        "width": {"axes": ["width"], "data": [1, 4]},
        "loss": {"axes": ["kind", "width", "row"], "data": np.arange(8).reshape(2, 2, 2).tolist()},
    }
    answer = {"arrays": arrays}
    opens = Opens(experiment="x", knobs={"seed": 1})
    loss = {"of": "experiment", "array": "loss"}
    at = {"kind": "new", "width": 4}
    assert outcome(answer, rule(**loss, at={**at, "row": 0}), opens).right == 6
    assert outcome(answer, rule(**loss, at=at, pick="where_greatest"), opens).right == "1"
    assert outcome(answer, rule(**loss, at={"row": 1}, pick="least"), opens).right == 1
    assert outcome(answer, rule(**loss, at={"row": 1}, pick="last"), opens).right == 7
    for wrong in ({"kind": "old"}, {"row": 2}, {"depth": 0}):
        with pytest.raises(ValueError, match="has no"):
            outcome(answer, rule(**loss, at=wrong), opens)
    (ask,) = rule(**loss, knobs={"width": 2}).asks(opens)
    assert (ask.experiment, ask.knobs) == ("x", {"seed": 1, "width": 2})


def test_a_comparison_says_how_the_second_number_differs():
    weight = {"of": "weight", "query": 2}
    for key, right in ((1, "less"), (0, "same")):
        compared = rule(of="compare", first={**weight, "key": 0}, second={**weight, "key": key})
        assert compared.outcome(OPENS, [trace(), trace()]).right == right
    compared = rule(of="compare", first={**weight, "key": 1}, second={**weight, "key": 0})
    assert compared.outcome(OPENS, [trace(), trace()]).right == "more"


def test_a_rule_takes_from_the_step_what_it_does_not_say():
    opens = Opens(text="a b", model="tiny", layer=1)
    (ask,) = rule(of="weight", off={"layer": 0, "heads": [2]}).asks(opens)
    assert (ask.trace.text, ask.trace.model) == ("a b", "tiny")
    assert ask.trace.capture == ["*.layers.1.self_attention.weights"]
    assert [edit.heads for edit in ask.trace.edits] == [[2]]
    with pytest.raises(ValueError, match="layer"):
        rule(of="weight").asks(Opens(text="a"))
    with pytest.raises(ValueError, match="text"):
        rule(of="next_token").asks(Opens())
