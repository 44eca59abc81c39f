"""A batch is many texts, and every text is alone in it."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from headlight.model.checkpoint.loading import ZOO, load
from headlight.model.config import KINDS, ExpertsConfig
from headlight.model.interventions.head_ablation import HeadAblation
from headlight.model.interventions.no_scaling import NoScaling
from headlight.model.interventions.temperature import Temperature
from headlight.model.served import pad
from headlight.model.tracing import (
    group_by_length,
    pass_spec,
    run_batch,
    tokenize,
    with_translations,
)

MOE = ExpertsConfig(n_experts=4, top_k=2, layers=(1,))
SCHEMES = {
    "sinusoidal, experts": {"moe": MOE},
    "learned, post-norm": {"positional": "learned", "norm_place": "post"},
    "rotary, shared keys": {"positional": "rotary", "n_kv_heads": 2},
    "ALiBi": {"positional": "alibi"},
}
ARCHITECTURES = {
    f"{kind}, {name}": {"kind": kind, "moe": None} | scheme
    for kind in KINDS
    for name, scheme in SCHEMES.items()
}
INTERVENTIONS = {
    "none": (),
    "bent": (HeadAblation(heads=(1,)), NoScaling(layer=0), Temperature(value=2.0, layer=1)),
}
TEXTS = st.text("abcde fgh", min_size=1, max_size=40).filter(str.strip)
SENTENCES = (
    "Once upon a time there was a little fox.",
    "Hello",
    "The old man and the girl walked slowly along the river until the sun went down behind it.",
)


def require_equal(batched, alone):
    """Check that texts and sites are equal, numbers to 1e-5, and -inf in the same places."""
    assert (batched.tokens, batched.target_tokens) == (alone.tokens, alone.target_tokens)
    assert list(batched.tensors) == list(alone.tensors)
    for site, array in alone.tensors.items():
        found = batched.tensors[site]
        assert (found.axes, found.data.dtype) == (array.axes, array.data.dtype), site
        assert found.data.shape == array.data.shape, site
        size = max(1.0, float(np.abs(array.data[np.isfinite(array.data)]).max(initial=0)))
        np.testing.assert_allclose(found.data, array.data, rtol=0, atol=1e-5 * size, err_msg=site)


def require_as_alone(checkpoint, spec, inputs):
    for batched, read in zip(run_batch(checkpoint, spec, inputs), inputs, strict=True):
        require_equal(batched, run_batch(checkpoint, spec, [read])[0])


@pytest.fixture(scope="module")
def checkpoint_of(make_checkpoint):
    return cache(lambda name: make_checkpoint(**ARCHITECTURES[name]))


@pytest.mark.parametrize("name", ARCHITECTURES)
# Examples are small as they are; to make a failing one smaller still would take minutes.
@settings(max_examples=4, deadline=None, phases=[Phase.generate])
@given(
    texts=st.lists(st.tuples(TEXTS, TEXTS), min_size=2, max_size=4),
    heads=st.sampled_from([None, (3,), (2, 0)]),
    changes=st.sampled_from(sorted(INTERVENTIONS)),
)
def test_every_text_of_a_batch_has_the_numbers_that_it_has_alone(
    checkpoint_of, name, texts, heads, changes
):
    checkpoint = checkpoint_of(name)
    has_target = checkpoint.config.kind == "encoder-decoder"
    spec = pass_spec(
        checkpoint.description, capture=["*"], heads=heads, interventions=INTERVENTIONS[changes]
    )
    inputs = [tokenize(checkpoint, text, target if has_target else None) for text, target in texts]
    require_as_alone(checkpoint, spec, inputs)


@pytest.mark.slow
@pytest.mark.parametrize("folder", sorted(path.name for path in ZOO.iterdir() if path.is_dir()))
def test_the_models_that_ship_read_sentences_together_as_they_read_them_alone(folder):
    checkpoint = load(ZOO / folder)
    spec = pass_spec(checkpoint.description, capture=["*"])
    longest = checkpoint.config.max_tokens - 2
    inputs = [tokenize(checkpoint, text[:longest]) for text in SENTENCES]
    together = with_translations(checkpoint, inputs)
    assert together == [
        replace(with_translations(checkpoint, [one])[0], timings=two.timings)
        for one, two in zip(inputs, together, strict=True)
    ]
    require_as_alone(checkpoint, spec, together)


def test_traces_of_one_batch_share_no_memory(checkpoint):
    spec = pass_spec(checkpoint.description, capture=["*"])
    first, second = run_batch(checkpoint, spec, [tokenize(checkpoint, t) for t in ("abc", "abd")])
    for site, array in first.tensors.items():
        assert not np.shares_memory(array.data, second.tensors[site].data), site
        assert array.data.flags.c_contiguous, site


def test_inputs_without_a_target_are_translated_together_and_others_stay(make_checkpoint):
    translator = make_checkpoint(kind="encoder-decoder", moe=None)
    inputs = [tokenize(translator, *texts) for texts in (("abc",), ("a", "b"), ("cab a",))]
    found = with_translations(translator, inputs)
    assert found[1] is inputs[1]
    assert [read.text for read in found] == ["abc", "a", "cab a"]
    for read in (found[0], found[2]):
        (alone,) = with_translations(translator, [tokenize(translator, read.text)])
        assert (read.target, read.target_tokens) == (alone.target, alone.target_tokens)
        assert set(read.timings) == {"tokenize", "translate"}


def test_rows_are_filled_up_to_the_longest_and_marked_only_where_they_are():
    rows = pad([[5, 6], [7, 8, 9]])
    assert rows.ids.tolist() == [[5, 6, 0], [7, 8, 9]]
    assert rows.is_token is not None
    assert rows.is_token.tolist() == [[True, True, False], [True, True, True]]
    assert pad([[1, 2], [3, 4]]).is_token is None


LENGTHS = st.lists(st.integers(1, 300), min_size=1, max_size=7)


def test_a_long_text_is_not_read_together_with_short_ones():
    assert group_by_length([5, 250, 6, 5]) == [[0, 3, 2], [1]]


@given(lengths=LENGTHS, n_most=st.integers(1, 600))
def test_a_pass_of_several_texts_has_no_more_tokens_than_it_may(lengths, n_most):
    for texts in group_by_length(lengths, max_size=n_most):
        assert len(texts) == 1 or len(texts) * max(lengths[text] for text in texts) <= n_most


def test_a_pass_holds_no_more_than_it_may_where_rows_are_as_large_as_the_largest():
    assert group_by_length([5, 5, 5], sizes=[1, 30, 1], max_size=60) == [[0], [1, 2]]
    assert group_by_length([5, 5, 5], sizes=[1, 30, 1], max_size=59) == [[0], [1], [2]]
    assert group_by_length([5, 5, 5], sizes=[1, 30, 1], max_size=90) == [[0, 1, 2]]
