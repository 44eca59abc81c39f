"""The rows a step trains on: each text row once an epoch, and segments that repeat."""

from collections.abc import Callable
from dataclasses import fields

import pytest
import torch
from torch import Tensor

from headlight.model.training.batches import Batch, TextRows, generator_of, prepend, repeated_rows
from headlight.model.training.corpus import TokenStream
from headlight.model.transformer import Transformer

START = 99


@pytest.fixture
def rows() -> TextRows:
    """Ten rows of five tokens: 0 to 4, 5 to 9 and so on."""
    stream = TokenStream(torch.arange(50), torch.tensor([0]))
    return TextRows.cut(stream, length=5, start_id=START, seed=3)


def firsts(batch: Batch) -> list[int]:
    return batch.targets[:, 0].tolist()


def test_a_row_is_the_start_token_and_a_piece_of_the_text(rows: TextRows) -> None:
    batch = rows.take(0, 10)
    assert batch.ids.shape == batch.targets.shape == (10, 5)
    assert (batch.ids[:, 0] == START).all()
    for row in batch.targets:
        assert row.tolist() == list(range(int(row[0]), int(row[0]) + 5))
    assert batch.is_counted.shape == (10, 5)
    assert batch.is_counted.all()


def test_every_row_comes_once_an_epoch_in_an_order_of_its_own(rows: TextRows) -> None:
    epochs = [firsts(rows.take(10 * epoch, 10)) for epoch in range(4)]
    assert all(sorted(epoch) == list(range(0, 50, 5)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 4


@pytest.mark.parametrize("sizes", [[7, 7, 7, 9], [1] * 30, [25, 5]])
def test_rows_depend_on_their_number_not_on_how_they_are_taken(
    rows: TextRows, sizes: list[int]
) -> None:
    taken, first = [], 0
    for size in sizes:
        taken += firsts(rows.take(first, size))
        first += size
    assert taken == firsts(rows.take(0, 30))


def test_the_order_depends_on_the_seed() -> None:
    stream = TokenStream(torch.arange(50), torch.tensor([0]))
    orders = [
        tuple(firsts(TextRows.cut(stream, length=5, start_id=START, seed=seed).take(0, 10)))
        for seed in (0, 1, 2, 0)
    ]
    assert orders[0] == orders[3]
    assert len(set(orders)) == 3


def test_a_generator_depends_on_its_numbers_alone() -> None:
    def draw(*numbers: int) -> float:
        return torch.rand(1, generator=generator_of(*numbers)).item()

    before = draw(5, 7)
    torch.rand(3)
    assert draw(5, 7) == before
    assert len({draw(5, 7), draw(5, 8), draw(6, 7), draw(5), draw(5, 7, 0)}) == 5
    assert 0 <= draw(2**62, 2**40) < 1


def repeated(seed: int = 0, count: int = 20, length: int = 64) -> Batch:
    return repeated_rows(
        torch.arange(10, 90),
        count=count,
        length=length,
        start_id=START,
        generator=generator_of(seed),
        longest=24,
    )


def test_a_segment_repeats_until_the_row_is_full_and_its_first_round_does_not_count() -> None:
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


def test_segments_are_unrelated_tokens_drawn_by_their_frequency() -> None:
    ids = torch.tensor([1] * 9 + [2])
    rows = repeated_rows(
        ids, count=200, length=32, start_id=0, generator=generator_of(0), longest=16
    )
    share = (rows.targets == 2).float().mean().item()
    assert share == pytest.approx(0.1, abs=0.03)


def test_the_same_generator_gives_the_same_rows() -> None:
    assert repeated(seed=4).ids.equal(repeated(seed=4).ids)
    assert not repeated(seed=4).ids.equal(repeated(seed=5).ids)


# --- batches --------------------------------------------------------------------------------------


def parts_of(batch: Batch) -> dict[str, Tensor | None]:
    return {field.name: getattr(batch, field.name) for field in fields(batch)}


@pytest.fixture
def batch() -> Batch:
    """Five rows of everything a batch can hold, each tensor with numbers of its own."""
    ids = torch.arange(20).view(5, 4)
    return Batch(
        ids=ids,
        targets=ids + 20,
        is_counted=ids % 3 == 0,
        source=torch.arange(15).view(5, 3) + 40,
        is_token=torch.arange(15).view(5, 3) % 2 == 0,
    )


def test_a_decoder_reads_all_but_the_last_token_and_says_all_but_the_first() -> None:
    rows = torch.tensor([[1, 2, 3], [4, 5, 6]])
    batch = Batch.of_rows(rows, torch.tensor([[True, False], [True, True]]))
    assert batch.ids.tolist() == [[1, 2], [4, 5]]
    assert batch.targets.tolist() == [[2, 3], [5, 6]]
    assert batch.is_counted.tolist() == [[True, False], [True, True]]
    assert batch.source is None
    assert batch.is_token is None


def test_batches_are_joined_row_by_row() -> None:
    one, other = repeated(seed=1, count=2), repeated(seed=2, count=3)
    joined = Batch.join(one, other)
    for name in ("ids", "targets", "is_counted"):
        both = [getattr(one, name), getattr(other, name)]
        assert getattr(joined, name).equal(torch.cat(both)), name


def test_a_batch_moves_to_another_device_whole(batch: Batch) -> None:
    moved = parts_of(batch.to(torch.device("meta")))
    assert all(tensor is not None and tensor.is_meta for tensor in moved.values())
    assert parts_of(repeated().to(torch.device("meta")))["source"] is None


@pytest.mark.parametrize("of", [1, 2, 3, 5, 7])
def test_parts_hold_every_row_once_with_all_that_belongs_to_it(batch: Batch, of: int) -> None:
    parts = [parts_of(batch.part(number, of)) for number in range(of)]
    sizes = [len(part["ids"]) for part in parts]
    assert sum(sizes) == 5
    assert max(sizes) - min(sizes) <= 1
    order = torch.cat([part["ids"][:, 0] for part in parts]).argsort()
    for name, tensor in parts_of(batch).items():
        assert torch.cat([part[name] for part in parts])[order].equal(tensor), name


def test_a_part_of_rows_without_a_source_has_none_either() -> None:
    part = repeated().part(1, 4)
    assert part.ids.equal(repeated().ids[1::4])
    assert part.source is None
    assert part.is_token is None


def test_a_model_reads_what_the_batch_holds_and_no_padding(
    batch: Batch, make_model: Callable[..., Transformer]
) -> None:
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


def test_the_start_token_is_put_before_every_row() -> None:
    assert prepend(7, torch.tensor([[1, 2], [3, 4]])).tolist() == [[7, 1, 2], [7, 3, 4]]
