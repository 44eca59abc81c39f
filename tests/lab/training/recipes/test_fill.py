"""The recipe `fill`: rows of several lengths with some tokens hidden, and which."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headlight.lab.training.batches import Material
from headlight.lab.training.recipes.fill import FillBatches, FillConfig, mask_tokens
from headlight.model.corpus import CorpusError, TokenStream
from headlight.model.tokenizer import train_tokenizer

DOCUMENTS = [
    "".join(f"Number {n} saw the cat of number {n + 1}, and left.\n" for n in range(first, end))
    for first, end in ((0, 60), (60, 61), (61, 140))
]
SMALL = FillConfig(lengths=(5, 9, 17), batch_tokens=60, share=0.3, held_out=6)


@pytest.fixture(scope="module")
def masked_tokenizer():
    return train_tokenizer(DOCUMENTS, 300, has_mask=True)


@pytest.fixture(scope="module")
def stream(masked_tokenizer):
    return TokenStream.encode(DOCUMENTS, masked_tokenizer)


@pytest.fixture(scope="module")
def batches(stream, masked_tokenizer):
    return make_batches(stream, masked_tokenizer)


def make_batches(stream, tokenizer, config=SMALL, *, max_tokens=18, seed=0):
    return FillBatches(stream, Material(None, tokenizer, max_tokens, config, seed))


def same(first, second):
    return all(
        torch.equal(getattr(first, name), getattr(second, name))
        for name in ("ids", "targets", "is_counted")
    )


def windows(ids, length):
    return set(map(tuple, ids.unfold(0, length, 1).tolist()))


def test_every_length_has_its_turn(batches):
    shapes = [tuple(batches.batch(step).ids.shape) for step in range(6)]
    assert shapes == 2 * [(12, 6), (6, 10), (3, 18)]


def test_rows_are_the_corpus_after_a_start_token(batches, stream, masked_tokenizer):
    for step in range(9):
        rows = batches.batch(step).targets
        assert (rows[:, 0] == masked_tokenizer.start_id).all()
        assert set(map(tuple, rows[:, 1:].tolist())) <= windows(stream.ids, rows.shape[1] - 1)


def test_a_step_decides_its_batch(batches, stream, masked_tokenizer):
    again = make_batches(stream, masked_tokenizer)
    assert all(same(again.batch(step), batches.batch(step)) for step in (7, 3, 0))
    other = make_batches(stream, masked_tokenizer, seed=1)
    assert not torch.equal(other.batch(0).targets, batches.batch(0).targets)
    assert not torch.equal(other.batch(0).is_counted, batches.batch(0).is_counted)


def test_an_epoch_trains_on_every_row_once(batches):
    for kind, rows in enumerate(batches.rows):
        n_rows, seen = len(rows.starts), []
        step = kind
        while len(seen) < n_rows:
            seen += list(map(tuple, batches.batch(step).targets.tolist()))
            step += len(batches.rows)
        starts = (rows.stream.ids[rows.starts[:, None] + torch.arange(rows.length)]).tolist()
        assert sorted(row[1:] for row in seen[:n_rows]) == sorted(map(tuple, starts))


def test_no_token_is_both_trained_on_and_held_out(batches, stream):
    starts = stream.row_starts(17)
    held_out = starts[-6:]
    assert torch.equal(batches.held_out, stream.ids[held_out[:, None] + torch.arange(17)])
    for rows in batches.rows:
        assert int(rows.starts.max()) + rows.length <= int(held_out[0])
    assert int(batches.rows[-1].starts.max()) + 17 == int(held_out[0]), "all before is trained on"


def test_only_ordinary_tokens_are_hidden(batches, masked_tokenizer):
    special = torch.tensor([masked_tokenizer.start_id, masked_tokenizer.end_id])
    n_hidden = n_ends = 0
    for step in range(60):
        batch = batches.batch(step)
        is_special = torch.isin(batch.targets, special)
        n_ends += int((batch.targets == masked_tokenizer.end_id).sum())
        assert not batch.is_counted[is_special].any()
        assert torch.equal(batch.ids[~batch.is_counted], batch.targets[~batch.is_counted])
        assert not torch.isin(batch.ids[batch.is_counted], special).any()
        assert batch.is_counted.any(dim=1).all()
        n_hidden += int((batch.ids == masked_tokenizer.mask_id).sum())
    assert n_ends, "no row held an end token, so nothing was shown"
    assert n_hidden


def test_the_held_out_rows_have_the_same_masks_every_time(batches):
    first, second = batches.validation(), batches.validation()
    assert all(map(same, first, second))
    rows = torch.cat([batch.targets for batch in first])
    assert torch.equal(rows[:, 1:], batches.held_out)
    assert (rows[:, 0] == batches.start_id).all()


@pytest.mark.parametrize(
    ("n_tokens", "fault"), [(16, "at least 17"), (17, "at least two"), (20, "3 are left")]
)
def test_a_corpus_that_is_too_short_is_rejected(stream, masked_tokenizer, n_tokens, fault):
    short = TokenStream(stream.ids[:n_tokens], stream.starts[:1])
    with pytest.raises(CorpusError, match=fault):
        make_batches(short, masked_tokenizer)


def test_rows_fit_the_model_with_their_start_token(stream, masked_tokenizer):
    with pytest.raises(ValueError, match=r"^lengths .* max_tokens \(17\), not 17"):
        make_batches(stream, masked_tokenizer, max_tokens=17)


@pytest.mark.parametrize(
    ("name", "value"), [("lengths", (16, 1)), ("batch_tokens", 126), ("share", 0.0)]
)
def test_a_number_out_of_range_is_rejected(name, value):
    with pytest.raises(ValueError, match=f"^{name} "):
        FillConfig(**{name: value})


# --- the mask ------------------------------------------------------------------------------------

START, END, MASK, VOCAB = 0, 1, 2, 1000
N_ROWS, N_TOKENS = 4000, 63


def text(n_rows, n_tokens, seed=0):
    """Rows of ordinary tokens between a start and an end token."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(3, VOCAB, (n_rows, n_tokens + 2), generator=generator)
    ids[:, 0], ids[:, -1] = START, END
    return ids


def mask(ids, *, seed=0, share=0.15, is_maskable=None):
    return mask_tokens(
        ids,
        mask_id=MASK,
        vocab_size=VOCAB,
        is_maskable=ids > MASK if is_maskable is None else is_maskable,
        generator=torch.Generator().manual_seed(seed),
        share=share,
        special_ids=(START, END),
    )


@pytest.fixture(scope="module")
def ids():
    return text(N_ROWS, N_TOKENS)


@pytest.fixture(scope="module")
def masked(ids):
    return mask(ids)


def test_the_share_of_chosen_tokens_is_exact_in_the_mean(ids, masked):
    # 63 · 0.15 = 9.45 tokens a row, rounded up or down: 4000 rows know the mean to 0.008 tokens.
    counts = masked.is_counted.sum(dim=1)
    assert set(counts.tolist()) == {9, 10}
    assert counts.double().mean().item() == pytest.approx(0.15 * N_TOKENS, abs=0.04)


def test_every_place_is_chosen_equally_often(masked):
    # Each of 63 places: 4000 rows know its share to 0.0056; five times that.
    shares = masked.is_counted[:, 1:-1].double().mean(dim=0)
    torch.testing.assert_close(shares, torch.full_like(shares, 0.15), rtol=0, atol=0.028)


@settings(deadline=None, max_examples=50, database=None)
@given(seed=st.integers(0, 10_000), share=st.sampled_from([0.001, 0.15, 0.6, 1.0]), data=st.data())
def test_a_row_with_anything_to_choose_has_something_chosen(seed, share, data):
    rows = data.draw(st.lists(st.lists(st.booleans(), min_size=5, max_size=5), min_size=1))
    is_maskable = torch.tensor(rows)
    ids = torch.full_like(is_maskable, 7, dtype=torch.long)
    is_counted = mask(ids, seed=seed, share=share, is_maskable=is_maskable).is_counted
    assert not (is_counted & ~is_maskable).any()
    assert is_counted.any(dim=1).equal(is_maskable.any(dim=1))


def test_replacements_are_ordinary_tokens_all_of_them_equally_often():
    ids = torch.full((4000, 50), 7)
    is_maskable = torch.ones_like(ids, dtype=torch.bool)
    replaced = mask_tokens(
        ids,
        mask_id=5,
        vocab_size=12,
        is_maskable=is_maskable,
        generator=torch.Generator().manual_seed(0),
        share=1.0,
        special_ids=(0, 11),
    ).ids
    counts = torch.bincount(replaced.flatten(), minlength=12).double() / replaced.numel()
    expected = torch.full((12,), 0.1 / 9).double()
    expected[5], expected[7] = 0.8, 0.1 + 0.1 / 9
    expected[0] = expected[11] = 0.0
    # 200,000 tokens know a share of 0.8 to 0.0009.
    torch.testing.assert_close(counts, expected, rtol=0, atol=0.004)
    assert counts[0] == counts[11] == 0
    assert len(counts) == 12


def test_words_are_masked_more_often_than_the_rest():
    ids = text(500, 40)
    is_maskable = ids > MASK
    masked = mask_tokens(
        ids,
        mask_id=MASK,
        vocab_size=VOCAB,
        is_maskable=is_maskable,
        generator=torch.Generator().manual_seed(0),
        share=0.1,
        special_ids=(START, END),
        often_ids=[7, 9],
        often_share=0.8,
    )
    is_often = (ids == 7) | (ids == 9)
    # Either draw may choose such a token: 1 − 0.9 · 0.2.
    assert masked.is_counted[is_often].double().mean().item() == pytest.approx(0.82, abs=0.05)
    assert masked.is_counted[is_maskable & ~is_often].double().mean().item() == pytest.approx(
        0.1, abs=0.01
    )


def test_a_word_of_several_tokens_is_refused(stream, masked_tokenizer):
    config = replace(SMALL, words=("extraordinarily",))
    with pytest.raises(ValueError, match="'extraordinarily' has"):
        make_batches(stream, masked_tokenizer, config)
