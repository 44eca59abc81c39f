"""Cut edges, hidden keys and values of a corpus, as interventions in a pass."""

import numpy as np
import pytest

from headlight.model.checkpoint.loading import load
from headlight.model.circuits.cut import Cut
from headlight.model.circuits.graph import UnknownEdge
from headlight.model.circuits.pairs import Pair, PairPasses
from headlight.model.generation.sampling import Sampling, generate
from headlight.model.interventions.corpus_edit import CorpusEdit, profile_texts
from headlight.model.interventions.intervention import ImpossibleIntervention
from headlight.model.interventions.knock_out import KnockOut
from headlight.model.tracing import trace

CLEAN, OTHER = "The dogs with the girl", "The dog with the girl"
WEIGHTS = "decoder.layers.3.self_attention.weights"
CONTEXT = "decoder.layers.3.self_attention.context"


@pytest.fixture(scope="module")
def model():
    return load("stories-small")


def logits(model, interventions=(), text=CLEAN):
    read = trace(model, text, capture=["logits"], interventions=interventions)
    return read["logits"]


def test_cutting_every_edge_gives_the_other_text(model):
    from headlight.model.circuits.parts import parts_of

    names = parts_of(model).graph.names
    cut = logits(model, [Cut(edges=names, text=OTHER)])
    np.testing.assert_allclose(cut, logits(model, text=OTHER), atol=1e-4)
    assert np.abs(cut - logits(model)).max() > 0.1


def test_a_cut_edge_is_the_circuit_of_all_others(model):
    def ids(text):
        return tuple(token.id for token in model.tokenizer.encode(text))

    pair = Pair(
        clean=ids(CLEAN), corrupted=ids(OTHER), right=(5,), wrong=(9,), position=len(ids(CLEAN)) - 1
    )
    passes = PairPasses(model, (pair,))
    edge = passes.graph.edge("3.0→logits")
    others = [n for n in range(len(passes.graph.edges)) if n != edge]
    expected = passes.with_only([others])[0, 0]
    row = logits(model, [Cut(edges=("3.0→logits",), text=OTHER)])[-1]
    assert row[5] - row[9] == pytest.approx(expected, abs=1e-4)


def test_a_cut_at_a_position_leaves_the_others(model):
    plain = logits(model)
    cut = logits(model, [Cut(edges=("3.ff→logits",), positions=(4,))])
    np.testing.assert_array_equal(plain[[0, 1, 2, 3, 5]], cut[[0, 1, 2, 3, 5]])
    assert np.abs(plain[4] - cut[4]).max() > 0.1


def test_edges_may_have_a_position_each(model):
    plain = logits(model)
    cut = logits(model, [Cut(edges=("3.ff→logits@4", "3.0->logits@2"))])
    np.testing.assert_array_equal(plain[[0, 1, 3, 5]], cut[[0, 1, 3, 5]])
    assert min(np.abs(plain[at] - cut[at]).max() for at in (2, 4)) > 1e-3
    same = logits(model, [Cut(edges=("3.ff→logits",), positions=(4,))])
    np.testing.assert_allclose(same[4], cut[4], atol=1e-5)
    with pytest.raises(ImpossibleIntervention, match="have a position"):
        logits(model, [Cut(edges=("3.ff→logits@4", "3.0→logits"))])


def test_an_expert_is_cut_apart_from_the_others():
    model = load("stories")
    plain = logits(model)
    names = [f"3.e{n}→logits" for n in range(model.config.moe.n_experts)]
    together = logits(model, [Cut(edges=tuple(names), text=OTHER)])
    layer = logits(model, [Cut(edges=("3.ff→logits",), text=OTHER)])
    np.testing.assert_allclose(together, layer, atol=2e-4)
    moved = [
        np.abs(logits(model, [Cut(edges=(name,), text=OTHER)]) - plain).max() for name in names
    ]
    assert max(moved) > 1e-2
    assert min(moved) < max(moved) / 10  # not every expert is chosen in these texts


def test_another_text_has_as_many_tokens(model):
    with pytest.raises(ImpossibleIntervention, match="has 3 tokens, and this one has 6"):
        logits(model, [Cut(edges=("3.0→logits",), text="The dogs")])


def test_an_unknown_edge_is_refused(model):
    with pytest.raises(UnknownEdge, match="did you mean"):
        logits(model, [Cut(edges=("3.0→logit",))])


def test_a_generation_keeps_its_cut_at_every_step(model):
    cut = Cut(edges=("3.ff→logits", "2.ff→3.0.v")).with_model(model)
    ids = [token.id for token in model.tokenizer.encode(CLEAN)]
    writer = model.writer([cut])
    greedy = Sampling(temperature=0)
    tokens = [token.id for token in generate(writer, ids, n_tokens=4, sampling=greedy)]
    for step in range(4):
        text = model.tokenizer.decode([*ids, *tokens[:step]])
        read = trace(model, ids=[*ids, *tokens[:step]], capture=["logits"], interventions=[cut])
        assert int(read["logits"][-1].argmax()) == tokens[step], text


@pytest.mark.parametrize("renormalised", [True, False])
def test_a_hidden_key_has_no_weight(model, renormalised):
    hidden = KnockOut(queries=(5, 4), keys=(2,), layer=3, heads=(1,), renormalised=renormalised)
    plain = trace(model, CLEAN, capture=[WEIGHTS])[WEIGHTS]
    seen = trace(model, CLEAN, capture=[WEIGHTS], interventions=[hidden])[WEIGHTS]
    assert (seen[1, [4, 5], 2] == 0).all()
    np.testing.assert_array_equal(seen[0], plain[0])
    np.testing.assert_array_equal(seen[1, :4], plain[1, :4])
    sums = seen[1, [4, 5]].sum(axis=-1)
    expected = 1 if renormalised else 1 - plain[1, [4, 5], 2]
    np.testing.assert_allclose(sums, expected, atol=1e-6)


def test_a_row_needs_a_key(model):
    with pytest.raises(ImpossibleIntervention, match="no key at all"):
        logits(model, [KnockOut(queries=(1,), keys=(0, 1), layer=0)])


def test_a_head_is_set_to_its_mean_over_the_sentences_of_its_profile(model):
    edit = CorpusEdit(site=CONTEXT, heads=(2,), positions=(3,))
    read = trace(model, CLEAN, capture=[CONTEXT], interventions=[edit])[CONTEXT]
    texts = [text for text, _ in profile_texts(model)]
    contexts = [trace(model, text, capture=[CONTEXT])[CONTEXT][2] for text in texts]
    np.testing.assert_allclose(read[2, 3], np.concatenate(contexts).mean(axis=0), atol=1e-5)
    plain = trace(model, CLEAN, capture=[CONTEXT])[CONTEXT]
    np.testing.assert_array_equal(read[:2], plain[:2])


def test_a_resampled_value_is_that_of_a_token_of_the_corpus(model):
    texts = ("The cat sat.", "A dog ran home.")
    edit = CorpusEdit(site=CONTEXT, draws="token", texts=texts, seed=3)
    read = trace(model, CLEAN, capture=[CONTEXT], interventions=[edit])[CONTEXT]
    rows = np.concatenate(
        [trace(model, text, capture=[CONTEXT])[CONTEXT] for text in texts], axis=1
    )
    distances = np.abs(rows - read[:, :1]).max(axis=(0, 2))
    assert distances.min() < 1e-5
    np.testing.assert_allclose(read[:, 0], read[:, 4], atol=1e-6)


def test_a_mean_needs_a_site_without_keys_and_a_corpus(model):
    with pytest.raises(ImpossibleIntervention, match="pair of tokens"):
        logits(model, [CorpusEdit(site=WEIGHTS)])
