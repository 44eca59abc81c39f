"""The riddles of a model: their heads are those that its profile names, in a cell that shows it."""

import pytest

from headlight import load, trace
from headlight.chapters.riddles import KINDS, riddles_in


@pytest.mark.parametrize("name", ["stories", "fill"])
def test_a_riddle_is_the_clearest_head_of_its_kind_in_a_cell_that_shows_it(name):
    model = load(name)
    values = riddles_in(model)
    assert values["sentences"] == "50"
    profile = model.description.card.heads["attentions"]
    layer, head = values["a_layer"], int(values["a_head"])
    stack = "decoder" if name == "stories" else "encoder"
    path = f"{stack}.layers.{layer}.self_attention"
    (score,) = (kind for kind, (does, _) in KINDS.items() if does == values["a_does"])
    best = max(
        (heads["labels"].get(score, 0), of, number)
        for of, all_heads in profile.items()
        for number, heads in enumerate(all_heads)
    )
    assert best[1:] == (path, head)
    row = trace(model, values["a_text"])[f"{path}.weights"][head, int(values["a_query"])]
    assert row.argmax() == int(values["a_key"])
    assert row.max() > 0.9
    assert len({values[f"{letter}_does"] for letter in "abc"}) == 3


def test_a_translator_has_none():
    with pytest.raises(ValueError, match="over one text, not translate"):
        riddles_in(load("translate"))
