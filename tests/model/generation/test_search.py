"""Beam search and best of n, by hand, with caches and without."""

import itertools

import pytest
import torch

from headlight.model.generation.sampling import (
    Continuation,
    NonFiniteLogits,
    Sampling,
    TransformerWriter,
    decode_together,
    generate,
    next_token_distribution,
    penalised,
)
from headlight.model.generation.search import beam_search, best_of, rating_by

PROMPT = [1, 7, 30]


def log_probability(model, written):
    with torch.inference_mode():
        logits = model(torch.tensor([[*PROMPT, *written]])).logits[0, len(PROMPT) - 1 : -1]
    rows = logits.log_softmax(-1)
    return float(rows[range(len(written)), written].sum())


def test_a_wide_beam_finds_the_likeliest_text_of_all(make_model):
    model = make_model(vocab_size=40, seed=3).eval()
    found = beam_search(TransformerWriter(model), PROMPT, n_tokens=2, width=40, length_penalty=0)
    totals = {pair: log_probability(model, pair) for pair in itertools.product(range(40), repeat=2)}
    best = sorted(totals, key=totals.get, reverse=True)[:40]
    assert found[0].ids == [*best[0]]
    for candidate in found[:5]:
        assert candidate.score == pytest.approx(totals[tuple(candidate.ids)], abs=1e-4)


@pytest.mark.parametrize("is_together", [True, False])
def test_a_beam_of_one_is_greedy_decoding(make_model, is_together):
    model = make_model(vocab_size=40, seed=1).eval()
    (found,) = beam_search(
        TransformerWriter(model), PROMPT, n_tokens=8, width=1, is_together=is_together
    )
    greedy = generate(model, PROMPT, n_tokens=8, sampling=Sampling(temperature=0))
    assert found.ids == [token.id for token in greedy]
    assert found.score == pytest.approx(log_probability(model, found.ids) / 8, abs=1e-4)


def test_the_scores_of_a_beam_are_those_of_whole_passes(make_model):
    model = make_model(vocab_size=40, seed=2).eval()
    for candidate in beam_search(TransformerWriter(model), PROMPT, n_tokens=6, width=4):
        expected = log_probability(model, candidate.ids) / len(candidate.ids)
        assert candidate.score == pytest.approx(expected, abs=1e-4)


def test_ended_hypotheses_are_ranked_by_their_length_too(make_model):
    model = make_model(vocab_size=40, seed=2).eval()
    writer = TransformerWriter(model)
    options = {"n_tokens": 6, "width": 6, "stop_ids": {*range(20)}}
    found = beam_search(writer, PROMPT, length_penalty=0, **options)
    assert {each.ids[-1] for each in found if len(each.ids) < 6} <= {*range(20)}
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)
    long = beam_search(writer, PROMPT, length_penalty=3, **options)
    assert sum(len(each.ids) for each in long) >= sum(len(each.ids) for each in found)


def test_the_best_of_some_samples_is_the_one_rated_highest(make_model):
    model = make_model(vocab_size=40, seed=4).eval()
    writer = TransformerWriter(model)
    options = {"n_tokens": 5, "sampling": Sampling(temperature=1.5)}
    found = best_of(writer, PROMPT, lambda ids: ids[-1], count=6, seed=3, **options)
    alone = [
        [token.id for token in generate(model, PROMPT, seed=seed, **options)]
        for seed in range(3, 9)
    ]
    assert sorted(each.ids for each in found) == sorted(alone)
    assert found[0].score == max(ids[-1] for ids in alone)
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)


def test_a_reward_model_rates_a_text_after_its_last_token(make_checkpoint):
    decoder, rater = make_checkpoint(), make_checkpoint(has_reward=True)
    ids = [token.id for token in decoder.tokenizer.encode("the cat sat")]
    expected = float(rater.model(torch.tensor([ids])).reward[0, -1].detach())
    assert rating_by(rater, decoder.tokenizer)(ids) == pytest.approx(expected, abs=1e-5)
    with pytest.raises(ValueError, match="is no reward model"):
        rating_by(decoder, decoder.tokenizer)


def test_damaged_weights_are_named(make_model):
    model = make_model(vocab_size=40).eval()
    next(model.parameters()).data.fill_(torch.nan)
    with pytest.raises(NonFiniteLogits):
        beam_search(TransformerWriter(model), PROMPT, n_tokens=3, width=2)


# --- repetition and stops -------------------------------------------------------------------------


def test_a_penalty_makes_known_tokens_less_likely_whatever_their_sign():
    logits = torch.tensor([2.0, -2.0, 1.0, -1.0])
    assert penalised(logits, [0, 1, 1], 2.0).tolist() == [1.0, -4.0, 1.0, -1.0]
    assert penalised(logits, [0], 1.0) is logits
    before = next_token_distribution(logits, Sampling())
    after = next_token_distribution(penalised(logits, [0, 1], 1.3), Sampling())
    assert (after[:2] < before[:2]).all()


def test_a_great_penalty_repeats_no_token(make_model):
    model = make_model(vocab_size=40, seed=1).eval()
    sampling = Sampling(temperature=0, repetition_penalty=1e6)
    ids = [*PROMPT, *(t.id for t in generate(model, PROMPT, n_tokens=12, sampling=sampling))]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("use_cache", [True, False])
def test_a_text_ends_where_it_is_over(make_model, use_cache):
    model = make_model(vocab_size=40, seed=1).eval()
    asked = {"n_tokens": 9, "sampling": Sampling(temperature=0), "use_cache": use_cache}
    whole = [token.id for token in generate(model, PROMPT, **asked)]
    seen = []

    def is_over(written):
        seen.append(list(written))
        return len(written) == 4

    ended = [token.id for token in generate(model, PROMPT, is_over=is_over, **asked)]
    assert ended == whole[:4]
    assert seen == [whole[:n] for n in range(1, 5)]


def test_a_text_that_is_over_leaves_the_others_as_they_are(make_model):
    model = make_model(vocab_size=40, seed=1).eval()
    writer = TransformerWriter(model)
    options = {"n_tokens": 6, "sampling": Sampling(temperature=0)}
    first = Continuation(writer, PROMPT, is_over=lambda written: len(written) == 2, **options)
    second = Continuation(writer, [1, 4], **options)
    while growing := [text for text in (first, second) if not text.is_finished]:
        list(decode_together(growing))
    assert len(first.text) == len(PROMPT) + 2
    assert second.text[2:] == [t.id for t in generate(model, [1, 4], **options)]
