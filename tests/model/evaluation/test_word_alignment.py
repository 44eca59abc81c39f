"""Word alignment: the score, the gold, and the IBM models."""

import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from headlight.model.evaluation.word_alignment import (
    ENGLISH_FRENCH_GOLD,
    AlignmentScore,
    GoldPair,
    Link,
    alignment_error_rate,
    ibm_model_1_links,
    ibm_model_2_links,
    read_gold,
    short_pairs,
    split_words,
    word_spans,
)
from headlight.model.training.corpus import CorpusError

RECORD = {
    "english": "He cleaned it up.",
    "french": "Il le nettoya.",
    "english_words": ["He", "cleaned", "it", "up", "."],
    "french_words": ["Il", "le", "nettoya", "."],
    "sure": [[0, 0], [1, 2], [2, 1], [4, 3]],
    "possible": [[0, 0], [1, 2], [2, 1], [3, 2], [4, 3]],
}
JOINED_RECORD = {
    "source": "a story",
    "id": 7,
    "en": ["The", "wolf", "ran"],
    "fr": ["L'", "un", "courut"],
    "sure": [[2, 2]],
    "possible": [[0, 0], [1, 1]],
}


def gold_pair(
    english: str = "a b c",
    french: str = "x y z",
    sure: Iterable[Link] = (),
    possible: Iterable[Link] = (),
) -> GoldPair:
    return GoldPair(
        english=english,
        french=french,
        english_words=tuple(split_words(english)),
        french_words=tuple(split_words(french)),
        sure=frozenset(sure),
        possible=frozenset(sure) | frozenset(possible),
    )


TWO_SURE_ONE_POSSIBLE = gold_pair(sure=[(0, 0), (1, 1)], possible=[(2, 2)])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "gold.jsonl"


@pytest.fixture(scope="module")
def committed_gold() -> list[GoldPair]:
    return read_gold(ENGLISH_FRENCH_GOLD)


@pytest.mark.parametrize(
    ("links", "error_rate", "precision", "recall"),
    [
        ({(0, 0), (1, 1)}, 0, 1, 1),
        ({(0, 0), (1, 1), (2, 2)}, 0, 1, 1),
        ({(0, 0)}, 1 - 2 / 3, 1, 1 / 2),
        ({(2, 2)}, 1 - 1 / 3, 1, 0),
        ({(0, 0), (1, 1), (0, 2)}, 1 - 4 / 5, 2 / 3, 1),
        ({(0, 0), (2, 2), (2, 0), (2, 1)}, 1 - 3 / 6, 2 / 4, 1 / 2),
        ({(0, 1), (1, 0)}, 1, 0, 0),
        (set(), 1, 0, 0),
    ],
)
def test_the_score_of_a_sentence_counted_by_hand(
    links: set[Link], error_rate: float, precision: float, recall: float
) -> None:
    score = alignment_error_rate([links], [TWO_SURE_ONE_POSSIBLE])
    assert score == pytest.approx((error_rate, precision, recall))
    assert score == AlignmentScore(score.error_rate, score.precision, score.recall)


def test_counts_run_over_the_corpus_not_over_the_means_of_its_sentences() -> None:
    one_sure = gold_pair(sure=[(0, 0)])
    score = alignment_error_rate(
        [{(0, 0), (1, 1), (2, 2)}, {(0, 1)}], [TWO_SURE_ONE_POSSIBLE, one_sure]
    )
    assert score == pytest.approx((1 - 5 / 7, 3 / 4, 2 / 3))


def test_a_corpus_may_hold_sentences_without_a_sure_link() -> None:
    free = gold_pair(possible=[(0, 0)])
    score = alignment_error_rate([{(0, 0)}, {(0, 0)}], [free, gold_pair(sure=[(0, 0)])])
    assert score == (0, 1, 1)


def test_a_gold_without_sure_links_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^the gold has no sure link, so no recall; add pairs"):
        alignment_error_rate([{(0, 0)}], [gold_pair(possible=[(0, 0)])])


def test_every_pair_needs_its_links() -> None:
    with pytest.raises(ValueError, match=r"^there are 2 sets of links for 1 gold pairs$"):
        alignment_error_rate([set(), set()], [TWO_SURE_ONE_POSSIBLE])


@pytest.mark.parametrize("link", [(3, 0), (0, 3), (-1, 0), (0, -1)])
def test_a_link_to_a_word_that_is_not_there_is_refused(link: Link) -> None:
    message = f"the link {link} leaves the 3 English and 3 French words of 'a b c'"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        alignment_error_rate([{(0, 0), link}], [TWO_SURE_ONE_POSSIBLE])
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        gold_pair(possible=[link])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("I don't know.", ["I", "don", "'t", "know", "."]),
        ("Tom's dog", ["Tom", "'s", "dog"]),
        ("J'ai l'air d'être là.", ["J", "'", "ai", "l", "'", "air", "d", "'", "être", "là", "."]),
        ("Voulez-vous ?", ["Voulez", "-", "vous", "?"]),
        ('"Time is money."', ['"', "Time", "is", "money", '."']),
        ("  two  spaces ", ["two", "spaces"]),
    ],
)
def test_words_are_cut_as_a_byte_level_tokenizer_cuts_them(text: str, words: list[str]) -> None:
    assert split_words(text) == words


def test_words_are_found_in_their_text() -> None:
    text = " L'été,  là."
    spans = word_spans(text, split_words(text))
    assert spans == [(1, 2), (2, 3), (3, 6), (6, 7), (9, 11), (11, 12)]
    assert [text[start:end] for start, end in spans] == split_words(text)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["an", "apple"], "the word 'apple' is not what comes next in 'an pear'"),
        (["an", "pear", "!"], "the word '!' is not what comes next in 'an pear'"),
        (["an", "", "pear"], "the word '' is not what comes next in 'an pear'"),
        (["an", "pe"], "no word spells the end 'ar' of 'an pear'"),
        ([], "no word spells the end 'an pear' of 'an pear'"),
    ],
)
def test_words_that_do_not_spell_their_text_are_refused(words: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        word_spans("an pear", words)


def test_gold_with_raw_text_is_read(path: Path) -> None:
    path.write_text(json.dumps(RECORD) + "\n", encoding="utf-8")
    (pair,) = read_gold(path)
    assert (pair.english, pair.french) == ("He cleaned it up.", "Il le nettoya.")
    assert pair.english_words == ("He", "cleaned", "it", "up", ".")
    assert pair.french_words == ("Il", "le", "nettoya", ".")
    assert pair.sure == {(0, 0), (1, 2), (2, 1), (4, 3)}
    assert pair.possible == pair.sure | {(3, 2)}


def test_gold_with_words_alone_is_joined_and_its_sure_links_are_possible(path: Path) -> None:
    path.write_text(json.dumps(JOINED_RECORD) + "\n\n" + json.dumps(RECORD), encoding="utf-8")
    pair, other = read_gold(path)
    assert (pair.english, pair.french) == ("The wolf ran", "L' un courut")
    assert pair.french_words == ("L'", "un", "courut")
    assert (pair.sure, pair.possible) == ({(2, 2)}, {(0, 0), (1, 1), (2, 2)})
    assert other.english == "He cleaned it up."


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sure": [[3, 2], [3, 3]]}, "the sure link (3, 3) is not among the possible ones"),
        ({"possible": [[5, 0]]}, "the link (5, 0) leaves the 5 English and 4 French words of "),
        ({"english": "He cleans it up."}, "the word 'cleaned' is not what comes next in "),
        ({"french": "Il le nettoya !"}, "the word '.' is not what comes next in "),
        ({"sure": [[0]]}, "links must be a list of pairs of whole numbers, not [[0]]"),
        ({"sure": [[0, True]]}, "links must be a list of pairs of whole numbers, not "),
        ({"possible": [[0, "0"]]}, "links must be a list of pairs of whole numbers, not "),
        ({"possible": {}}, "links must be a list of pairs of whole numbers, not {}"),
        ({"english_words": "He"}, "words must be a list of texts, not 'He'"),
        ({"french_words": ["Il", 5]}, "words must be a list of texts, not ['Il', 5]"),
        ({"french_words": []}, "words must be a list of texts, not []"),
        ({"english": 5}, ""),
    ],
)
def test_a_line_that_is_no_aligned_pair_is_named(
    path: Path, change: dict[str, object], message: str
) -> None:
    lines = [json.dumps(RECORD), json.dumps(RECORD | change)]
    path.write_text("\n".join(lines), encoding="utf-8")
    expected = f"{path}, line 2 is no aligned pair: {message}"
    with pytest.raises(CorpusError, match=f"^{re.escape(expected)}"):
        read_gold(path)


@pytest.mark.parametrize("record", [RECORD, JOINED_RECORD])
def test_a_line_that_lacks_a_member_is_named(path: Path, record: dict[str, object]) -> None:
    path.write_text(json.dumps({k: v for k, v in record.items() if k != "possible"}))
    expected = f"{path}, line 1 is no aligned pair: it lacks 'possible'"
    with pytest.raises(CorpusError, match=f"^{re.escape(expected)}$"):
        read_gold(path)


@pytest.mark.parametrize("line", ["{", "[1]", '"en"', "5", "null"])
def test_a_line_that_is_no_object_is_named(path: Path, line: str) -> None:
    path.write_text(line)
    with pytest.raises(CorpusError, match=f"^{re.escape(f'{path}, line 1 is no aligned pair: ')}"):
        read_gold(path)


def test_a_gold_file_that_cannot_be_read_or_is_empty_is_named(path: Path) -> None:
    with pytest.raises(CorpusError, match=f"^{re.escape(str(path))} cannot be read: .*No such"):
        read_gold(path)
    path.write_bytes(b"\xff")
    with pytest.raises(CorpusError, match=f"^{re.escape(str(path))} is not UTF-8: line 1 "):
        read_gold(path)
    path.write_bytes(b"\n\n")
    with pytest.raises(
        CorpusError, match=f"^{re.escape(str(path))} is empty; it needs at least one line"
    ):
        read_gold(path)


def test_short_pairs_are_short_on_both_sides() -> None:
    pairs = [gold_pair("a b", "x y"), gold_pair("a b c", "x"), gold_pair("a", "x y z")]
    assert short_pairs(pairs, 2) == pairs[:1]
    assert short_pairs(pairs, 3) == pairs


# Enough to tell the words apart: no two of them always come together.
SENTENCES = [
    ("The dog sleeps.", "Le chien dort."),
    ("The cat sleeps.", "Le chat dort."),
    ("The dog eats.", "Le chien mange."),
    ("A cat eats!", "Un chat mange !"),
    ("A dog", "Un chien"),
]


def test_ibm_model_1_finds_words_by_the_company_they_keep() -> None:
    gold = [gold_pair("a DOG eats", "Mange chien Un")]
    (links,) = ibm_model_1_links(SENTENCES * 5, gold, n_iterations=20)
    assert links == {(2, 0), (1, 1), (0, 2)}


def test_ibm_model_2_learns_that_a_language_turns_the_order_around() -> None:
    words = ["a", "b", "c", "d", "e"]
    turned = [
        (f"{first} {second}", f"{second.upper()}x {first.upper()}x")
        for first in words
        for second in words
        if first != second
    ]
    gold = [gold_pair("f g", "Px Qx"), gold_pair("a b", "Bx Ax")]
    unknown_words, known_words = ibm_model_2_links(turned, gold)
    assert unknown_words == set()
    assert known_words == {(0, 1), (1, 0)}
    repeated = [gold_pair("a a", "Ax Ax")]
    assert ibm_model_2_links(turned, repeated) == [{(0, 1), (1, 0)}]
    assert ibm_model_1_links(turned, repeated) == [{(1, 0), (1, 1)}]


def test_ibm_model_1_links_a_word_it_never_saw_to_the_last() -> None:
    gold = [gold_pair("The wolf sleeps", "Le loup dort")]
    (links,) = ibm_model_1_links(SENTENCES * 5, gold, n_iterations=20)
    assert links == {(0, 0), (2, 1), (2, 2)}


@pytest.mark.parametrize("align", [ibm_model_1_links, ibm_model_2_links])
def test_without_nltk_the_ibm_models_say_how_to_get_it(
    align: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "nltk", None)
    assert callable(align)
    message = "the IBM models need nltk, which is not installed; pip install headlight[evaluate]"
    with pytest.raises(ImportError, match=f"^{re.escape(message)}$"):
        align(SENTENCES, [TWO_SURE_ONE_POSSIBLE])


def test_the_committed_gold_holds_a_hundred_sentences_of_many_lengths(
    committed_gold: list[GoldPair],
) -> None:
    assert len({pair.english for pair in committed_gold}) == len(committed_gold) == 100
    assert {len(pair.english.split()) for pair in committed_gold} == set(range(4, 15))


def test_the_committed_gold_cuts_words_as_the_tokenizer_does(
    committed_gold: list[GoldPair],
) -> None:
    for pair in committed_gold:
        assert list(pair.english_words) == split_words(pair.english)
        assert list(pair.french_words) == split_words(pair.french)


def test_the_committed_gold_links_the_ends_of_sentences_surely(
    committed_gold: list[GoldPair],
) -> None:
    for pair in committed_gold:
        ends = (len(pair.english_words) - 1, len(pair.french_words) - 1)
        assert {link for link in pair.sure if link[0] == ends[0] or link[1] == ends[1]} == {ends}


def test_the_committed_gold_leaves_out_only_what_it_says_it_does(
    committed_gold: list[GoldPair],
) -> None:
    left_out = [
        word
        for pair in committed_gold
        for side, words in enumerate((pair.english_words, pair.french_words))
        for place, word in enumerate(words)
        if place not in {link[side] for link in pair.possible}
    ]
    assert sorted(left_out) == sorted(["hot", '"', "«", "»", ",", ",", ",", ","])


def test_the_committed_gold_is_never_sure_of_negations_and_spelling(
    committed_gold: list[GoldPair],
) -> None:
    doubtful = {"not", "'t", "ne", "n", "pas", "'", "-"}
    for pair in committed_gold:
        for english, french in pair.sure:
            assert (
                not {
                    pair.english_words[english].lower(),
                    pair.french_words[french].lower(),
                }
                & doubtful
            )


def test_the_committed_gold_links_an_apostrophe_as_the_letters_before_it(
    committed_gold: list[GoldPair],
) -> None:
    for pair in committed_gold:
        partners = [
            {english for english, french in pair.possible if french == place}
            for place in range(len(pair.french_words))
        ]
        for place, word in enumerate(pair.french_words):
            if word == "'":
                assert partners[place] == partners[place - 1] != set()
