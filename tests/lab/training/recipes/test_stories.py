"""The recipe: stages of repeated segments, then of text with a share of them."""

import re
from dataclasses import replace

import pytest
import torch

from headlight.lab.training.batches import TextRows
from headlight.lab.training.config import LoopConfig
from headlight.lab.training.recipes.stories import (
    Stage,
    StoriesBatches,
    StoriesConfig,
    StoriesLoop,
    token_share,
)
from headlight.model.config import ExpertsConfig
from headlight.model.corpus import CorpusError, TokenStream
from headlight.model.transformer import Transformer

START = 999
RECIPE = StoriesConfig(
    stages=(
        Stage(2, tokens=16, drawn_by_frequency=6),
        Stage(3, tokens=20, text=5, drawn_by_frequency=1),
        Stage(4, tokens=20, text=4, drawn_by_frequency=2, drawn_evenly=3),
    ),
    held_out=3,
)


def text_rows(n_rows):
    stream = TokenStream(torch.arange(20 * n_rows), torch.tensor([0]))
    return TextRows.cut(stream, length=20, start_id=START, seed=0)


@pytest.fixture
def batches():
    return StoriesBatches(text_rows(40), RECIPE, seed=0)


def is_text(batch):
    """Select the rows that count upwards, as the corpus does and no repeated segment."""
    return (batch.targets.diff(dim=1) == 1).all(dim=1)


def test_stages_follow_each_other_and_the_last_goes_on(batches):
    shapes = [tuple(batches.batch(step).targets.shape) for step in (0, 1, 2, 4, 5, 8, 9, 500)]
    assert shapes == [(6, 16), (6, 16), (6, 20), (6, 20), (9, 20), (9, 20), (9, 20), (9, 20)]


def test_a_stage_has_its_share_of_text_and_of_repeated_rows(batches):
    for step, n_text, n_repeated in [(0, 0, 6), (2, 5, 1), (5, 4, 5), (20, 4, 5)]:
        batch = batches.batch(step)
        assert is_text(batch).tolist() == [True] * n_text + [False] * n_repeated
        assert (batch.ids[:, 0] == START).all()
        assert batch.is_counted[:n_text].all()
        assert not batch.is_counted[n_text:, :4].any()


def test_an_epoch_shows_every_row_but_those_held_out(batches):
    # 3 steps of 5 rows and 33 of 4 are four epochs of 37 rows, less one row.
    steps = [(step, 5 if step < 5 else 4) for step in range(2, 38)]
    seen = [int(row[0]) for step, n_text in steps for row in batches.batch(step).targets[:n_text]]
    held_out = [int(row[0]) for batch in batches.validation() for row in batch.targets]
    assert sorted(held_out) == [740, 760, 780]
    assert len(seen) == 4 * 37 - 1
    for epoch in range(3):
        assert sorted(seen[37 * epoch : 37 * epoch + 37]) == list(range(0, 740, 20))


def test_segments_are_drawn_by_frequency_or_evenly():
    """Of ten tokens, nine are the same one."""
    ids = torch.where(torch.arange(4000) % 10 == 0, torch.arange(4000) // 40, 500)
    text = TextRows.cut(TokenStream(ids, torch.tensor([0])), length=20, start_id=START, seed=0)
    shares = []
    for stage in (
        Stage(1, tokens=20, drawn_by_frequency=100),
        Stage(1, tokens=20, drawn_evenly=100),
    ):
        batch = StoriesBatches(text, StoriesConfig(stages=(stage,)), seed=0).batch(0)
        shares.append((batch.targets == 500).float().mean().item())
    assert shares[0] == pytest.approx(0.9, abs=0.03)
    assert shares[1] < 0.05


def test_a_batch_depends_on_the_seed_and_the_step_alone(batches):
    again = StoriesBatches(text_rows(40), RECIPE, seed=0)
    other = StoriesBatches(text_rows(40), RECIPE, seed=1)
    for step in (7, 0, 5, 2):
        assert again.batch(step).targets.equal(batches.batch(step).targets)
        assert not other.batch(step).targets[-1].equal(batches.batch(step).targets[-1])
    assert not batches.batch(0).targets.equal(batches.batch(1).targets)
    assert not batches.batch(5).targets[-4].equal(batches.batch(5).targets[-1])


@pytest.mark.parametrize(("n_rows", "n_held_out"), [(2, 1), (9, 1), (25, 2), (1000, 64)])
def test_at_most_a_tenth_is_held_out_but_at_least_one_row(n_rows, n_held_out):
    batches = StoriesBatches(text_rows(n_rows), replace(RECIPE, held_out=64), seed=0)
    assert sum(len(batch.targets) for batch in batches.validation()) == n_held_out


def test_a_corpus_of_one_row_is_rejected():
    with pytest.raises(CorpusError, match="at least two"):
        StoriesBatches(text_rows(1), RECIPE, seed=0)


@pytest.mark.parametrize(
    "stages", [(), (Stage(3, tokens=8),), (Stage(1, 20, text=-1, drawn_evenly=2),)]
)
def test_stages_that_cannot_be_trained_are_rejected(stages):
    with pytest.raises(ValueError, match=re.escape(str(stages[0]) if stages else "stages")):
        StoriesConfig(stages=stages)


@pytest.mark.parametrize("tokens", [11, 21])
def test_rows_too_short_to_repeat_or_longer_than_the_context_are_rejected(tokens):
    stage = Stage(3, tokens=tokens, drawn_by_frequency=4)
    with pytest.raises(ValueError, match=re.escape(str(stage))):
        StoriesBatches(text_rows(9), StoriesConfig(stages=(stage,)), seed=0)


@pytest.mark.parametrize("steps", [1, 2, 3, 7, 50])
def test_the_steps_without_text_are_those_whose_batches_hold_none(steps):
    stages = (
        Stage(1, tokens=16, drawn_by_frequency=2),
        Stage(2, tokens=20, drawn_evenly=2),
        Stage(2, tokens=20, text=1),
        Stage(1, tokens=20, drawn_evenly=2),
        Stage(1, tokens=20, text=1),
    )
    config = StoriesConfig(stages=stages)
    batches = StoriesBatches(text_rows(9), config, seed=0)
    expected = [n for n in range(1, steps + 1) if not is_text(batches.batch(n - 1)).any()]
    ranges = config.steps_without_text(steps)
    assert [step for part in ranges for step in part] == expected
    assert len(ranges) <= 2, "stages that follow each other are one range"
    textless = StoriesConfig(stages=stages[:2]).steps_without_text(50)
    assert textless == [range(1, 51)]


# --- the loop -------------------------------------------------------------------------------------


@pytest.fixture
def make_loop(make_config, tmp_path):
    def make(**changes):
        torch.manual_seed(0)
        config = make_config(
            n_layers=2,
            n_heads=4,
            vocab_size=1000,
            moe=ExpertsConfig(n_experts=4, top_k=2, layers=(0, 1)),
        )
        batches = StoriesBatches(text_rows(40), replace(RECIPE, **changes), seed=0)
        return StoriesLoop(Transformer(config), batches, LoopConfig(steps=2), tmp_path)

    return make


def test_only_the_copying_heads_learn_where_to_attend_from_repeated_rows(make_loop):
    loop = make_loop(copying_heads=1, head_dropout=0.0)
    repeated, text = loop.batches.batch(0), loop.batches.batch(2)
    for batch, n_learning in ((repeated, 1), (text, 4)):
        loop.model.zero_grad()
        prediction = loop._predict(batch)
        (batch.losses(prediction) * batch.is_counted).sum().backward()
        for layer in loop.model.decoder.layers:
            rows = layer.self_attention.query_projection.weight.grad.unflatten(0, (4, -1))
            assert (rows.abs().amax(dim=(1, 2)) > 0).tolist() == [n < n_learning for n in range(4)]
    exact = loop.model(repeated.ids).logits
    torch.testing.assert_close(loop._predict(repeated).logits, exact)  # all heads write


def test_heads_are_silent_at_random_in_rows_of_text(make_loop):
    loop = make_loop(head_dropout=0.5)
    with loop.model.capture(["*.self_attention.context"]) as captured:
        loop._predict(loop.batches.batch(2))  # five rows of text, then a repeated one
    writes = torch.stack([tensor.abs().amax(dim=(2, 3)) > 0 for tensor in captured.values()])
    assert 0 < writes[:, :5].sum() < writes[:, :5].numel()
    assert writes[:, 5:].all()


def test_the_share_of_the_token_by_hand():
    ids = torch.tensor([[7, 7, 3]])
    probs = torch.tensor([[[0.8, 0.1, 0.1], [0.6, 0.3, 0.1], [0.0, 0.0, 1.0]]])
    of_token = 0.7**2 + 0.2**2 + 0.1**2
    of_each = (0.8**2 + 2 * 0.1**2 + 0.6**2 + 0.3**2 + 0.1**2) / 2  # token 3 occurs once
    assert float(token_share(probs, ids)) == pytest.approx(of_token / of_each)
    assert float(token_share(probs[:, 2:], ids[:, 2:])) == 0


def test_the_share_of_the_token_is_1_without_context_and_least_if_context_alone_decides():
    certain = torch.eye(4)[[0, 1, 2, 3]][None]
    assert float(token_share(certain, torch.tensor([[5, 5, 5, 5]]))) == pytest.approx(1 / 4)
    assert float(token_share(certain[:, [0, 1, 0, 1]], torch.tensor([[5, 6, 5, 6]]))) == 1
    diffuse = torch.full((1, 4, 4), 1 / 4)
    assert float(token_share(diffuse, torch.tensor([[5, 5, 5, 5]]))) == 1


def test_a_router_that_reads_the_token_alone_is_penalised_above_the_bound(make_loop):
    batch = make_loop().batches.batch(2)
    plain, strict = (
        make_loop(token_share_bound=bound, head_dropout=0.0)._predict(batch).balance_loss
        for bound in (1.0, 0.0)
    )
    loop = make_loop(head_dropout=0.0)
    with loop.model.capture(["*.router_probs"]) as captured:
        loop._predict(batch)
    weight = StoriesConfig().token_share_weight
    _, probs = captured.values()  # the first layer is left out
    torch.testing.assert_close(strict - plain, weight * token_share(probs, batch.ids))
