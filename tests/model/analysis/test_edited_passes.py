"""Patching and saliency against passes with one edit each, run one by one."""

import numpy as np
import pytest

from headlight.model.analysis.edited_passes import EditedPasses, TooManyPasses
from headlight.model.analysis.logit_attribution import LogitDifference
from headlight.model.analysis.patching import patching
from headlight.model.analysis.saliency import saliency
from headlight.model.cancellation import Cancelled, cancellable
from headlight.model.interventions.head_ablation import HeadAblation
from headlight.model.interventions.site_edit import SiteEdit
from headlight.model.tracing import trace

IDS, OTHER, TARGET = [5, 60, 7, 8, 6], [5, 61, 7, 8, 6], "The cat"
AT = LogitDifference(position=3, token=17, against=4)
TARGET_AT = LogitDifference(position=2, token=17, against=4)
KINDS = ["decoder", "encoder", "encoder-decoder"]
EVERY = ("residual", "attention", "feed_forward", "heads")


@pytest.fixture(scope="module")
def subject(make_checkpoint):
    """Return a model of a kind, a reader of its traces, and the prediction: made once."""
    made = {}

    def make(kind, **changes):
        key = (kind, *changes)
        if key not in made:
            made[key] = make_checkpoint(kind=kind, **changes)
        checkpoint = made[key]
        target = TARGET if kind == "encoder-decoder" else None

        def read(ids, edits=()):
            return trace(checkpoint, None, target, ids=ids, capture=["*"], interventions=edits)

        return checkpoint, read, TARGET_AT if target else AT

    return make


def difference_of(traced, at):
    row = traced["logits"][at.position].astype(float)
    return row[at.token] - row[at.against]


@pytest.mark.parametrize("kind", KINDS)
def test_patching_is_each_edit_run_by_itself(subject, kind):
    checkpoint, read, at = subject(kind)
    traced, source = read(IDS), read(OTHER)
    arrays = patching(EditedPasses(checkpoint, traced), source, at, EVERY)
    start, end = difference_of(traced, at), difference_of(source, at)
    np.testing.assert_allclose(arrays["differences"].data, [start, end], atol=1e-5)
    stack = "encoder" if kind != "decoder" else "decoder"
    context = f"{stack}.layers.1.self_attention.context"
    for name, site, part in (
        (f"{stack}.residual", f"{stack}.layers.1.residual.before", {"positions": [1]}),
        (f"{stack}.self_attention", f"{stack}.layers.0.self_attention.output", {"positions": [1]}),
        (f"{stack}.feed_forward", f"{stack}.layers.1.experts.output", {"positions": [1]}),
        (f"{stack}.self_attention.heads", context, {"heads": [1]}),
    ):
        patched = read(IDS, [SiteEdit.patch(source, site, **part)])
        expected = (difference_of(patched, at) - start) / (end - start)
        layer = int(site.split(".")[2])
        assert arrays[name].data[layer, 1] == pytest.approx(expected, abs=1e-3), name


def test_the_changed_embedding_carries_everything_and_the_future_nothing(subject):
    checkpoint, read, at = subject("decoder")
    arrays = patching(EditedPasses(checkpoint, read(IDS)), read(OTHER), at, ["residual"])
    assert set(arrays) == {"differences", "decoder.residual"}
    np.testing.assert_allclose(arrays["decoder.residual"].data[0], [0, 1, 0, 0, 0], atol=1e-4)
    assert arrays["decoder.residual"].data[:, 4].tolist() == [0, 0]


def test_texts_that_cannot_be_patched_are_refused(subject):
    checkpoint, read, at = subject("decoder")
    passes = EditedPasses(checkpoint, read(IDS))
    with pytest.raises(ValueError, match="number of tokens: the first has 5, the second 4"):
        patching(passes, read(IDS[:4]), at)
    with pytest.raises(ValueError, match="same logit difference"):
        patching(passes, read(IDS), at)


def test_rows_of_a_batch_keep_the_interventions_of_the_trace(subject):
    checkpoint, read, at = subject("decoder")
    off = (HeadAblation(heads=(0,), layer=0),)
    edit = SiteEdit(
        kind="scale", site="decoder.layers.1.residual.before", value=2.0, positions=(3,)
    )
    passes = EditedPasses(checkpoint, read(IDS, off), off)
    outcomes = passes.predict([[], [edit], []], at)
    alone = [difference_of(read(IDS, edits), at) for edits in (off, (*off, edit), off)]
    np.testing.assert_allclose(outcomes.differences, alone, atol=1e-5)
    assert abs(alone[0] - alone[1]) > 1e-3


def test_too_many_passes_are_refused_and_a_cancelled_analysis_stops(subject):
    checkpoint, read, at = subject("decoder")
    passes = EditedPasses(checkpoint, read(IDS), max_tokens=2 * len(IDS))
    assert passes.predict([[]] * 2, at).differences.shape == (2,)
    with pytest.raises(TooManyPasses, match="send a shorter text") as caught:
        passes.predict([[]] * 3, at)
    assert (caught.value.actual, caught.value.limit) == (3 * passes.n_tokens, 2 * len(IDS))
    with cancellable(lambda: True), pytest.raises(Cancelled):
        passes.predict([[]], at)


@pytest.mark.parametrize("kind", KINDS)
def test_saliency_is_the_slope_and_the_erasure_of_the_input(subject, kind):
    checkpoint, read, at = subject(kind)
    traced = read(IDS)
    arrays = saliency(EditedPasses(checkpoint, traced), at)
    for stack in [name for name in ("encoder", "decoder") if f"{name}.erasure" in arrays]:
        site = f"{stack}.layers.0.residual.before"
        for position in range(3):
            erased = SiteEdit(kind="set", site=site, value=0.0, positions=(position,))
            lost = difference_of(traced, at) - difference_of(read(IDS, [erased]), at)
            assert arrays[f"{stack}.erasure"].data[position] == pytest.approx(lost, abs=1e-4)
            up, down = (
                difference_of(
                    read(IDS, [SiteEdit(kind="scale", site=site, value=by, positions=(position,))]),
                    at,
                )
                for by in (1.02, 0.98)
            )
            slope = arrays[f"{stack}.gradient_times_input"].data[position]
            assert slope == pytest.approx((up - down) / 0.04, abs=0.02)
