"""The space of a head: principal axes by another way, and what is refused."""

import numpy as np
import pytest

from headlight.model.atlas.layout import AtlasError
from headlight.model.atlas.matching import heads_of, moved
from headlight.model.atlas.space import MOST_SENTENCES, between, principal, space, texts_of
from headlight.model.checkpoint.loading import ZOO, load
from headlight.model.corpus import CorpusError
from headlight.model.tracing import pass_spec, run_batch

PATH = "decoder.layers.1.self_attention"


@pytest.fixture(scope="module")
def model():
    return load(ZOO / "stories")


def test_axes_are_those_of_the_covariance():
    vectors = np.random.default_rng(1).normal(size=(60, 5)) * [5, 3, 1, 1, 1] + 7
    values, directions = np.linalg.eigh(np.cov(vectors.T))
    shares, places = principal(vectors)
    assert shares == pytest.approx(values[::-1][:2] / values.sum())
    wanted = (vectors - vectors.mean(axis=0)) @ directions[:, ::-1][:, :2]
    assert np.abs(places) == pytest.approx(np.abs(wanted))


def test_places_told_by_names_are_between_groups():
    names = np.array(["a", "b"] * 20)
    places = np.where(names == "a", 1.0, -1.0)[:, None] * [3, 1]
    assert between(places, names) == pytest.approx(1)
    assert between(places, np.array(["a", "a", "b", "b"] * 10)) == pytest.approx(0)


def test_outputs_are_what_the_head_writes_and_scores_those_of_the_pass(model):
    found = {kind: space(model, PATH, 1, kind) for kind in ("outputs", "reads")}
    inputs = texts_of(model)
    assert len(inputs) == len(found["outputs"]["sentences"]) == MOST_SENTENCES
    spec = pass_spec(
        model.description,
        capture=[f"{PATH}.{name}" for name in ("context", "scores", "queries", "keys")],
    )
    traces = run_batch(model, spec, inputs)
    contexts = [trace.tensors[f"{PATH}.context"].data[1, 1:] for trace in traces]
    written = np.concatenate(contexts).astype(np.float64) @ model.output_weights(PATH).data[1]
    values = np.linalg.eigvalsh(np.cov(written.T))[::-1]
    assert found["outputs"]["n_vectors"] == len(written)
    assert found["outputs"]["shares"] == pytest.approx(values[:2] / values.sum(), rel=1e-3)
    assert np.greater(found["outputs"]["shares"], found["outputs"]["controls"]).all()
    means = {
        name: np.concatenate([of.tensors[f"{PATH}.{name}"].data[1, 1:] for of in traces]).mean(0)
        for name in ("queries", "keys")
    }
    for point in [each for each in found["reads"]["points"] if each["side"] == "query"][::97]:
        trace, token = traces[point["sentence"]], point["token"]
        seen = trace.tensors[f"{PATH}.scores"].data[1, token, 1 : token + 1]
        assert point["score"] == pytest.approx(float(seen.max()), abs=1e-4)
        assert point["mean_score"] == pytest.approx(float(seen.mean()), abs=1e-4)
        assert point["read"] == trace.tokens[1 + int(seen.argmax())].text
        query = trace.tensors[f"{PATH}.queries"].data[1, token] - means["queries"]
        keys = trace.tensors[f"{PATH}.keys"].data[1, 1 : token + 1] - means["keys"]
        far = np.linalg.norm(keys - query, axis=1)
        assert point["distance"] == pytest.approx(far[seen.argmax()], abs=1e-4)
        assert point["mean_distance"] == pytest.approx(far.mean(), abs=1e-4)


def test_what_cannot_be_shown_is_said(model, make_checkpoint):
    with pytest.raises(AtlasError, match="no head 9"):
        space(model, PATH, 9, "reads")
    with pytest.raises((AtlasError, CorpusError), match="sentence"):
        texts_of(make_checkpoint(max_tokens=12, moe=None))
    with pytest.raises(AtlasError, match="reads problems"):
        texts_of(load(ZOO / "sums"))


def test_heads_of_another_model_are_compared_where_both_cut_texts_alike(model):
    other = load(ZOO / "stories-preferred")
    pairs = [(head, head) for head in heads_of(model.description.heads)]
    texts, (same, _) = moved(model, model, pairs)
    assert same.shape == (24, len(texts)) == (24, MOST_SENTENCES)
    assert same.max() == pytest.approx(0, abs=1e-6)
    _, (tuned, by_chance) = moved(model, other, pairs)
    assert 0 < tuned.mean() < by_chance.mean()
    spec = pass_spec(model.description, capture=["*.weights"])
    a, b = (run_batch(each, spec, texts_of(model)[:1])[0] for each in (model, other))
    for shares, head in ((tuned, pairs[7][0]), (by_chance, pairs[8][0])):
        rows = [a.tensors[f"{pairs[7][0].attention}.weights"].data[pairs[7][0].number, 1:]]
        rows += [b.tensors[f"{head.attention}.weights"].data[head.number, 1:]]
        assert shares[7, 0] == pytest.approx(np.abs(rows[0] - rows[1]).sum(axis=1).mean() / 2)
    assert moved(model, load(ZOO / "forming"), pairs)[0] == []
