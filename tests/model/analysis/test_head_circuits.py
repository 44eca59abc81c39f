"""The circuits of heads, compared with passes whose first layer reads only embeddings."""

from dataclasses import replace

import numpy as np
import pytest

from headlight.model.analysis.head_circuits import head_circuits, token_embeddings
from headlight.model.analysis.logit_attribution import LogitDifference, logit_attribution
from headlight.model.trace import AttentionFacts, Token

IDS, TARGET = [5, 6, 7, 8, 6], [9, 10, 11]
AT = LogitDifference(position=2, token=17, against=4)
BARE = {"positional": "none"}
VARIANTS = [
    BARE,
    {**BARE, "norm": "rms_norm"},
    {**BARE, "n_kv_heads": 2, "scales_embedding": False},
    {**BARE, "kind": "encoder"},
    {**BARE, "kind": "encoder-decoder"},
]


def tokens_of(ids):
    return tuple(
        Token(id=token_id, text=str(token_id), start=at, end=at + 1, word=at, is_special=False)
        for at, token_id in enumerate(ids)
    )


@pytest.fixture
def circuits(make_model, read, parameters_of, checkpoint_of):
    """Return a trace, its circuits over the vocabulary, and a logit difference's parts."""

    def run(heads=None, top=None, ids=IDS, **changes):
        model = make_model(**changes)
        config = model.config
        is_pair = config.kind == "encoder-decoder"
        attentions = {
            path: AttentionFacts(
                path=path, is_causal=False, n_heads=config.n_heads, n_groups=config.n_groups,
                scale=config.d_head**-0.5,
            )
            for path, module in model.named_modules()
            if path.endswith("_attention")
        }  # fmt: skip
        checkpoint = checkpoint_of(model, attentions.values())
        trace = replace(
            read(model, list(ids), *([TARGET] if is_pair else []), heads=heads),
            tokens=tokens_of(ids),
            target_tokens=tokens_of(TARGET) if is_pair else None,
            attentions=attentions,
        )
        embeddings = token_embeddings(checkpoint.weights(), config)
        exit_of, graph = checkpoint.linear_exit, checkpoint.graph_weights()
        result = head_circuits(trace, graph, embeddings, exit_of, config, top or config.vocab_size)
        at = replace(AT, position=len(TARGET if is_pair else ids) - 1)
        parts = logit_attribution(trace, checkpoint.linear_exit, parameters_of(model), at)
        return trace, result, parts

    return run


def by_token(result, name, unit):
    """(head, position, token): the values of every token of the vocabulary."""
    ids, values = (result.arrays[f"{name}_{end}"].data for end in ("ids", unit))
    table = np.empty(values.shape)
    np.put_along_axis(table, ids, values, axis=-1)
    return table


@pytest.mark.parametrize("changes", VARIANTS, ids=str)
def test_in_the_first_layer_scores_and_contributions_are_those_of_the_pass(circuits, changes):
    trace, result, parts = circuits(**changes)
    stack = "encoder" if changes.get("kind") == "encoder" else "decoder"
    path = f"{stack}.layers.0.self_attention"
    is_pair = changes.get("kind") == "encoder-decoder"
    ids = TARGET if is_pair else IDS
    sought = by_token(result, f"{path}.sought", "scores")[:, :, ids]
    scores = trace[f"{path}.scores"]
    seen = np.isfinite(scores)
    np.testing.assert_allclose(sought[seen], scores[seen], rtol=0, atol=1e-5)
    written = by_token(result, f"{path}.written", "logits")
    last = trace[f"{path}.weights"][:, -1]
    made = last * (written[..., AT.token] - written[..., AT.against])
    np.testing.assert_allclose(parts.arrays["self_attention.keys"].data[0], made, rtol=0, atol=1e-5)
    assert result.omitted.keys() == (
        {f"encoder.layers.{layer}.self_attention.written" for layer in (0, 1)} if is_pair else set()
    )


def test_heads_ranks_and_copying_are_those_of_the_whole_matrix(circuits):
    _, whole, _ = circuits(**BARE)
    _, some, _ = circuits(heads=(1,), top=3, **BARE)
    path = "decoder.layers.1.self_attention"
    for name in ("written_ids", "written_logits", "sought_ids", "sought_scores"):
        expected = whole.arrays[f"{path}.{name}"].data[1:2, :, :3]
        np.testing.assert_allclose(some.arrays[f"{path}.{name}"].data, expected, atol=1e-5)
    assert some.arrays[f"{path}.copying"].data == pytest.approx(
        whole.arrays[f"{path}.copying"].data[1:2]
    )
    assert np.abs(whole.arrays[f"{path}.copying"].data).max() <= 1


def test_copying_is_that_of_the_eigenvalues_of_the_whole_circuit(circuits):
    _, result, _ = circuits(ids=range(40), vocab_size=40, max_tokens=40, **BARE)
    path = "decoder.layers.1.self_attention"
    for matrix, copying in zip(
        by_token(result, f"{path}.written", "logits"),
        result.arrays[f"{path}.copying"].data,
        strict=True,
    ):
        values = np.linalg.eigvals(matrix)
        assert copying == pytest.approx(values.sum().real / np.abs(values).sum(), abs=1e-3)


def test_too_many_numbers_are_refused(circuits, monkeypatch):
    monkeypatch.setattr("headlight.model.analysis.head_circuits.MAX_PRODUCTS", 10)
    with pytest.raises(ValueError, match="more than the 10 that are allowed; ask for fewer heads"):
        circuits(**BARE)
