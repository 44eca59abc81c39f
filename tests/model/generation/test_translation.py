"""Beam search agrees with a search through every target."""

from itertools import product

import pytest
import torch

from headlight.model.generation.translation import Beam, _Search, longest_target, translate

START, END = 0, 1
SOURCES = [[START, 2], [START, 3, 4, 2, 4], [START, 4, 4, 3]]


@pytest.fixture(scope="module")
def make_translator(make_model):
    """Return a function for translators of five tokens: ``make_translator(seed=1)``."""

    def make(**changes):
        small = {"kind": "encoder-decoder", "moe": None, "vocab_size": 5, "max_tokens": 5}
        model = make_model(**{**small, **changes})
        with torch.no_grad():
            model.vectors.mul_(20)
        return model

    return make


def search(model, sources, beam=None):
    return translate(model, sources, start_id=START, end_id=END, beam=beam)


def log_probabilities(model, source, targets):
    """Of targets with their end tokens, where they have one, in one pass without a cache."""
    longest = max(map(len, targets))
    ids = torch.tensor([[START, *ids, *[END] * (longest - len(ids))] for ids in targets])
    with torch.inference_mode():
        logits = model(torch.tensor([source] * len(targets)), ids[:, :-1]).logits
        logits[..., START] = -torch.inf  # the start token is no choice
    chances = logits.log_softmax(dim=-1).gather(2, ids[:, 1:, None])[..., 0]
    is_counted = torch.arange(longest) < torch.tensor([[len(ids)] for ids in targets])
    return (chances * is_counted).sum(dim=1).tolist()


def every_target(limit):
    ended = [(*words, END) for n in range(limit) for words in product((2, 3, 4), repeat=n)]
    return ended + list(product((2, 3, 4), repeat=limit))


def best_of_all(model, source, penalty):
    targets = every_target(longest_target(len(source), model.config.max_tokens))
    sums = log_probabilities(model, source, targets)
    scores = [total / len(ids) ** penalty for total, ids in zip(sums, targets, strict=True)]
    return [token for token in targets[scores.index(max(scores))] if token != END]


def greedy(model, source):
    """Return the likeliest token, again and again, reading the whole target at every step."""
    ids: list[int] = []
    for _ in range(longest_target(len(source), model.config.max_tokens)):
        with torch.inference_mode():
            logits = model(torch.tensor([source]), torch.tensor([[START, *ids]])).logits[0, -1]
        ids.append(1 + int(logits[1:].argmax()))  # the start token is no choice
        if ids[-1] == END:
            return ids[:-1]
    return ids


@pytest.mark.parametrize("penalty", [0.0, 0.6, 1.0, 3.0])
@pytest.mark.parametrize("seed", range(4))
def test_a_wide_beam_finds_the_best_of_all_targets(make_translator, seed, penalty):
    model = make_translator(seed=seed)
    found = search(model, SOURCES, Beam(width=200, length_penalty=penalty))
    assert found == [best_of_all(model, source, penalty) for source in SOURCES]


OTHER_POSITIONS = [
    pytest.param(name, marks=pytest.mark.slow) for name in ("learned", "rotary", "alibi")
]


@pytest.mark.parametrize("positional", ["sinusoidal", *OTHER_POSITIONS])
def test_a_beam_of_one_takes_the_likeliest_token_each_time(make_translator, positional):
    lengths = set()
    for seed in range(6):
        model = make_translator(seed=seed, vocab_size=12, max_tokens=16, positional=positional)
        expected = [greedy(model, source) for source in SOURCES]
        assert search(model, SOURCES, Beam(width=1)) == expected
        lengths |= set(map(len, expected))
    assert len(lengths) > 1, "no target ended before its limit"


@pytest.mark.parametrize(
    "width", [pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow), 4]
)
def test_a_text_gets_the_same_alone_and_in_company(make_translator, width):
    for seed in range(4):
        model = make_translator(seed=seed, vocab_size=12, max_tokens=20)
        together = search(model, SOURCES, Beam(width=width))
        alone = [search(model, [source], Beam(width=width))[0] for source in SOURCES]
        assert together == alone
        assert together == search(model, SOURCES, Beam(width=width)), "not repeatable"


def test_a_target_that_never_ends_stops_at_its_limit(make_translator):
    model = make_translator(max_tokens=32)

    def never_end(logits):
        logits[..., END] = -100
        return logits

    with model.edit("logits", never_end):
        found = search(model, SOURCES)
    assert [len(target) for target in found] == [14, 20, 18]


def test_no_target_holds_a_special_token(make_translator):
    model = make_translator()

    def begin_again(logits):
        logits[..., START] += 100
        return logits

    with model.edit("logits", begin_again):
        found = search(model, SOURCES)
    assert found == search(model, SOURCES), "the start token is no choice"
    assert not {START, END} & {token for target in found for token in target}


@pytest.mark.parametrize("kind", ["decoder", "encoder"])
def test_only_a_translator_translates(make_model, kind):
    model = make_model(kind=kind, moe=None)
    with pytest.raises(ValueError, match=f"^a model of kind '{kind}' cannot translate$"):
        search(model, SOURCES)


class Rereading(_Search):
    """The same search, which reads every target from its start at every step."""

    def _log_probabilities(self):
        self.cache = []
        logits = self.model.decode(self.ids.flatten(0, 1), self.memory).logits[:, -1].clone()
        logits[:, START] = -torch.inf
        return logits.log_softmax(dim=-1).unflatten(0, self.scores.shape)


@pytest.mark.parametrize("width", [2, 5])
def test_what_a_beam_remembers_goes_with_its_targets(make_model, width):
    model = make_model(kind="encoder-decoder", moe=None, vocab_size=60, max_tokens=24)
    with torch.no_grad():  # so that every token depends on all before it
        for layer in model.decoder.layers:
            layer.self_attention.value_projection.weight.mul_(5)
            layer.self_attention.output_projection.weight.mul_(5)
        model.vectors.mul_(5)
    sources = [[START, *range(first, first + 5)] for first in range(2, 50, 6)]
    with torch.inference_mode():
        expected = Rereading(model, sources, START, END, Beam(width=width)).run()
    assert search(model, sources, Beam(width=width)) == expected
