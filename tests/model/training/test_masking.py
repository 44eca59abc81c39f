"""Hidden tokens: how many, which, and what stands in their place."""

from itertools import groupby

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headlight.model.training.masking import mask_tokens

START, END, MASK, VOCAB = 0, 1, 2, 1000
N_ROWS, N_TOKENS = 4000, 63


def text(n_rows, n_tokens, seed=0):
    """Rows of ordinary tokens between a start and an end token."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(3, VOCAB, (n_rows, n_tokens + 2), generator=generator)
    ids[:, 0], ids[:, -1] = START, END
    return ids


def mask(ids, *, seed=0, share=0.15, is_maskable=None, words=None):
    return mask_tokens(
        ids,
        mask_id=MASK,
        vocab_size=VOCAB,
        is_maskable=ids > MASK if is_maskable is None else is_maskable,
        generator=torch.Generator().manual_seed(seed),
        share=share,
        special_ids=(START, END),
        words=words,
    )


@pytest.fixture(scope="module")
def ids():
    return text(N_ROWS, N_TOKENS)


@pytest.fixture(scope="module")
def masked(ids):
    return mask(ids)


# --- which tokens ---------------------------------------------------------------------------------


def test_the_share_of_chosen_tokens_is_exact_in_the_mean(ids, masked):
    # 63 · 0.15 = 9.45 tokens a row, rounded up or down: 4000 rows know the mean to 0.008 tokens.
    counts = masked.is_counted.sum(dim=1)
    assert set(counts.tolist()) == {9, 10}
    assert counts.double().mean().item() == pytest.approx(0.15 * N_TOKENS, abs=0.04)


def test_every_place_is_chosen_equally_often(masked):
    # Each of 63 places: 4000 rows know its share to 0.0056; five times that.
    shares = masked.is_counted[:, 1:-1].double().mean(dim=0)
    torch.testing.assert_close(shares, torch.full_like(shares, 0.15), rtol=0, atol=0.028)


def test_what_is_not_chosen_stays(ids, masked):
    assert masked.ids[~masked.is_counted].equal(ids[~masked.is_counted])
    assert masked.targets.equal(ids)


@settings(deadline=None, max_examples=50, database=None)
@given(seed=st.integers(0, 10_000), share=st.sampled_from([0.001, 0.15, 0.6, 1.0]), data=st.data())
def test_a_row_with_anything_to_choose_has_something_chosen(seed, share, data):
    rows = data.draw(st.lists(st.lists(st.booleans(), min_size=5, max_size=5), min_size=1))
    is_maskable = torch.tensor(rows)
    ids = torch.full_like(is_maskable, 7, dtype=torch.long)
    by_words = torch.tensor([[0, 0, 1, 2, 2]]).repeat(len(rows), 1)
    for words in (None, by_words):
        is_counted = mask(
            ids, seed=seed, share=share, is_maskable=is_maskable, words=words
        ).is_counted
        assert not (is_counted & ~is_maskable).any()
        assert is_counted.any(dim=1).equal(is_maskable.any(dim=1))


# --- what stands in their place -------------------------------------------------------------------


def test_replacements_are_ordinary_tokens_all_of_them_equally_often():
    ids = torch.full((4000, 50), 7)
    is_maskable = torch.ones_like(ids, dtype=torch.bool)
    read = mask_tokens(
        ids,
        mask_id=5,
        vocab_size=12,
        is_maskable=is_maskable,
        generator=torch.Generator().manual_seed(0),
        share=1.0,
        special_ids=(0, 11),
    ).ids
    counts = torch.bincount(read.flatten(), minlength=12).double() / read.numel()
    expected = torch.full((12,), 0.1 / 9).double()
    expected[5], expected[7] = 0.8, 0.1 + 0.1 / 9
    expected[0] = expected[11] = 0.0
    # 200,000 tokens know a share of 0.8 to 0.0009.
    torch.testing.assert_close(counts, expected, rtol=0, atol=0.004)
    assert counts[0] == counts[11] == 0
    assert len(counts) == 12


# --- whole words ----------------------------------------------------------------------------------


def words_of(ids, seed=99):
    """Words of one to four tokens, numbered from 0 in every row; −1 for special tokens."""
    generator = torch.Generator().manual_seed(seed)
    is_first = torch.rand(ids.shape, generator=generator) < 0.4
    return (is_first.cumsum(dim=1) + 3).masked_fill(ids <= MASK, -1)


def runs(words, flags):
    """The number of every word of a row, and the flags of its tokens."""
    pairs = zip(words, flags, strict=True)
    return [(word, {flag for _, flag in run}) for word, run in groupby(pairs, key=lambda p: p[0])]


def test_a_word_is_chosen_whole_or_not_at_all(ids):
    ids = ids[:500]
    words = words_of(ids)
    is_counted = mask(ids, words=words).is_counted
    found = [
        run for row in zip(words.tolist(), is_counted.tolist(), strict=True) for run in runs(*row)
    ]
    assert all(len(flags) == 1 for _, flags in found)
    assert all(flags == {False} for word, flags in found if word == -1)
    is_chosen = torch.tensor([flags == {True} for word, flags in found if word >= 0])
    # About 12,700 words know a share of 0.15 to 0.003.
    assert is_chosen.double().mean().item() == pytest.approx(0.15, abs=0.012)
    is_long = (words[:, 1:] == words[:, :-1]) & (words[:, 1:] >= 0)
    assert (is_counted[:, 1:] & is_long).sum() > 500


def test_the_tokens_of_a_word_meet_their_own_fates():
    ids = text(2000, 2)
    words = torch.tensor([[-1, 0, 0, -1]]).repeat(2000, 1)
    read, _, is_counted = mask(ids, words=words)
    assert is_counted[:, 1:3].all()
    n_hidden = (read == MASK).sum(dim=1).bincount(minlength=3) / 2000
    torch.testing.assert_close(n_hidden, torch.tensor([0.04, 0.32, 0.64]), rtol=0, atol=0.06)


def test_a_special_token_is_never_chosen_whatever_else_is_said():
    ids = text(200, 4)
    words = torch.tensor([[-1, 0, -1, -1, 1, -1]]).repeat(200, 1)
    everything = torch.ones_like(ids, dtype=torch.bool)
    is_counted = mask(ids, share=1.0, is_maskable=everything, words=words).is_counted
    assert is_counted.equal(words >= 0)


# --- chance ---------------------------------------------------------------------------------------


def test_the_generator_alone_decides():
    ids = text(50, 30)
    torch.manual_seed(0)
    first = mask(ids, seed=1)
    torch.manual_seed(5)
    second, other = mask(ids, seed=1), mask(ids, seed=2)
    assert first.ids.equal(second.ids)
    assert first.is_counted.equal(second.is_counted)
    assert not first.is_counted.equal(other.is_counted)


@pytest.mark.parametrize("share", [0.0, -0.1, 1.5, float("nan")])
def test_a_share_out_of_range_is_refused(share):
    with pytest.raises(ValueError, match=rf"^share \({share}\)"):
        mask(text(1, 5), share=share)
