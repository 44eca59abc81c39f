"""Every figure on the cards of the `positions-*` twins."""

import math

import pytest
import torch

from headlight.lab.evaluation.positions import evaluate
from headlight.lab.training.losses import token_losses
from headlight.model.corpus import CorpusError, TokenStream

DOCUMENTS = ["Q" * 400]
TRAINED = 16


@pytest.fixture(scope="module")
def decoder(make_checkpoint):
    return make_checkpoint(moe=None)


def sure_from(place, decoder):
    """Know nothing before a place, and everything from it on: the text holds one token only."""
    ((token,),) = decoder.tokenizer.encode_ids(["Q"])

    def change(logits):
        logits = torch.zeros_like(logits)
        logits[:, place:, token] = 100
        return logits

    return change


@pytest.mark.parametrize(
    ("place", "inside", "beyond"),
    [
        (0, 0, 0),
        (TRAINED // 2, math.log2(300) / 2, 0),
        (TRAINED, math.log2(300), 0),
        (TRAINED + TRAINED // 4, math.log2(300), math.log2(300) / 4),
        (2 * TRAINED, math.log2(300), math.log2(300)),
    ],
)
def test_losses_are_kept_apart_at_the_trained_length(decoder, place, inside, beyond):
    with decoder.model.edit("logits", sure_from(place, decoder)):
        bits = evaluate(decoder, DOCUMENTS, trained_tokens=TRAINED)["bits_per_token"]
    assert bits["inside_trained_length"] == pytest.approx(inside, abs=2e-3 * inside)
    # The document's end token lies in no row or in the last one.
    assert bits["at_twice_the_length"] == pytest.approx(beyond, abs=2e-3 * beyond)


def test_the_loss_inside_is_that_of_the_rows_read_alone(decoder):
    text = ["The cat chased the mouse. " * 40]
    ids = TokenStream.encode(text, decoder.tokenizer).ids
    rows = ids[: len(ids) // 32 * 32].view(-1, 32)[:, :TRAINED]
    padded = torch.cat([torch.full((len(rows), 1), decoder.tokenizer.start_id), rows], dim=1)
    with torch.inference_mode():
        expected = token_losses(decoder.model(padded[:, :-1]).logits, rows).mean().item()
    figures = evaluate(decoder, text, trained_tokens=TRAINED)
    inside = figures["bits_per_token"]["inside_trained_length"]
    assert inside == pytest.approx(expected / math.log(2), abs=1e-4)
    assert figures["rows"] == len(rows)


def test_learned_positions_have_no_loss_beyond_their_table(make_checkpoint):
    learned = make_checkpoint(moe=None, positional="learned", max_tokens=TRAINED)
    figures = evaluate(learned, DOCUMENTS, trained_tokens=TRAINED)
    assert figures["bits_per_token"]["at_twice_the_length"] is None
    assert figures["bits_per_token"]["inside_trained_length"] > 0
    with learned.model.edit("logits", torch.zeros_like):
        figures = evaluate(learned, DOCUMENTS, trained_tokens=TRAINED)
    inside = figures["bits_per_token"]["inside_trained_length"]
    assert inside == pytest.approx(math.log2(300))


def test_how_far_heads_look_is_measured_by_layer(decoder):
    def look_back(weights):
        """Half the heads at the token before, the others at the token itself."""
        eye = torch.eye(weights.shape[-1])
        before = torch.diag(torch.ones(weights.shape[-1] - 1), -1)
        return torch.stack([eye, before, eye, before])[None].expand_as(weights).to(weights)

    with decoder.model.edit("decoder.layers.1.self_attention.weights", look_back):
        by_layer = evaluate(decoder, DOCUMENTS, trained_tokens=TRAINED)["attention_by_distance"]
    assert list(by_layer) == ["layer_0", "layer_1"]
    assert by_layer["layer_1"] == {
        "distance_0": 0.5,
        "distance_1": 0.5,
        "distance_2": 0,
        "distance_4": 0,
        "distance_8": 0,
    }
    assert list(by_layer["layer_0"]) == list(by_layer["layer_1"]), "no distance beyond the length"
    assert 0 < by_layer["layer_0"]["distance_8"] < 1


def test_a_text_shorter_than_a_row_is_rejected(decoder):
    with pytest.raises(CorpusError, match="at least 32"):
        evaluate(decoder, ["Q" * 30], trained_tokens=TRAINED)
    figures = evaluate(decoder, ["Q" * 31], trained_tokens=TRAINED)
    assert figures["rows"] == 1


def test_rows_are_spread_over_the_whole_text(decoder):
    """The beginning of a text is one book; the figures are of all of them."""
    length = 2 * TRAINED
    texts = [f"{letter * (10 * length - 1)}\n" for letter in "QRST"]
    of_all = evaluate(decoder, ["".join(texts)], trained_tokens=TRAINED, n_rows=4)
    ids = TokenStream.encode(["".join(texts)], decoder.tokenizer).ids
    rows = ids[: len(ids) // length * length].view(-1, length)
    chosen = rows[[place * len(rows) // 4 for place in range(4)]]
    assert len({int(row[1]) for row in chosen}) == 4
    padded = torch.cat([torch.full((4, 1), decoder.tokenizer.start_id), chosen], dim=1)
    with torch.inference_mode():
        losses = token_losses(decoder.model(padded[:, :-1]).logits, chosen)
    expected = losses[:, :TRAINED].mean().item() / math.log(2)
    assert of_all["bits_per_token"]["inside_trained_length"] == pytest.approx(expected, abs=1e-4)
