"""The recipe `fill`: rows of several lengths with some tokens hidden."""

import pytest
import torch

from headlight.model.tokenizer import train_tokenizer
from headlight.model.training.corpus import CorpusError, TokenStream
from headlight.model.training.recipes.fill import FillBatches, FillConfig

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
    return FillBatches(stream, masked_tokenizer, 18, SMALL, seed=0)


def same(one, other):
    return all(
        torch.equal(getattr(one, name), getattr(other, name))
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
    again = FillBatches(stream, masked_tokenizer, 18, SMALL, seed=0)
    assert all(same(again.batch(step), batches.batch(step)) for step in (7, 3, 0))
    other = FillBatches(stream, masked_tokenizer, 18, SMALL, seed=1)
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


def test_at_most_a_tenth_is_held_out(stream, masked_tokenizer):
    config = FillConfig(lengths=(17,), batch_tokens=60, held_out=10_000)
    batches = FillBatches(stream, masked_tokenizer, 18, config, seed=0)
    assert len(batches.held_out) == len(stream.row_starts(17)) // 10


@pytest.mark.parametrize(
    ("n_tokens", "fault"), [(16, "at least 17"), (17, "at least two"), (20, "3 are left")]
)
def test_a_corpus_that_is_too_short_is_rejected(stream, masked_tokenizer, n_tokens, fault):
    short = TokenStream(stream.ids[:n_tokens], stream.starts[:1])
    with pytest.raises(CorpusError, match=fault):
        FillBatches(short, masked_tokenizer, 18, SMALL, seed=0)


def test_rows_fit_the_model_with_their_start_token(stream, masked_tokenizer):
    with pytest.raises(ValueError, match=r"^lengths .* max_tokens \(17\), not 17"):
        FillBatches(stream, masked_tokenizer, 17, SMALL, seed=0)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("lengths", ()),
        ("lengths", (16, 1)),
        ("batch_tokens", 126),
        ("share", 0.0),
        ("share", 1.5),
        ("held_out", 0),
    ],
)
def test_a_number_out_of_range_is_rejected(name, value):
    with pytest.raises(ValueError, match=f"^{name} "):
        FillConfig(**{name: value})
