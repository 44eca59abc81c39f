"""Word alignment read off cross-attention, with heads that are rigged to align well or badly."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
import torch

from headlight.model.checkpoint import Checkpoint
from headlight.model.evaluation.cross_attention import aligner, best_head, best_layer
from headlight.model.evaluation.word_alignment import GoldPair, split_words

RIGGED_LAYER, RIGGED_HEAD = 1, 2
SITE = "decoder.layers.{}.cross_attention.weights"


def same_words(text: str, french: str | None = None) -> GoldPair:
    """A pair whose words correspond one by one."""
    words, others = split_words(text), split_words(french or text)
    links = frozenset((n, n) for n in range(len(words)))
    assert len(words) == len(others)
    return GoldPair(
        english=text,
        french=french or text,
        english_words=tuple(words),
        french_words=tuple(others),
        sure=links,
        possible=links,
    )


GOLD = [same_words("The cat chased the mouse."), same_words("It was too tired, so it slept.")]


@pytest.fixture(scope="module")
def translator(make_checkpoint: Callable[..., Checkpoint]) -> Checkpoint:
    return make_checkpoint(kind="encoder-decoder", moe=None)


def looking(weights: torch.Tensor, offset: int) -> torch.Tensor:
    """Every target token looks at the source token so many places on; else at the start token."""
    n_queries, n_keys = weights.shape[-2:]
    keys = torch.arange(n_queries) + offset
    keys[keys >= n_keys] = 0
    return torch.nn.functional.one_hot(keys, n_keys).to(weights).expand_as(weights)


@pytest.fixture
def rig(translator: Checkpoint) -> Iterator[Callable[[int], None]]:
    """``rig(0)``: one head looks at the word that is read, ``rig(1)``: at the one that follows.

    All other heads look at the start token, which is no word.
    """
    with ExitStack() as stack:

        def edit(offset: int) -> None:
            def change(weights: torch.Tensor, layer: int) -> torch.Tensor:
                changed = looking(weights, 10**6).clone()
                if layer == RIGGED_LAYER:
                    changed[:, RIGGED_HEAD] = looking(weights, offset)[:, RIGGED_HEAD]
                return changed

            for layer in (0, 1):
                site = SITE.format(layer)
                stack.enter_context(
                    translator.model.edit(site, lambda weights, n=layer: change(weights, n))
                )

        yield edit


@pytest.mark.parametrize("shift", [0, 1])
def test_the_one_head_that_aligns_is_found(
    translator: Checkpoint, rig: Callable[[int], None], shift: int
) -> None:
    rig(shift)
    found = best_head(translator, GOLD)
    assert (found.layer, found.head, found.shift) == (RIGGED_LAYER, RIGGED_HEAD, shift)
    assert found.score == (0, 1, 1)


@pytest.mark.parametrize("shift", [0, 1])
def test_the_layer_of_a_head_that_aligns_is_found(
    translator: Checkpoint, rig: Callable[[int], None], shift: int
) -> None:
    rig(shift)
    found = best_layer(translator, GOLD)
    assert (found.layer, found.head, found.shift) == (RIGGED_LAYER, None, shift)
    assert found.score.error_rate == 0


def test_a_head_that_looks_at_no_word_links_nothing(
    translator: Checkpoint, rig: Callable[[int], None]
) -> None:
    rig(0)
    for head in (0, 1, 3):
        found = aligner(translator, GOLD, layer=RIGGED_LAYER, head=head, shift=0)
        assert found.score == (1, 0, 0)
    assert aligner(translator, GOLD, layer=0, head=None, shift=0).score.error_rate == 1


def test_a_head_that_is_a_word_behind_is_wrong(
    translator: Checkpoint, rig: Callable[[int], None]
) -> None:
    rig(0)
    found = aligner(translator, GOLD, layer=RIGGED_LAYER, head=RIGGED_HEAD, shift=1)
    assert found.score.error_rate > 0.3


def test_links_are_between_the_words_of_the_gold(
    translator: Checkpoint, rig: Callable[[int], None]
) -> None:
    """This gold takes for one word what the tokenizer takes for four."""
    rig(0)
    words = ("don't", "-", "stop")
    links = frozenset((n, n) for n in range(3))
    pair = GoldPair(
        english="don't - stop",
        french="don't - stop",
        english_words=words,
        french_words=words,
        sure=links,
        possible=links,
    )
    found = aligner(translator, [pair], layer=RIGGED_LAYER, head=RIGGED_HEAD, shift=0)
    assert found.score == (0, 1, 1)


def test_spaces_after_the_last_word_count_as_part_of_it(
    translator: Checkpoint, rig: Callable[[int], None]
) -> None:
    rig(0)
    text = "The cat  \n"
    links = frozenset({(0, 0), (1, 1)})
    pair = GoldPair(
        english=text,
        french=text,
        english_words=("The", "cat"),
        french_words=("The", "cat"),
        sure=links,
        possible=links,
    )
    found = aligner(translator, [pair], layer=RIGGED_LAYER, head=RIGGED_HEAD, shift=0)
    assert found.score == (0, 1, 1)


def test_the_best_head_is_the_best_of_all_heads_and_rows(translator: Checkpoint) -> None:
    every = [
        aligner(translator, GOLD, layer=layer, head=head, shift=shift).score.error_rate
        for layer in (0, 1)
        for head in range(4)
        for shift in (0, 1)
    ]
    assert best_head(translator, GOLD).score.error_rate == min(every)
    assert min(every) < max(every)
