"""Drawing the next token, and the one after it."""

import fnmatch
import math
import re
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from headlight.model.config import POSITIONALS
from headlight.model.generation.sampling import (
    Continuation,
    GeneratedToken,
    NonFiniteLogits,
    Sampling,
    decode_together,
    generate,
    next_token_distribution,
)
from headlight.model.sites import UnknownHead

# Probabilities .1 .4 .05 .3 .15: an order that is neither rising nor falling
LOGITS = torch.tensor([0.1, 0.4, 0.05, 0.3, 0.15]).log()
GREEDY = Sampling(temperature=0.0)


def assert_is(actual, expected):
    torch.testing.assert_close(
        actual, torch.tensor(expected, dtype=torch.float32), rtol=0, atol=1e-6
    )


# --- the distribution, by hand --------------------------------------------------------------------


OWN = [0.1, 0.4, 0.05, 0.3, 0.15]
FIRST, TWO, THREE = (
    [0, 1, 0, 0, 0],
    [0, 4 / 7, 0, 3 / 7, 0],
    [0, 0.4 / 0.85, 0, 0.3 / 0.85, 0.15 / 0.85],
)


@pytest.mark.parametrize(
    ("sampling", "expected"),
    [
        ({}, OWN),
        ({"temperature": 0.0}, FIRST),
        ({"temperature": 1e-45}, FIRST),
        ({"temperature": 0.5}, [p**2 / sum(each**2 for each in OWN) for p in OWN]),
        ({"temperature": 2.0}, [p**0.5 / sum(each**0.5 for each in OWN) for p in OWN]),
        ({"top_k": 2}, TWO),
        ({"top_k": 99}, OWN),
        ({"top_p": 5e-324}, FIRST),
        ({"top_p": 0.39}, FIRST),
        ({"top_p": 0.41}, TWO),
        ({"top_p": 1.0}, OWN),
        # Of the two that top-k leaves, the first holds 4/7 = .571.
        ({"top_k": 2, "top_p": 0.57}, FIRST),
        ({"top_k": 2, "top_p": 0.58}, TWO),
        # At temperature .5 the most likely token holds .16/.285 = .561.
        ({"temperature": 0.5, "top_p": 0.55}, FIRST),
        ({"temperature": 0.5, "top_p": 0.57}, [0, 16 / 25, 0, 9 / 25, 0]),
    ],
)
def test_the_distribution_is_that_of_its_sampling(sampling, expected):
    assert_is(next_token_distribution(LOGITS, Sampling(**sampling)), expected)


def test_of_equally_likely_tokens_top_k_keeps_the_first():
    kept = next_token_distribution(torch.zeros(4), Sampling(top_k=2))
    assert_is(kept, [0.5, 0.5, 0, 0])


@pytest.mark.parametrize(
    ("sampling", "message"),
    [
        ({"temperature": -0.5}, "temperature (-0.5) must be 0 or more"),
        ({"temperature": math.nan}, "temperature (nan) must be 0 or more"),
        ({"top_k": 0}, "top_k (0) must be at least 1"),
        ({"top_p": 1.5}, "top_p (1.5) must lie in (0, 1]"),
    ],
)
def test_a_number_out_of_range_is_an_error(sampling, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        Sampling(**sampling)


# --- a text ---------------------------------------------------------------------------------------


def test_a_seed_decides_what_is_drawn(model):
    def drawn(seed):
        tokens = generate(model, [0], n_tokens=20, sampling=Sampling(), seed=seed)
        return [token.id for token in tokens]

    assert drawn(1) == drawn(1)
    assert len({tuple(drawn(seed)) for seed in range(5)}) == 5


@pytest.mark.slow
def test_tokens_are_drawn_as_often_as_they_are_likely(make_model):
    model, sampling = make_model(n_layers=1, moe=None), Sampling(top_k=3)
    draws = [
        next(iter(generate(model, [0, 7], n_tokens=1, sampling=sampling, seed=seed)))
        for seed in range(300)
    ]
    expected = draws[0].distribution
    assert (expected > 0).sum() == 3
    counts = torch.tensor([draw.id for draw in draws]).bincount(minlength=300) / len(draws)
    torch.testing.assert_close(counts, expected, rtol=0, atol=0.1)
    assert all(draw.probability == pytest.approx(float(expected[draw.id])) for draw in draws)


def test_the_stop_token_ends_the_text_and_is_given(model):
    tokens = [token.id for token in generate(model, [0], n_tokens=20, sampling=Sampling())]
    stop = tokens[7]
    stopped = generate(model, [0], n_tokens=20, sampling=Sampling(), stop_id=stop)
    assert [token.id for token in stopped] == tokens[: tokens.index(stop) + 1]


@pytest.mark.parametrize("use_cache", [True, False])
def test_the_longest_text_the_model_reads_is_the_end(model, use_cache):
    ids = [0] * 45
    tokens = generate(model, ids, n_tokens=99, sampling=GREEDY, use_cache=use_cache)
    assert len(list(tokens)) == 3


@pytest.mark.parametrize("n_ids", [0, 49])
def test_a_text_that_cannot_be_continued_is_an_error(model, n_ids):
    message = f"generation continues 1 to 48 tokens, not {n_ids}"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        next(generate(model, [0] * n_ids, n_tokens=1, sampling=GREEDY))


@pytest.mark.parametrize("kind", ["encoder", "encoder-decoder"])
def test_only_a_decoder_continues_a_text(make_model, kind):
    message = f"a model of kind {kind!r} cannot generate; use a decoder"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        next(generate(make_model(kind=kind), [0], n_tokens=1, sampling=GREEDY))


def test_generation_leaves_gradients_on_for_others(model):
    for _ in generate(model, [0], n_tokens=2, sampling=GREEDY):
        assert torch.is_grad_enabled()
        assert not torch.is_inference_mode_enabled()


# --- forced tokens --------------------------------------------------------------------------------


def test_forcing_what_was_drawn_changes_nothing(model):
    drawn = list(generate(model, [0, 5, 9], n_tokens=12, sampling=Sampling(), seed=3))
    forced = [token.id for token in drawn[:7]]
    again = list(
        generate(model, [0, 5, 9], n_tokens=12, sampling=Sampling(), seed=3, forced=forced)
    )
    assert [token.id for token in again] == [token.id for token in drawn]
    assert [token.is_forced for token in again] == [True] * 7 + [False] * 5
    for one, other in zip(again, drawn, strict=True):
        assert one.probability == pytest.approx(other.probability, abs=1e-6)


def test_a_step_draws_the_same_number_whatever_was_forced_before_it(model):
    with model.edit("logits", torch.zeros_like):  # so that the text makes no difference
        drawn = [token.id for token in generate(model, [0], n_tokens=9, sampling=Sampling())]
        forced = [(token + 1) % 300 for token in drawn[:4]]
        other = generate(model, [0], n_tokens=9, sampling=Sampling(), forced=forced)
        assert [token.id for token in other] == forced + drawn[4:]


def test_a_forced_token_is_read_and_measured_like_any_other(model):
    (first, second) = generate(model, [0], n_tokens=2, sampling=GREEDY, forced=[17])
    assert (first.id, first.is_forced) == (17, True)
    assert first.probability == 0, "greedy decoding could not have drawn it"
    own = model(torch.tensor([[0]])).logits[0, -1].softmax(dim=-1).detach()
    assert first.model_probability == pytest.approx(float(own[17]), abs=1e-6)
    assert second.id == int(model(torch.tensor([[0, 17]])).logits[0, -1].argmax())


@pytest.mark.parametrize("use_cache", [True, False])
def test_forced_tokens_that_are_skipped_change_nothing_after_them(model, use_cache):
    options = {"n_tokens": 12, "sampling": Sampling(), "seed": 3, "capture": ["*.weights"]}
    drawn = list(generate(model, [0, 5, 9], **options))
    forced = [token.id for token in drawn[:8]]
    for skip in (1, 7, 8):
        rest = list(
            generate(model, [0, 5, 9], **options, forced=forced, skip=skip, use_cache=use_cache)
        )
        assert [token.id for token in rest] == [token.id for token in drawn[skip:]]
        assert [token.is_forced for token in rest] == [True] * (8 - skip) + [False] * 4
        for one, other in zip(rest, drawn[skip:], strict=True):
            assert one.probability == pytest.approx(other.probability, abs=1e-5)
            for site, row in other.row.items():
                torch.testing.assert_close(one.row[site], row, rtol=0, atol=1e-5)


def test_nothing_comes_after_a_stop_token_that_is_skipped(model):
    options = {"n_tokens": 9, "sampling": Sampling(), "stop_id": 1}
    assert list(generate(model, [0], **options, forced=[7, 1], skip=2)) == []


@pytest.mark.parametrize("token", [-1, 300])
def test_a_token_that_is_not_there_cannot_be_forced(model, token):
    message = f"there is no token {token} to force; the ids are 0 to 299"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        next(generate(model, [0], n_tokens=1, sampling=GREEDY, forced=[5, token]))


# --- what is kept of a step -----------------------------------------------------------------------


def test_the_rank_counts_from_the_likeliest_and_of_equals_the_smaller_id_is_first():
    probabilities = torch.tensor([0.1, 0.4, 0.1, 0.25, 0.15])
    tokens = [
        GeneratedToken(id=token, distribution=probabilities, model_distribution=probabilities)
        for token in range(5)
    ]
    assert [token.rank for token in tokens] == [4, 1, 5, 2, 3]
    assert tokens[0].likeliest(3) == [1, 3, 4]
    assert len(tokens[0].likeliest()) == 5


@pytest.mark.parametrize("use_cache", [True, False])
@pytest.mark.parametrize("positional", POSITIONALS)
def test_rows_are_those_of_one_pass_over_the_whole_text(make_model, positional, use_cache):
    model = make_model(positional=positional, n_kv_heads=2)
    prompt = [0, 5, 9, 31]
    numbers = [f"*.{name}" for name in ("first_token", "mean_distance", "entropy")]
    sites = ["*.self_attention.weights", "*.experts.expert_*", "*.residual.after", *numbers]
    options = {"n_tokens": 8, "sampling": Sampling(), "capture": sites, "use_cache": use_cache}
    tokens = list(generate(model, prompt, **options))
    with torch.inference_mode(), model.capture(sites) as whole:
        model(torch.tensor([[*prompt, *(token.id for token in tokens)]]))
    for step, token in enumerate(tokens):
        query = len(prompt) + step - 1
        assert set(token.row) == set(whole)
        for site, row in token.row.items():
            expected = whole[site][0]
            if site.endswith(".weights") and "attention" in site:
                assert row.shape == (4, query + 1)
                assert torch.allclose(row.sum(dim=-1), torch.ones(4), atol=1e-6)
                expected = expected[:, query, : query + 1]
            elif any(fnmatch.fnmatch(site, glob) for glob in numbers):
                expected = expected[:, query]
            else:
                expected = expected[query]
            torch.testing.assert_close(row, expected, rtol=0, atol=1e-5)


def test_only_the_layers_and_heads_asked_for_are_kept(model):
    sites = ["*.self_attention.weights"]
    token = next(
        generate(
            model, [0, 5], n_tokens=1, sampling=GREEDY, capture=sites, layers=[1], heads=[3, 0]
        )
    )
    (site,) = token.row
    assert site == "decoder.layers.1.self_attention.weights"
    whole = next(generate(model, [0, 5], n_tokens=1, sampling=GREEDY, capture=sites)).row[site]
    torch.testing.assert_close(token.row[site], whole[[3, 0]], rtol=0, atol=1e-6)
    with pytest.raises(UnknownHead):
        next(generate(model, [0], n_tokens=1, sampling=GREEDY, capture=sites, heads=[4]))


def test_only_the_last_query_is_ever_watched(model, monkeypatch):
    lengths: list[int] = []
    embed: Callable[..., Tensor] = model.decoder.embedding.forward

    def note(ids, **start):
        lengths.append(ids.shape[1])
        return embed(ids, **start)

    monkeypatch.setattr(model.decoder.embedding, "forward", note)
    list(generate(model, [0, 5, 9], n_tokens=3, sampling=GREEDY, capture=["*.weights"]))
    assert lengths == [2, 1, 1, 1]


def test_logits_that_nothing_can_be_drawn_from_are_named(model):
    with model.edit("logits", lambda logits: logits * math.nan):
        tokens = generate(model, [0, 5], n_tokens=3, sampling=Sampling())
        with pytest.raises(NonFiniteLogits, match="NaN or an infinity"):
            next(tokens)


SCHEMES = {
    "sinusoidal, experts": {},
    "learned, post-norm": {"positional": "learned", "norm_place": "post"},
    "rotary, shared keys": {"positional": "rotary", "n_kv_heads": 2},
    "ALiBi": {"positional": "alibi"},
    "none": {"positional": "none"},
}
ALL_SITES = ["*.weights", "*.keys", "*.experts.*", "*.residual.after"]
TEXTS = [
    {"ids": [0, 5, 9, 7, 11, 3, 8], "n_tokens": 9, "seed": 1},
    {"ids": [0], "n_tokens": 7, "seed": 2, "layers": [1], "heads": [2, 0]},
    {"ids": [0, 4], "n_tokens": 5, "seed": 3, "forced": [6, 8, 2], "skip": 2},
    {"ids": [0, 4, 4, 4], "n_tokens": 9, "seed": 4},
]


@pytest.mark.parametrize("name", SCHEMES)
@pytest.mark.parametrize("is_changed", [False, True])
def test_texts_that_share_passes_have_the_numbers_that_they_have_alone(
    make_model, name, is_changed
):
    model = make_model(**SCHEMES[name])

    def texts():
        capture = [
            site for site in ALL_SITES if fnmatch.filter([s.name for s in model.sites], site)
        ]
        return [
            Continuation(model, sampling=Sampling(), **({"capture": capture} | options))
            for options in TEXTS
        ]

    def alone(text):
        while not text.is_finished:
            yield from decode_together([text])

    with model.edit("*.0.self_attention.scores", lambda scores: scores * (1 + is_changed)):
        expected = [list(alone(text)) for text in texts()]
        found = [[] for _ in TEXTS]
        waiting = dict(enumerate(texts()))
        while waiting:  # texts join and leave: the second begins late, the others end apart
            now = {n: text for n, text in waiting.items() if n != 1 or len(found[0]) > 2}
            for (n, text), token in zip(
                now.items(), decode_together(list(now.values())), strict=True
            ):
                found[n].append(token)
                if text.is_finished:
                    del waiting[n]
    for one, other in zip(found, expected, strict=True):
        assert [token.id for token in one] == [token.id for token in other]
        for token, reference in zip(one, other, strict=True):
            torch.testing.assert_close(
                token.model_distribution, reference.model_distribution, rtol=0, atol=1e-5
            )
            assert list(token.row) == list(reference.row)
            for site, tensor in token.row.items():
                torch.testing.assert_close(tensor, reference.row[site], rtol=0, atol=1e-5)


def test_a_text_without_finite_logits_breaks_no_other_off(model):
    texts = [Continuation(model, [0, n], n_tokens=2, sampling=GREEDY) for n in (4, 5)]

    def spoil(logits):
        logits = logits.clone()
        logits[0] = torch.nan
        return logits

    with model.edit("logits", spoil):
        broken, fine = decode_together(texts)
    assert isinstance(broken, NonFiniteLogits)
    assert fine.id == next(generate(model, [0, 5], n_tokens=1, sampling=GREEDY)).id
