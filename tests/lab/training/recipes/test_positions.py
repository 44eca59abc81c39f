"""The recipe of the `positions-*` twins: the same rows whatever the scheme."""

from dataclasses import replace

import pytest
import torch

from headlight.lab.training.batches import Material, TextRows
from headlight.lab.training.recipes.positions import RECIPE, PositionsBatches, PositionsConfig
from headlight.model.config import TransformerConfig
from headlight.model.corpus import CorpusError, TokenStream
from headlight.model.tokenizer import train_tokenizer

# Paragraphs of many lengths, so that rows overlap wherever one begins early enough.
DOCUMENTS = ["".join(f"Number {n} saw{' the cat' * (n % 5)}, and left.\n" for n in range(150))]
SMALL = PositionsConfig(tokens=16, count=4, held_out=7)
MODEL = TransformerConfig(n_layers=1, n_heads=2, d_model=16, d_ff=24, vocab_size=300, max_tokens=32)


@pytest.fixture(scope="module")
def words():
    return train_tokenizer(DOCUMENTS, 300)


def make_batches(words, *, seed=0, **changes):
    model = replace(MODEL, **changes)
    return RECIPE.batches(Material(DOCUMENTS, words, model.max_tokens, SMALL, seed))


def same(first, second):
    return torch.equal(first.ids, second.ids) and torch.equal(first.targets, second.targets)


@pytest.mark.parametrize(
    "changes",
    [
        {"positional": "learned", "max_tokens": 16},
        {"positional": "rotary"},
        {"positional": "alibi"},
        {"max_tokens": 64},
    ],
)
def test_every_scheme_reads_the_same_rows(words, changes):
    first, second = make_batches(words), make_batches(words, **changes)
    assert all(same(first.batch(step), second.batch(step)) for step in range(40))
    assert all(map(same, first.validation(), second.validation()))


def test_a_model_reads_as_many_tokens_as_the_settings_say(words):
    batches = make_batches(words)
    for batch in (batches.batch(0), batches.batch(99)):
        assert batch.ids.shape == batch.targets.shape == (4, 16)
        assert (batch.ids[:, 0] == words.start_id).all()
        assert torch.equal(batch.ids[:, 1:], batch.targets[:, :-1])
        assert batch.is_counted.all()


def test_no_row_that_is_trained_on_reaches_into_one_that_is_held_out(words):
    """Rows overlap in this corpus, so leaving out numbers of rows would not be enough."""
    n_cut = 0
    for held_out in range(1, 12):
        config = replace(SMALL, held_out=held_out)
        batches = RECIPE.batches(Material(DOCUMENTS, words, MODEL.max_tokens, config, 0))
        ends = batches.trained.starts + 16
        assert int(ends.max()) <= int(batches.held_out.starts.min())
        assert len(batches.held_out.starts) == held_out
        n_rows = len(TokenStream.encode(DOCUMENTS, words).row_starts(16))
        n_cut += n_rows - held_out - len(batches.trained.starts)
    assert n_cut > 0, "no row was left out, so nothing was shown"


def test_the_held_out_rows_are_the_last_in_parts(words):
    stream = TokenStream.encode(DOCUMENTS, words)
    text = TextRows.cut(stream, length=8, start_id=words.start_id, seed=0)
    batches = PositionsBatches(text, PositionsConfig(tokens=8, count=2, held_out=20))
    parts = batches.validation()
    assert [len(part.ids) for part in parts] == [16, 4]
    rows = sorted(row for part in parts for row in part.targets.tolist())
    expected = stream.ids[text.starts[-20:][:, None] + torch.arange(8)].tolist()
    assert rows == sorted(expected)


@pytest.mark.parametrize(
    ("n_tokens", "fault"), [(15, "at least 16"), (16, "at least two"), (20, "4 are left")]
)
def test_a_corpus_that_is_too_short_is_rejected(words, n_tokens, fault):
    stream = TokenStream.encode(DOCUMENTS, words)
    short = TokenStream(stream.ids[:n_tokens], stream.starts[:1])
    with pytest.raises(CorpusError, match=fault):
        PositionsBatches(TextRows.cut(short, length=16, start_id=0, seed=0), SMALL)


def test_rows_fit_the_model(words):
    with pytest.raises(ValueError, match=r"rows.tokens \(16\)"):
        make_batches(words, max_tokens=15)
