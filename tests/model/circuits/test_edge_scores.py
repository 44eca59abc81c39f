"""Scores of edges: gradients are what finite differences say, and induction is found whole."""

import math
import random

import numpy as np
import pytest
import torch

from headlight.model.circuits.edge_scores import edge_scores, gradient_scores
from headlight.model.circuits.pairs import Pair, PairPasses
from headlight.model.circuits.path_patching import MixedPasses
from headlight.model.config import ExpertsConfig, TransformerConfig
from headlight.model.transformer import Transformer
from tests.model.circuits.graph_models import served

VOCAB, LENGTH = 12, 12
KINDS = {
    "LayerNorm": {"positional": "learned"},
    "RMSNorm, grouped": {"positional": "rotary", "n_kv_heads": 2, "norm": "rms_norm"},
    "experts": {"moe": ExpertsConfig(n_experts=4, top_k=4, layers=(0, 1))},
    "encoder-decoder": {"kind": "encoder-decoder"},
}


def pairs_of(model, count=3):
    draw = random.Random(4)
    made = []
    for _ in range(count):
        clean = [draw.randrange(1, 50) for _ in range(5)]
        corrupted = [*clean]
        corrupted[1] = (clean[1] + 3) % 49 + 1
        target = (1, 5, 9) if model.config.kind == "encoder-decoder" else None
        made.append(
            Pair(
                clean=tuple(clean),
                corrupted=tuple(corrupted),
                right=(7,),
                wrong=(8, 9),
                position=2 if target else 4,
                target=target,
                corrupted_target=target,
            )
        )
    return tuple(made)


@pytest.fixture(params=KINDS, scope="module")
def passes(request):
    model = served(**KINDS[request.param])
    return PairPasses(model, pairs_of(model))


def blended(passes, share):
    """Return D with each edge by itself moved from clean to corrupted by a share."""
    from headlight.model.circuits.pairs import all_but, differences, texts_of

    mixed = MixedPasses(passes.model, passes.parts)
    pairs = list(passes.pairs)
    clean, _ = mixed.writes(*texts_of(pairs, is_clean=True))
    corrupted, _ = mixed.writes(*texts_of(pairs, is_clean=False))
    other = {n: torch.lerp(clean[n], corrupted[n], share) for n in clean}
    every = set(range(passes.edges.n_edges))
    cut = all_but(passes.edges, [every - {n} for n in sorted(every)], torch.device("cpu"))
    logits = mixed.logits(*texts_of(pairs, is_clean=True), cut, other)
    return np.stack([differences(row, pairs).numpy() for row in logits])


def test_the_score_of_eap_is_the_derivative_along_the_edge(passes):
    step = 1e-6
    measured = (blended(passes, step) - blended(passes, -step)).mean(axis=1) / (2 * step)
    scores = edge_scores(passes, "eap")
    assert np.abs(scores).max() > 1e-3
    assert np.allclose(scores, measured, rtol=1e-4, atol=1e-8 * np.abs(scores).max())


def test_scores_by_position_sum_to_the_score_of_the_edge(passes):
    if passes.model.config.kind == "encoder-decoder":
        pytest.skip("its stacks have other positions")
    by_position = gradient_scores(passes, 3, by_position=True)
    assert by_position.shape == (len(passes.graph.edges), 5)
    assert np.allclose(by_position.sum(axis=1), gradient_scores(passes, 3), atol=1e-12)
    assert np.abs(by_position[:, 0]).max() < 1e-12  # the texts begin alike


@pytest.mark.slow
def test_pairs_in_small_batches_score_as_together(passes):
    small = PairPasses(passes.model, passes.pairs, max_bytes=1)
    assert len(list(small.groups())) == 3
    for method in ("eap_ig", "noising", "denoising"):
        assert np.allclose(edge_scores(small, method), edge_scores(passes, method), atol=1e-12)


def test_noising_of_all_edges_at_once_is_the_difference_of_the_texts(passes):
    clean, corrupted = passes.whole()
    assert np.allclose(passes.with_only([[]])[0], corrupted, atol=1e-12)
    assert np.allclose(passes.with_only([[]], is_reversed=True)[0], clean, atol=1e-12)
    every = range(len(passes.graph.edges))
    assert np.allclose(passes.with_only([every])[0], clean, atol=1e-12)


# --- induction, built by hand ---------------------------------------------------------------------


def induction():
    """Return two layers of attention that copy what followed the last token before.

    The stream is [token | position | previous token], so small that ε is all that a norm divides
    by.
    """
    width, epsilon, sharpness, unit = 2 * VOCAB + LENGTH, 0.5, 60.0, 1e-7
    config = TransformerConfig(
        n_layers=2, n_heads=2, d_model=width, d_ff=4, vocab_size=VOCAB, max_tokens=LENGTH,
        positional="learned", norm="rms_norm", norm_epsilon=epsilon, scales_embedding=False,
        activation="relu",
    )  # fmt: skip
    model = Transformer(config).double().eval()
    token, position, previous = (
        slice(a, b) for a, b in ((0, VOCAB), (VOCAB, VOCAB + LENGTH), (VOCAB + LENGTH, width))
    )
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.fill_(math.sqrt(epsilon) / unit if name.endswith("norm.scale") else 0.0)
        model.decoder.norm.scale.fill_(10 * math.sqrt(epsilon) / unit**2)
        embedding = model.decoder.embedding
        embedding.vectors.weight[:, token] = unit * torch.eye(VOCAB, dtype=torch.float64)
        embedding.positions.weight[:, position] = unit * torch.eye(LENGTH, dtype=torch.float64)
        scale = sharpness * math.sqrt(config.d_head)
        first, second = (layer.self_attention for layer in model.decoder.layers)
        for place in range(1, LENGTH):  # the query of a position is the position before it
            first.query_projection.weight[place - 1, VOCAB + place] = scale
        one = torch.eye(VOCAB, dtype=torch.float64)
        first.key_projection.weight[:LENGTH, position] = torch.eye(LENGTH, dtype=torch.float64)
        first.value_projection.weight[:VOCAB, token] = one
        first.output_projection.weight[previous, :VOCAB] = unit * one
        second.query_projection.weight[:VOCAB, token] = scale * one
        second.key_projection.weight[:VOCAB, previous] = one
        second.value_projection.weight[:VOCAB, token] = one
        second.output_projection.weight[token, :VOCAB] = unit * one
    return served(model)


def corrupted_pairs(kind, count=4):
    draw, made = random.Random(1), []
    for _ in range(count):
        letters = draw.sample(range(1, VOCAB), 9)
        trigger, copied, other, *rest = letters
        place = draw.randrange(1, 4)
        clean = [0, *rest[: place - 1], trigger, copied, *rest[place - 1 : 4], trigger]
        corrupted = [*clean]
        if kind == "copied":
            corrupted[clean.index(copied)] = other
        elif kind == "first":
            corrupted[clean.index(trigger)] = rest[-1]
        else:
            corrupted[-1] = rest[-1]
        made.append(
            Pair(
                clean=tuple(clean), corrupted=tuple(corrupted), right=(copied,), wrong=(other,),
                position=len(clean) - 1,
            )
        )  # fmt: skip
    return tuple(made)


CIRCUIT = {
    "copied": {"tokens→1.0.v", "1.0→logits"},
    "first": {"tokens→0.0.v", "0.0→1.0.k", "1.0→logits"},
    "last": {"tokens→1.0.q", "1.0→logits"},
}


@pytest.mark.parametrize("method", ["noising", "eap_ig"])
def test_three_corruptions_show_the_circuit_of_induction_and_nothing_else(method):
    model, union = induction(), set()
    for kind, expected in CIRCUIT.items():
        passes = PairPasses(model, corrupted_pairs(kind))
        scores = edge_scores(passes, method, steps=100)
        seen = {passes.graph.names[n] for n in np.flatnonzero(np.abs(scores) > 1e-6)}
        assert seen == expected
        union |= seen
    assert union == set.union(*CIRCUIT.values())


def test_the_circuit_of_induction_is_all_that_its_run_needs():
    passes = PairPasses(induction(), corrupted_pairs("first"))
    names = set.union(*CIRCUIT.values())
    kept = [passes.graph.edge(name) for name in names]
    clean, corrupted = passes.whole()
    assert np.allclose(passes.with_only([kept])[0], clean, atol=1e-6)
    assert (clean - corrupted).mean() > 5
    for name in CIRCUIT["first"]:
        left = [edge for edge in kept if edge != passes.graph.edge(name)]
        assert np.allclose(passes.with_only([left])[0], corrupted, atol=1e-6)
