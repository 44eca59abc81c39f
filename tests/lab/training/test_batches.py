"""Batches: text rows once an epoch, repeated segments, and padded sentence pairs."""

from dataclasses import fields

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headlight.lab.training.batches import (
    Batch,
    Pair,
    PairBatches,
    TextRows,
    generator_of,
    is_held_out,
    repeated_rows,
)
from headlight.model.corpus import TokenStream

START, END = 99, 1


@pytest.fixture
def rows():
    """Ten rows of five tokens: 0 to 4, 5 to 9 and so on."""
    stream = TokenStream(torch.arange(50), torch.tensor([0]))
    return TextRows.cut(stream, length=5, start_id=START, seed=3)


def firsts(batch):
    return batch.targets[:, 0].tolist()


def test_a_row_is_the_start_token_and_a_piece_of_the_text(rows):
    batch = rows.take(0, 10)
    assert batch.ids.shape == batch.targets.shape == (10, 5)
    assert (batch.ids[:, 0] == START).all()
    for row in batch.targets:
        assert row.tolist() == list(range(int(row[0]), int(row[0]) + 5))
    assert batch.is_counted.shape == (10, 5)
    assert batch.is_counted.all()


def test_every_row_comes_once_an_epoch_in_an_order_of_its_own(rows):
    epochs = [firsts(rows.take(10 * epoch, 10)) for epoch in range(4)]
    assert all(sorted(epoch) == list(range(0, 50, 5)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 4


@pytest.mark.parametrize("sizes", [[7, 7, 7, 9], [1] * 30, [25, 5]])
def test_rows_depend_on_their_number_not_on_how_they_are_taken(rows, sizes):
    taken, first = [], 0
    for size in sizes:
        taken += firsts(rows.take(first, size))
        first += size
    assert taken == firsts(rows.take(0, 30))


def repeated(seed=0, count=20, length=64):
    return repeated_rows(
        torch.arange(10, 90),
        count=count,
        length=length,
        start_id=START,
        generator=generator_of(seed),
        longest=24,
    )


def test_a_segment_repeats_until_the_row_is_full_and_its_first_round_does_not_count():
    batch = repeated()
    assert batch.ids.shape == batch.targets.shape == (20, 64)
    assert (batch.ids[:, 0] == START).all()
    sizes = set()
    for row, is_counted in zip(batch.targets, batch.is_counted, strict=True):
        size = int((~is_counted).sum())
        sizes.add(size)
        assert is_counted.equal(torch.arange(64) >= size)
        assert row[size:].equal(row[:-size])
        assert set(row.tolist()) <= set(range(10, 90))
    assert min(sizes) >= 4
    assert max(sizes) <= 24
    assert len(sizes) > 5


# --- batches --------------------------------------------------------------------------------------


def parts_of(batch):
    return {field.name: getattr(batch, field.name) for field in fields(batch)}


@pytest.fixture
def batch():
    """Five rows of everything a batch can hold, each tensor with its own numbers."""
    ids = torch.arange(20).view(5, 4)
    return Batch(
        ids=ids,
        targets=ids + 20,
        is_counted=ids % 3 == 0,
        source=torch.arange(15).view(5, 3) + 40,
        is_token=torch.arange(15).view(5, 3) % 2 == 0,
    )


def test_a_decoder_reads_all_but_the_last_token_and_says_all_but_the_first():
    rows = torch.tensor([[1, 2, 3], [4, 5, 6]])
    batch = Batch.of_rows(rows, torch.tensor([[True, False], [True, True]]))
    assert batch.ids.tolist() == [[1, 2], [4, 5]]
    assert batch.targets.tolist() == [[2, 3], [5, 6]]
    assert batch.is_counted.tolist() == [[True, False], [True, True]]
    assert batch.source is None
    assert batch.is_token is None


def test_a_batch_moves_to_another_device_whole(batch):
    moved = parts_of(batch.to(torch.device("meta")))
    assert all(tensor is not None and tensor.is_meta for tensor in moved.values())
    assert parts_of(repeated().to(torch.device("meta")))["source"] is None


@pytest.mark.parametrize("of", [1, 2, 3, 5, 7])
def test_parts_hold_every_row_once_with_all_that_belongs_to_it(batch, of):
    parts = [parts_of(batch.part(number, of)) for number in range(of)]
    sizes = [len(part["ids"]) for part in parts]
    assert sum(sizes) == 5
    assert max(sizes) - min(sizes) <= 1
    order = torch.cat([part["ids"][:, 0] for part in parts]).argsort()
    for name, tensor in parts_of(batch).items():
        assert torch.cat([part[name] for part in parts])[order].equal(tensor), name


def test_a_model_reads_what_the_batch_holds_and_no_padding(batch, make_model):
    translator = make_model(kind="encoder-decoder", moe=None)
    expected = translator(batch.source, batch.ids, is_token=batch.is_token).logits
    assert batch.predict(translator).logits.equal(expected)
    assert not batch.predict(translator).logits.equal(translator(batch.source, batch.ids).logits)
    encoder = make_model(kind="encoder", moe=None)
    masked = Batch(
        ids=batch.ids,
        targets=batch.targets,
        is_counted=batch.is_counted,
        is_token=batch.ids % 4 < 3,
    )
    expected = encoder(batch.ids, is_token=masked.is_token).logits
    assert masked.predict(encoder).logits.equal(expected)
    assert not masked.predict(encoder).logits.equal(encoder(batch.ids).logits)


# --- sentence pairs -------------------------------------------------------------------------------


def make_batches(lengths, n_tokens=60, seed=0):
    """Pairs of these lengths; the first token of both sides after <s> is the pair's number + 10."""
    pairs = [
        Pair([START, *[number + 10] * n_source], [number + 10] * n_target)
        for number, (n_source, n_target) in enumerate(lengths)
    ]
    return PairBatches(pairs, n_tokens, START, END, seed)


def random_lengths(count, longest=12, seed=0):
    lengths = torch.randint(1, longest, (count, 2), generator=generator_of(seed))
    return [(int(n_source), int(n_target)) for n_source, n_target in lengths]


def numbers_of(batch):
    return (batch.targets[:, 0] - 10).tolist()


def steps_of_an_epoch(batches, first=0):
    """Count the steps from `first` on that show every pair once."""
    seen, step = 0, first
    while seen < len(batches.pairs):
        seen += len(batches.batch(step).ids)
        step += 1
    return step - first


@settings(deadline=None, max_examples=60, database=None)
@given(
    lengths=st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), min_size=1, max_size=40),
    n_tokens=st.integers(1, 120),
)
def test_no_batch_is_larger_than_asked_save_one_long_pair(lengths, n_tokens):
    batches = make_batches(lengths, n_tokens)
    seen: list[int] = []
    for batch in [batches.batch(step) for step in range(steps_of_an_epoch(batches))]:
        assert batch.source is not None
        assert len(batch.ids) == 1 or batch.source.numel() + batch.ids.numel() <= n_tokens
        seen += numbers_of(batch)
    assert sorted(seen) == list(range(len(lengths)))


def test_batches_are_filled_with_pairs_of_like_length():
    lengths = [(n + n % 4, n + n % 3) for n, _ in random_lengths(3000, longest=40)]
    batches = make_batches(lengths, n_tokens=1000)
    first = [batches.batch(step) for step in range(steps_of_an_epoch(batches))]
    n_read = sum(batch.source.numel() + batch.ids.numel() for batch in first)
    n_tokens = sum(int(batch.is_token.sum() + batch.is_counted.sum()) for batch in first)
    assert n_tokens / n_read > 0.8
    assert n_read / (1000 * len(first)) > 0.9
    # Without sorting, half of it would be padding; and the batches do not grow longer in order.
    lengths = [batch.ids.shape[1] for batch in first]
    assert lengths != sorted(lengths)


def test_a_long_source_does_not_shrink_the_batches_after_it():
    batches = make_batches([(19, 1), (2, 5), (2, 5), (2, 5)], n_tokens=30)
    assert [len(batch.ids) for batch in batches.in_order()] == [1, 3]


def test_a_decoder_reads_the_target_after_its_start_and_says_it_with_its_end():
    pairs = [Pair([START, 5, 6], [7]), Pair([START, 8], [9, 10, 11])]
    batch = PairBatches(pairs, 100, START, END, seed=0).pad(pairs)
    assert batch.source is not None
    assert batch.is_token is not None
    assert batch.source.tolist() == [[START, 5, 6], [START, 8, END]]
    assert batch.is_token.tolist() == [[True, True, True], [True, True, False]]
    assert batch.ids.tolist() == [[START, 7, END, END], [START, 9, 10, 11]]
    assert batch.targets.tolist() == [[7, END, END, END], [9, 10, 11, END]]
    assert batch.is_counted.tolist() == [[True, True, False, False], [True] * 4]


def test_a_batch_depends_on_the_seed_and_the_step_alone():
    lengths = random_lengths(60)
    through = make_batches(lengths)
    expected = [numbers_of(through.batch(step)) for step in range(40)]
    for step in (39, 0, 17, 17, 3):
        assert numbers_of(make_batches(lengths).batch(step)) == expected[step]
        assert numbers_of(through.batch(step)) == expected[step]
    other = make_batches(lengths, seed=1)
    assert [numbers_of(other.batch(step)) for step in range(40)] != expected


# --- text -----------------------------------------------------------------------------------------


def test_the_choice_never_changes():
    """SHA-256 in hexadecimal, big end first, as `sha256sum` prints it."""
    # printf 'Hello.' | sha256sum begins with 2d8bd7d9bb5f85ba = 0.17791... of 2^64.
    assert is_held_out("Hello.", 0.1780)
    assert not is_held_out("Hello.", 0.1779)
