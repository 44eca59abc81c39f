"""The recipe `translate`: pairs of a corpus, some held out, for an encoder–decoder."""

import re

import pytest

from headlight.lab.training.batches import Batches, Material
from headlight.lab.training.recipes.translate import (
    CONFIG,
    RECIPE,
    TranslateBatches,
    TranslateConfig,
)
from headlight.model.corpus import CorpusError, SentencePair
from headlight.model.tokenizer import train_tokenizer


def make_pairs(count=80):
    """Sentences in two languages; every fourth source comes twice, with another translation."""
    nouns = {"cat": "chat", "dog": "chien", "king": "roi", "tree": "arbre", "moon": "lune"}
    names = list(nouns)
    pairs = []
    for number in range(count):
        first, second = names[number % 5], names[number % 3]
        english = f"the {first} {number} sees the {second}"
        pairs.append(SentencePair(english, f"le {nouns[first]} {number} voit le {nouns[second]}"))
        if number % 4 == 0:
            pairs.append(SentencePair(english, f"le {nouns[first]} {number} aperçoit"))
    return pairs


@pytest.fixture(scope="module")
def translation_tokenizer():
    return train_tokenizer(RECIPE.texts(make_pairs()), 300)


def make_batches(tokenizer, *, max_tokens=24, seed=0, held_out=0.2):
    config = TranslateConfig(batch_tokens=200, held_out=held_out)
    return TranslateBatches(Material(make_pairs(), tokenizer, max_tokens, config, seed))


def sources(tokenizer, batch):
    assert batch.source is not None
    assert batch.is_token is not None
    return [
        tokenizer.decode(row[is_token].tolist())
        for row, is_token in zip(batch.source, batch.is_token, strict=True)
    ]


def test_no_source_is_both_trained_on_and_held_out(translation_tokenizer):
    batches = make_batches(translation_tokenizer)
    held_out = {
        text for batch in batches.validation() for text in sources(translation_tokenizer, batch)
    }
    trained: set[str] = set()
    for step in range(60):  # more than one epoch
        trained |= set(sources(translation_tokenizer, batches.batch(step)))
    assert held_out
    assert trained
    assert not trained & held_out
    assert trained | held_out == {pair.source for pair in make_pairs()}


def test_what_is_held_out_depends_on_no_seed(translation_tokenizer):
    shown = [make_batches(translation_tokenizer, seed=seed).validation() for seed in (0, 1)]
    for batch, twin in zip(*shown, strict=True):
        assert batch.targets.equal(twin.targets)
    first, second = (make_batches(translation_tokenizer, seed=seed).batch(0) for seed in (0, 1))
    assert sources(translation_tokenizer, first) != sources(translation_tokenizer, second)


def test_pairs_too_long_for_the_model_are_left_out(translation_tokenizer):
    lengths = []
    for pair in make_pairs():
        source, target = (len(translation_tokenizer.encode(text)) for text in pair)
        lengths.append(max(source, target))  # <s> before the source, </s> after the target
    limit = sorted(lengths)[len(lengths) // 2]
    batches = make_batches(translation_tokenizer, max_tokens=limit)
    kept = [*batches.trained.pairs, *batches.held_out.pairs]
    assert len(kept) == sum(length <= limit for length in lengths)
    assert max(max(len(pair.source), len(pair.target) + 1) for pair in kept) == limit


def test_a_corpus_that_leaves_nothing_is_refused(translation_tokenizer):
    n_pairs = len(make_pairs())
    nothing = f"of {n_pairs} pairs {n_pairs} have at most 24 tokens a side; with 0.001% held out "
    with pytest.raises(CorpusError, match=f"^{re.escape(nothing)}none is left to validate on$"):
        make_batches(translation_tokenizer, held_out=0.00001)
    with pytest.raises(CorpusError, match=r"with 99\.9999% held out none is left to train on$"):
        make_batches(translation_tokenizer, held_out=0.999999)
    with pytest.raises(CorpusError, match=rf"^of {n_pairs} pairs 0 have at most 3 tokens a side"):
        make_batches(translation_tokenizer, max_tokens=3)


@pytest.mark.parametrize(
    ("name", "value"), [("batch_tokens", 0), ("held_out", 0.0), ("held_out", 1.0)]
)
def test_a_number_out_of_range_is_rejected(name, value):
    with pytest.raises(ValueError, match=rf"^{name} \({value}\)"):
        TranslateConfig(**{name: value})


def test_the_shipped_recipe_fits_its_architecture(translation_tokenizer):
    assert CONFIG.kind == "encoder-decoder"
    assert RECIPE.rows.batch_tokens >= 2 * CONFIG.max_tokens
    rows = TranslateConfig(held_out=0.2)
    material = Material(make_pairs(), translation_tokenizer, CONFIG.max_tokens, rows, 0)
    batches = RECIPE.batches(material)
    assert isinstance(batches, Batches)


# --- a run ----------------------------------------------------------------------------------------
