"""Batches of sentence pairs: each pair once an epoch, little padding, none of it counted."""

from collections.abc import Callable

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from headlight.model.tokenizer import Tokenizer
from headlight.model.training.batches import Batch, generator_of
from headlight.model.training.losses import language_model_loss, token_losses
from headlight.model.training.pairs import Pair, PairBatches, encode_pairs, is_held_out
from headlight.model.transformer import Transformer

MakeModel = Callable[..., Transformer]
START, END = 0, 1


def make_batches(lengths: list[tuple[int, int]], n_tokens: int = 60, seed: int = 0) -> PairBatches:
    """Pairs of these lengths; the first token of both sides after <s> is the pair's number + 10."""
    pairs = [
        Pair([START, *[number + 10] * n_source], [number + 10] * n_target)
        for number, (n_source, n_target) in enumerate(lengths)
    ]
    return PairBatches(pairs, n_tokens, START, END, seed)


def random_lengths(count: int, longest: int = 12, seed: int = 0) -> list[tuple[int, int]]:
    lengths = torch.randint(1, longest, (count, 2), generator=generator_of(seed))
    return [(int(n_source), int(n_target)) for n_source, n_target in lengths]


def numbers_of(batch: Batch) -> list[int]:
    return (batch.targets[:, 0] - 10).tolist()


def steps_of_an_epoch(batches: PairBatches, first: int = 0) -> int:
    """How many steps from `first` on show every pair once."""
    seen, step = 0, first
    while seen < len(batches.pairs):
        seen += len(batches.batch(step).ids)
        step += 1
    return step - first


def test_every_pair_comes_once_an_epoch_in_an_order_of_its_own() -> None:
    batches = make_batches(random_lengths(100))
    orders, first = [], 0
    for _ in range(4):
        n_steps = steps_of_an_epoch(batches, first)
        steps = range(first, first + n_steps)
        orders.append([number for step in steps for number in numbers_of(batches.batch(step))])
        first += n_steps
    assert all(sorted(order) == list(range(100)) for order in orders)
    assert len(set(map(tuple, orders))) == 4


@settings(deadline=None, max_examples=60, database=None)
@given(
    lengths=st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), min_size=1, max_size=40),
    n_tokens=st.integers(1, 120),
)
def test_no_batch_is_larger_than_asked_save_one_long_pair(
    lengths: list[tuple[int, int]], n_tokens: int
) -> None:
    batches = make_batches(lengths, n_tokens)
    seen: list[int] = []
    for batch in [batches.batch(step) for step in range(steps_of_an_epoch(batches))]:
        assert batch.source is not None
        assert len(batch.ids) == 1 or batch.source.numel() + batch.ids.numel() <= n_tokens
        seen += numbers_of(batch)
    assert sorted(seen) == list(range(len(lengths)))


def test_batches_are_filled_with_pairs_of_like_length() -> None:
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


def test_a_long_source_does_not_shrink_the_batches_after_it() -> None:
    batches = make_batches([(19, 1), (2, 5), (2, 5), (2, 5)], n_tokens=30)
    assert [len(batch.ids) for batch in batches.in_order()] == [1, 3]


def test_a_decoder_reads_the_target_after_its_start_and_says_it_with_its_end() -> None:
    pairs = [Pair([START, 5, 6], [7]), Pair([START, 8], [9, 10, 11])]
    batch = PairBatches(pairs, 100, START, END, seed=0).pad(pairs)
    assert batch.source is not None
    assert batch.is_token is not None
    assert batch.source.tolist() == [[START, 5, 6], [START, 8, END]]
    assert batch.is_token.tolist() == [[True, True, True], [True, True, False]]
    assert batch.ids.tolist() == [[START, 7, END, END], [START, 9, 10, 11]]
    assert batch.targets.tolist() == [[7, END, END, END], [9, 10, 11, END]]
    assert batch.is_counted.tolist() == [[True, True, False, False], [True] * 4]


def test_in_order_shows_every_pair_once_the_shortest_first() -> None:
    batches = make_batches(random_lengths(100))
    shown = batches.in_order()
    assert sorted(number for batch in shown for number in numbers_of(batch)) == list(range(100))
    lengths = [batch.ids.shape[1] for batch in shown]
    assert lengths == sorted(lengths)


def test_a_batch_depends_on_the_seed_and_the_step_alone() -> None:
    lengths = random_lengths(60)
    through = make_batches(lengths)
    expected = [numbers_of(through.batch(step)) for step in range(40)]
    for step in (39, 0, 17, 17, 3):
        assert numbers_of(make_batches(lengths).batch(step)) == expected[step]
        assert numbers_of(through.batch(step)) == expected[step]
    other = make_batches(lengths, seed=1)
    assert [numbers_of(other.batch(step)) for step in range(40)] != expected


def test_a_late_step_does_not_go_through_the_epochs_before_it_again() -> None:
    batches = make_batches(random_lengths(20))
    counted: list[int] = []

    class Counting(PairBatches):
        def epoch(self, number: int) -> list[list[int]]:
            counted.append(number)
            return super().epoch(number)

    counting = Counting(batches.pairs, batches.n_tokens, START, END, seed=0)
    n_steps = steps_of_an_epoch(batches)
    for step in range(99 * n_steps, 100 * n_steps):
        counting.batch(step)
    assert len(counted) <= 110


# --- what the model is asked ----------------------------------------------------------------------


def small_pairs() -> list[Pair]:
    generator = generator_of(0)

    def tokens(count: int) -> list[int]:
        return torch.randint(2, 300, (count,), generator=generator).tolist()

    return [Pair([START, *tokens(n)], tokens(m)) for n, m in [(3, 9), (7, 2), (1, 4), (11, 11)]]


def test_the_loss_of_a_batch_is_that_of_its_rows_alone(make_model: MakeModel) -> None:
    model = make_model(kind="encoder-decoder")
    pairs = small_pairs()
    batches = PairBatches(pairs, 1000, START, END, seed=0)

    def losses(chosen: list[Pair]) -> tuple[Tensor, Tensor]:
        batch = batches.pad(chosen)
        logits = batch.predict(model).logits
        each = token_losses(logits, batch.targets)[batch.is_counted]
        return each, language_model_loss(logits, batch.targets, batch.is_counted)

    each, mean = losses(pairs)
    alone = torch.cat([losses([pair])[0] for pair in pairs])
    torch.testing.assert_close(each, alone, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(mean, alone.mean(), rtol=1e-4, atol=1e-5)


def test_what_the_padding_holds_does_not_matter(make_model: MakeModel) -> None:
    model = make_model(kind="encoder-decoder")
    pairs = small_pairs()
    batches = PairBatches(pairs, 1000, START, END, seed=0)
    one, other = batches.pad(pairs), batches.pad(pairs)
    assert other.source is not None
    assert other.is_token is not None
    other.source[~other.is_token] = 99
    other.ids[1, 3:] = 99  # after <s> and two tokens
    other.targets[~other.is_counted] = 99
    expected, found = (
        language_model_loss(batch.predict(model).logits, batch.targets, batch.is_counted)
        for batch in (one, other)
    )
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


# --- text -----------------------------------------------------------------------------------------


def test_pairs_are_encoded_side_by_side(tokenizer: Tokenizer) -> None:
    (pair,) = encode_pairs(["The cat"], ["the mouse."], tokenizer)
    assert pair.source[0] == tokenizer.start_id
    assert tokenizer.decode(pair.source) == "The cat"
    assert tokenizer.decode(pair.target) == "the mouse."
    assert tokenizer.start_id not in pair.target
    assert tokenizer.end_id not in pair.target


def test_the_held_out_share_is_about_what_was_asked_for_and_grows_with_it() -> None:
    sources = [f"Sentence number {number}." for number in range(4000)]
    held_out = {
        share: {source for source in sources if is_held_out(source, share)}
        for share in (0.01, 0.1, 0.5)
    }
    for share, chosen in held_out.items():
        assert abs(len(chosen) / 4000 - share) < 0.02
    assert held_out[0.01] < held_out[0.1] < held_out[0.5]


def test_the_choice_never_changes() -> None:
    """SHA-256 in hexadecimal, big end first, as `sha256sum` prints it."""
    # printf 'Hello.' | sha256sum begins with 2d8bd7d9bb5f85ba = 0.17791... of 2^64.
    assert is_held_out("Hello.", 0.1780)
    assert not is_held_out("Hello.", 0.1779)
