"""The recipe `repeats`: text, refrains and lists, in the same mix at every step."""

import pytest
import torch

from headlight.lab.training.batches import Material
from headlight.lab.training.recipes.repeats import RECIPE, RepeatsConfig
from headlight.model.tokenizer import train_tokenizer

DOCUMENTS = ["".join(f"Number {n} saw{' a cat' * (n % 5)}, {n * n}.\n" for n in range(400))]
CONFIG = RepeatsConfig(tokens=48, count=9, refrains=3, lists=2, shortest=8, held_out=7)


@pytest.fixture(scope="module")
def batches():
    return RECIPE.batches(Material(DOCUMENTS, train_tokenizer(DOCUMENTS, 300), 64, CONFIG, 0))


def rows_of(batch):
    return torch.cat([batch.ids, batch.targets[:, -1:]], dim=1)[:, 1:].tolist()


def test_a_passage_of_a_refrain_returns_and_the_rest_is_the_row_of_text(batches):
    texts = rows_of(batches.trained.take(7 * 5, 7))
    rows = rows_of(batches.batch(5))
    assert rows[:4] == texts[:4]
    for row, text in zip(rows[4:7], texts[4:7], strict=True):
        size = 8
        first = next(
            at for at, pair in enumerate(zip(row, text, strict=True)) if pair[0] != pair[1]
        )
        returned = row[first : first + size]
        assert any(row[at : at + size] == returned for at in range(first - size + 1))


def test_a_list_is_one_segment_over_and_over_and_a_step_gives_the_same_rows_again(batches):
    batch = batches.batch(3)
    for row in rows_of(batch)[7:]:
        assert any(row[size:] == row[:-size] for size in range(4, 19))
    assert torch.equal(batch.ids, batches.batch(3).ids)
    assert not torch.equal(batch.ids, batches.batch(4).ids)


@pytest.mark.parametrize(
    "wrong",
    [{"refrains": 8, "lists": 2}, {"shortest": 17, "lists": 1, "refrains": 1}, {"lists": -1}],
)
def test_shares_that_fit_no_batch_are_rejected(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        RepeatsConfig(**{"tokens": 48, "count": 9, **wrong})
