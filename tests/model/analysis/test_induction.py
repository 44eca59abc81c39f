"""The induction pair is found in every shipped decoder that has one, and its cut ends the copy."""

import pytest

from headlight.model.analysis.head_labels import SCORES, head_labels
from headlight.model.analysis.induction import FOODS, LEAST_WEIGHT, NAMES, TEXT, induction_in
from headlight.model.checkpoint.loading import ZOO, load
from headlight.model.circuits.cut import Cut
from headlight.model.tracing import TooManyTokens, trace

PAIRED = ("stories", "stories-preferred", "stories-reward", "forming")
OTHERS = ("stories-small", "positions-alibi", "positions-learned", "positions-rotary")
OTHERS += ("positions-sinusoidal", "sums", "sums-direct", "sums-imitation")


@pytest.mark.parametrize("name", PAIRED)
def test_the_pair_is_a_copying_head_and_one_that_reads_the_token_before(name):
    model = load(ZOO / name)
    found = induction_in(model)
    text, cell = found.trace.text, found.cell
    read = trace(model, text, capture=["*.weights"])
    weights = read[f"{cell.path}.weights"][cell.head, cell.query]
    assert weights[cell.key] == pytest.approx(found.weight, abs=1e-5)
    assert text[: read.tokens[cell.key].start].endswith("ate")
    before = read[f"{found.feeder.path}.weights"][found.feeder.head, cell.key]
    assert before.argmax() == cell.key - 1
    assert found.share > 0.4
    layer = cell.path.split(".")[2]
    cut = Cut(edges=(f"{found.feeder.name}→{layer}.{cell.head}.k",)).with_model(model)
    edited = trace(model, text, capture=["*.weights"], interventions=[cut])
    left = edited[f"{cell.path}.weights"][cell.head, cell.query, cell.key]
    assert left < found.weight / 4


@pytest.mark.parametrize("name", OTHERS)
def test_a_decoder_without_one_is_told_so(name):
    model = load(ZOO / name)
    with pytest.raises(ValueError, match=r"reads what followed|reads at most"):
        induction_in(model)
    try:
        labels = head_labels(trace(model, TEXT.format(NAMES[0], FOODS[0], NAMES[0])))
    except TooManyTokens:
        return
    at = SCORES.index("induction")
    scores = [each.data[:, at].max() for site, each in labels.items() if "label_scores" in site]
    assert max(scores) < LEAST_WEIGHT


def test_a_model_that_continues_no_text_has_none():
    with pytest.raises(ValueError, match="fill is no decoder"):
        induction_in(load(ZOO / "fill"))
