"""BLEU of a translator, against sacrebleu called directly."""

import re
import sys
from collections.abc import Callable, Sequence

import pytest
import sacrebleu

from headlight.model.checkpoint import Checkpoint
from headlight.model.evaluation.bleu import bleu, translations
from headlight.model.tokenizer import Tokenizer
from headlight.model.training.corpus import SentencePair
from headlight.model.translation import translate

SAID = {
    "The cat chased the mouse.": "Le chat a chassé la petite souris.",
    "It was too tired.": "Il était trop fatigué pour cela.",
    "A tree!": "Un arbre !",
}


@pytest.fixture(scope="module")
def translator(make_checkpoint: Callable[..., Checkpoint]) -> Checkpoint:
    return make_checkpoint(kind="encoder-decoder", moe=None)


@pytest.fixture
def says(monkeypatch: pytest.MonkeyPatch, tokenizer: Tokenizer) -> list[int]:
    """Let the translator say what is in `SAID`; the list counts the texts of every call."""
    calls: list[int] = []

    def say(
        model: object, sources: Sequence[Sequence[int]], *, start_id: int, end_id: int
    ) -> list[list[int]]:
        assert {source[0] for source in sources} == {tokenizer.start_id}
        assert end_id == tokenizer.end_id
        calls.append(len(sources))
        texts = [SAID[tokenizer.decode(source)] for source in sources]
        return tokenizer.encode_ids(texts)

    monkeypatch.setattr("headlight.model.evaluation.bleu.translate", say)
    return calls


def pairs_of(*references: tuple[str, str]) -> list[SentencePair]:
    return [SentencePair(source, target) for source, target in references]


def test_who_says_the_reference_has_a_hundred(translator: Checkpoint, says: list[int]) -> None:
    assert bleu(translator, pairs_of(*SAID.items())) == pytest.approx(100)


def test_who_says_something_else_has_nothing(translator: Checkpoint, says: list[int]) -> None:
    assert bleu(translator, pairs_of(*((text, "xyz") for text in SAID))) < 5


def test_the_score_is_that_of_sacrebleu(translator: Checkpoint, says: list[int]) -> None:
    cat, tired, tree = SAID
    pairs = pairs_of(
        (tree, "Un arbre!"),
        (cat, "Le chat chassa la petite souris."),
        (tired, "Il était trop las pour cela."),
    )
    expected = sacrebleu.corpus_bleu(
        [SAID[pair.source] for pair in pairs], [[pair.target for pair in pairs]]
    )
    assert bleu(translator, pairs) == expected.score
    assert 10 < expected.score < 90


def test_a_source_with_many_references_counts_once_against_all(
    translator: Checkpoint, says: list[int]
) -> None:
    cat, tired, tree = SAID
    pairs = pairs_of(
        (cat, "Le matou a chassé une souris."),
        (tree, "Un arbre !"),
        (cat, "Le chat poursuit la petite souris."),
        (tired, "Il était las pour cela."),
        (cat, "Un chat chassa la souris grise."),
        (tired, "Elle était trop fatiguée pour cela."),
    )
    expected = sacrebleu.corpus_bleu(
        [SAID[cat], SAID[tree], SAID[tired]],
        [
            ["Le matou a chassé une souris.", "Un arbre !", "Il était las pour cela."],
            ["Le chat poursuit la petite souris.", None, "Elle était trop fatiguée pour cela."],
            ["Un chat chassa la souris grise.", None, None],
        ],
    )
    assert bleu(translator, pairs) == expected.score
    assert sum(says) == 3
    first_alone = bleu(translator, pairs_of(*{p.source: p.target for p in pairs[::-1]}.items()))
    assert first_alone < expected.score


def test_translations_come_in_the_order_of_the_sources(
    translator: Checkpoint, says: list[int]
) -> None:
    sources = [*SAID, *reversed(SAID)]
    assert translations(translator, sources, batch_rows=4) == [SAID[text] for text in sources]
    assert says == [4, 2]


def test_the_translations_are_the_models_own(translator: Checkpoint) -> None:
    tokenizer = translator.tokenizer
    special = {"start_id": tokenizer.start_id, "end_id": tokenizer.end_id}
    ids = [[token.id for token in tokenizer.encode(text)] for text in SAID]
    alone = [translate(translator.model, [source], **special)[0] for source in ids]
    assert translations(translator, list(SAID)) == [tokenizer.decode(target) for target in alone]


def test_without_sacrebleu_one_is_told_what_to_install(
    translator: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    message = "BLEU needs sacrebleu, which is not installed; pip install headlight[evaluate]"
    with pytest.raises(ImportError, match=f"^{re.escape(message)}$"):
        bleu(translator, pairs_of(*SAID.items()))
