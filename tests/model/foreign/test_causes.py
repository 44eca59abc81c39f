"""Cuts, hidden keys and values of a corpus act in foreign models as their definitions say."""

import numpy as np
import pytest

from headlight.model.circuits.cut import Cut
from headlight.model.circuits.parts import parts_of
from headlight.model.generation.sampling import Sampling, generate
from headlight.model.interventions.corpus_edit import CorpusEdit
from headlight.model.interventions.intervention import ImpossibleIntervention
from headlight.model.interventions.knock_out import KnockOut
from headlight.model.interventions.site_edit import SiteEdit
from headlight.model.tracing import tokenize, trace

TEXT, OTHER, TARGET = "The cat sat by the dog.", "The dog sat by the cat.", "the dog"
NAMES = ["gpt2", "llama", "mixtral", "t5"]


@pytest.fixture(params=NAMES)
def model(request, served):
    return served(request.param)


def read(model, text=TEXT, capture=("logits",), interventions=()):
    target = TARGET if model.config.kind == "encoder-decoder" else None
    return trace(model, text, target=target, capture=list(capture), interventions=interventions)


def target_of(model):
    return TARGET if model.config.kind == "encoder-decoder" else None


def test_cutting_every_edge_gives_the_logits_of_the_other_text(model):
    names = parts_of(model).graph.names
    cut = Cut(edges=names, text=OTHER, target=target_of(model))
    logits = read(model, interventions=[cut])["logits"]
    expected = read(model, OTHER)["logits"]
    np.testing.assert_allclose(logits, expected, atol=5e-5)
    assert np.abs(expected - read(model)["logits"]).max() > 1e-3


def test_a_writer_that_the_logits_do_not_read_is_taken_from_the_last_stream(model):
    """Of the logits alone, a cut is the stream without the write, through the model's own end."""
    graph = parts_of(model).graph
    last = model.config.n_layers - 1
    stream = f"decoder.layers.{last}.residual.after"
    middle = f"decoder.layers.{last}.residual.middle"
    cut = Cut(edges=(f"{last}.ff→logits",))
    assert f"{last}.ff→logits" in graph.names
    plain = read(model, capture=[stream, middle, "logits"])
    logits = read(model, interventions=[cut])["logits"]
    bare = SiteEdit(kind="set", site=stream, value=plain[middle])
    expected = read(model, interventions=[bare])["logits"]
    np.testing.assert_allclose(logits, expected, atol=5e-5)
    assert np.abs(logits - plain["logits"]).max() > 1e-3


@pytest.mark.parametrize("renormalised", [True, False])
def test_a_hidden_key_has_no_weight_and_the_rest_of_the_row_keeps_its_shares(model, renormalised):
    site = "decoder.layers.0.self_attention.weights"
    plain = read(model, capture=[site, "logits"])
    row = plain[site].shape[1] - 1
    key = int(plain[site][1, row].argmax())
    hide = KnockOut(
        where="decoder", layer=0, heads=(1,), queries=(row,), keys=(key,), renormalised=renormalised
    )
    hidden = read(model, capture=[site, "logits"], interventions=[hide])
    expected = plain[site].copy()
    expected[1, row, key] = 0
    if renormalised:
        expected[1, row] /= expected[1, row].sum()
    np.testing.assert_allclose(hidden[site], expected, atol=2e-6)
    assert np.abs(hidden["logits"] - plain["logits"]).max() > 1e-6


@pytest.mark.parametrize("draws", ["mean", "token"])
def test_a_site_is_set_to_a_value_of_the_corpus(model, draws):
    stack = "encoder" if model.config.kind == "encoder-decoder" else "decoder"
    site = f"{stack}.layers.0.self_attention.context"
    texts = (TEXT, OTHER)
    edit = CorpusEdit(site=site, heads=(1,), draws=draws, texts=texts, seed=3)
    rows = np.concatenate([read(model, text, [site])[site].transpose(1, 0, 2) for text in texts])
    plain = read(model, capture=[site])[site]
    changed = read(model, capture=[site], interventions=[edit])[site]
    np.testing.assert_array_equal(changed[0], plain[0])
    assert np.ptp(changed[1], axis=0).max() == 0  # the same value everywhere
    if draws == "mean":
        np.testing.assert_allclose(changed[1, 0], rows.mean(axis=0)[1], atol=1e-5)
    else:
        assert any(np.allclose(changed[1, 0], row[1], atol=1e-6) for row in rows)


def test_a_decoder_behind_an_encoder_needs_the_targets_of_its_corpus(served):
    model, site = served("t5"), "decoder.layers.0.cross_attention.context"
    with pytest.raises(ImpossibleIntervention, match="as many targets as texts, 1, not 0"):
        read(model, interventions=[CorpusEdit(site=site, texts=(TEXT,))])
    edit = CorpusEdit(site=site, texts=(OTHER,), targets=(TARGET,))
    rows = read(model, OTHER, [site])[site]
    changed = read(model, capture=[site], interventions=[edit])[site]
    np.testing.assert_allclose(changed[:, 0], rows.mean(axis=1), atol=1e-5)


def test_without_texts_a_foreign_model_has_no_corpus(served):
    edit = CorpusEdit(site="decoder.layers.0.self_attention.context")
    with pytest.raises(ImpossibleIntervention, match="send texts"):
        read(served("gpt2"), interventions=[edit])


@pytest.mark.parametrize("name", ["gpt2", "llama", "mixtral"])
def test_a_generation_has_the_edits_of_the_whole_text(name, served):
    model = served(name)
    edits = [
        Cut(edges=("1.ff→logits",)).with_model(model),
        KnockOut(layer=0, heads=(1,), queries=(3,), keys=(1,)),
    ]
    ids = [token.id for token in tokenize(model, TEXT).tokens]
    greedy = Sampling(temperature=0)
    made = generate(model.writer(tuple(edits)), ids, n_tokens=3, sampling=greedy)
    tokens = [token.id for token in made]
    for step, token in enumerate(tokens):
        logits = trace(model, ids=[*ids, *tokens[:step]], capture=["logits"], interventions=edits)
        assert int(logits["logits"][-1].argmax()) == token
