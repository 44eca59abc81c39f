"""Word alignment: the score, the gold standard, and cross-attention as an aligner."""

import json
import re
from contextlib import ExitStack

import pytest
import torch
from tokenizers import pre_tokenizers

from headlight.lab.evaluation.word_alignment import (
    AlignmentScore,
    GoldPair,
    aligner,
    alignment_error_rate,
    best_aligners,
    read_gold,
    word_spans,
)
from headlight.model.corpus import CorpusError

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


def split_words(text):
    """Split a text into the words of a byte-level tokenizer, without spaces, as the gold does."""
    pieces = pre_tokenizers.ByteLevel(add_prefix_space=False).pre_tokenize_str(text)
    return [word for _, (start, end) in pieces if (word := text[start:end].strip())]


def gold_pair(english="a b c", french="x y z", sure=(), possible=(), words=None):
    return GoldPair(
        english=english,
        french=french,
        english_words=tuple(words or split_words(english)),
        french_words=tuple(words or split_words(french)),
        sure=frozenset(sure),
        possible=frozenset(sure) | frozenset(possible),
    )


TWO_SURE_ONE_POSSIBLE = gold_pair(sure=[(0, 0), (1, 1)], possible=[(2, 2)])


@pytest.fixture
def path(tmp_path):
    return tmp_path / "gold.jsonl"


@pytest.mark.parametrize(
    ("links", "error_rate", "precision", "recall"),
    [
        ({(0, 0), (1, 1), (2, 2)}, 0, 1, 1),
        ({(2, 2)}, 1 - 1 / 3, 1, 0),
        ({(0, 0), (1, 1), (0, 2)}, 1 - 4 / 5, 2 / 3, 1),
        ({(0, 0), (2, 2), (2, 0), (2, 1)}, 1 - 3 / 6, 2 / 4, 1 / 2),
        (set(), 1, 0, 0),
    ],
)
def test_the_score_of_a_sentence_counted_by_hand(links, error_rate, precision, recall):
    score = alignment_error_rate([links], [TWO_SURE_ONE_POSSIBLE])
    assert score == pytest.approx((error_rate, precision, recall))
    assert score == AlignmentScore(score.error_rate, score.precision, score.recall)


def test_counts_run_over_the_corpus_not_over_the_means_of_its_sentences():
    one_sure = gold_pair(sure=[(0, 0)])
    score = alignment_error_rate(
        [{(0, 0), (1, 1), (2, 2)}, {(0, 1)}], [TWO_SURE_ONE_POSSIBLE, one_sure]
    )
    assert score == pytest.approx((1 - 5 / 7, 3 / 4, 2 / 3))


def test_a_gold_without_sure_links_is_rejected():
    with pytest.raises(ValueError, match="no sure link"):
        alignment_error_rate([{(0, 0)}], [gold_pair(possible=[(0, 0)])])


@pytest.mark.parametrize("link", [(3, 0), (0, 3), (-1, 0), (0, -1)])
def test_a_link_to_a_word_that_is_not_there_is_rejected(link):
    with pytest.raises(ValueError, match=re.escape(f"the link {link} ")):
        gold_pair(possible=[link])


def test_words_are_found_in_their_text():
    text = " L'été,  là."
    spans = word_spans(text, split_words(text))
    assert spans == [(1, 2), (2, 3), (3, 6), (6, 7), (9, 11), (11, 12)]
    assert [text[start:end] for start, end in spans] == split_words(text)


@pytest.mark.parametrize(
    ("words", "fault"),
    [(["an", "apple"], "'apple'"), (["an", "", "pear"], "''"), (["an", "pe"], "'ar'")],
)
def test_words_that_do_not_spell_their_text_are_rejected(words, fault):
    with pytest.raises(ValueError, match=fault):
        word_spans("an pear", words)


def test_gold_with_raw_text_is_read(path):
    path.write_text(json.dumps(RECORD) + "\n", encoding="utf-8")
    (pair,) = read_gold(path)
    assert (pair.english, pair.french) == ("He cleaned it up.", "Il le nettoya.")
    assert pair.english_words == ("He", "cleaned", "it", "up", ".")
    assert pair.french_words == ("Il", "le", "nettoya", ".")
    assert pair.sure == {(0, 0), (1, 2), (2, 1), (4, 3)}
    assert pair.possible == pair.sure | {(3, 2)}


def test_gold_with_words_alone_is_joined_and_its_sure_links_are_possible(path):
    path.write_text(json.dumps(JOINED_RECORD) + "\n\n" + json.dumps(RECORD), encoding="utf-8")
    pair, other = read_gold(path)
    assert (pair.english, pair.french) == ("The wolf ran", "L' un courut")
    assert pair.french_words == ("L'", "un", "courut")
    assert (pair.sure, pair.possible) == ({(2, 2)}, {(0, 0), (1, 1), (2, 2)})
    assert other.english == "He cleaned it up."


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"sure": [[3, 2], [3, 3]]}, "(3, 3)"),
        ({"english": "He cleans it up."}, "'cleaned'"),
        ({"sure": [[0]]}, "links must be"),
        ({"possible": [[0, "0"]]}, "links must be"),
        ({"english_words": "He"}, "words must be"),
        ({"french_words": []}, "words must be"),
        ({"english": 5}, ""),
    ],
)
def test_a_line_that_is_not_an_aligned_pair_is_named(path, change, fault):
    path.write_text(f"{json.dumps(RECORD)}\n{json.dumps(RECORD | change)}", encoding="utf-8")
    with pytest.raises(CorpusError, match=rf"^{re.escape(str(path))}, line 2 .*{re.escape(fault)}"):
        read_gold(path)


@pytest.mark.parametrize("record", [RECORD, JOINED_RECORD])
def test_a_line_without_a_member_is_named(path, record):
    path.write_text(json.dumps({k: v for k, v in record.items() if k != "possible"}))
    with pytest.raises(CorpusError, match=r"line 1 .*'possible'"):
        read_gold(path)


@pytest.mark.parametrize("line", ["{", "[1]", '"en"', "5", "null"])
def test_a_line_that_is_not_an_object_is_named(path, line):
    path.write_text(line)
    with pytest.raises(CorpusError, match="line 1"):
        read_gold(path)


# --- cross-attention ------------------------------------------------------------------------------


RIGGED_LAYER, RIGGED_HEAD = 1, 2
SITE = "decoder.layers.{}.cross_attention.weights"


def same_words(text, words=None):
    """Return a pair of a text and itself, whose words correspond one by one."""
    links = [(n, n) for n in range(len(words or split_words(text)))]
    return gold_pair(text, text, sure=links, words=words)


GOLD = [same_words("The cat chased the mouse."), same_words("It was too tired, so it slept.")]


@pytest.fixture(scope="module")
def translator(make_checkpoint):
    return make_checkpoint(kind="encoder-decoder", moe=None)


def looking(weights, offset):
    """Every target token looks at the source token so many places on; else at the start token."""
    n_queries, n_keys = weights.shape[-2:]
    keys = torch.arange(n_queries) + offset
    keys[keys >= n_keys] = 0
    return torch.nn.functional.one_hot(keys, n_keys).to(weights).expand_as(weights)


@pytest.fixture
def rig(translator):
    """``rig(0)``: one head looks at the word that is read, ``rig(1)``: at the one that follows.

    All other heads look at the start token, which is no word.
    """
    with ExitStack() as stack:

        def edit(offset):
            def change(weights, layer):
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
def test_the_one_head_that_aligns_and_its_layer_are_found(translator, rig, shift):
    rig(shift)
    for best, head in zip(best_aligners(translator, GOLD), (RIGGED_HEAD, None), strict=True):
        assert (best.layer, best.head, best.shift) == (RIGGED_LAYER, head, shift)
        assert best.score.error_rate == 0


def test_a_head_that_looks_at_no_word_links_nothing(translator, rig):
    rig(0)
    for head in (0, 1, 3):
        chosen = aligner(translator, GOLD, layer=RIGGED_LAYER, head=head, shift=0)
        assert chosen.score == (1, 0, 0)
    assert aligner(translator, GOLD, layer=0, head=None, shift=0).score.error_rate == 1


def test_links_are_between_the_words_of_the_gold(translator, rig):
    """This gold takes for one word what the tokenizer takes for four."""
    rig(0)
    pair = same_words("don't - stop", words=("don't", "-", "stop"))
    chosen = aligner(translator, [pair], layer=RIGGED_LAYER, head=RIGGED_HEAD, shift=0)
    assert chosen.score == (0, 1, 1)
