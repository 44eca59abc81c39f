"""Comparisons, the rule that makes those that ship, and the loss of a reward model."""

import json
from random import Random

import pytest
import torch
import torch.nn.functional as F

from headlight.lab.training import preference
from headlight.lab.training.preference import (
    Comparison,
    ComparisonBatch,
    Marks,
    bradley_terry_losses,
    encode_comparisons,
    make_comparisons,
    marks,
    minimal_pair,
    parts_that_differ,
    prompts_of,
    read_comparisons,
    rule_score,
    write_comparisons,
)
from headlight.model.corpus import CorpusError
from headlight.model.transformer import Prediction

PARAGRAPH = "The quick brown fox saw a lazy dog and then the cat chased the mouse over the street. "


LONG = " ".join(f"word{chr(97 + n)}" for n in range(20))


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (f'said, "{LONG}."', (True, True, True)),
        (' "Yes," she said. "No." ', (True, True, False)),
        ('"Come home', (False, True, False)),
        (LONG, (False, True, True)),
        (LONG.partition(" ")[2], (False, True, False)),
        ('"No." He went to the sea and to the sea', (True, False, False)),
        ("to the sea and To The Sea.", (False, False, False)),
        ("", (False, False, False)),
    ],
)
def test_the_rule_marks_speech_repetition_and_length(answer, expected):
    assert tuple(marks(answer)) == expected
    assert rule_score(answer) == sum(expected)


@pytest.mark.parametrize("part", Marks._fields)
def test_a_minimal_pair_differs_in_one_part_of_the_rule(part):
    answer = f' "No," he said. Then all of them went out to look for {LONG}, "yes."'
    pairs = [minimal_pair(answer, part, [LONG], Random(seed)) for seed in range(20)]
    for better, worse in filter(None, pairs):
        assert parts_that_differ(better, worse) == [part]
        assert rule_score(better) == rule_score(worse) + 1
    assert len({*filter(None, pairs)}) > 3, "the place is random"
    assert minimal_pair("the sea and the sea and the sea", part, [], Random(0)) is None


def test_no_early_end_gains_a_point_for_length_or_speech():
    answer = f' he said, "{LONG}." Then "{LONG}"'
    for end in range(len(answer)):
        cut = marks(answer[:end])
        assert (cut.is_long, cut.has_speech) <= (True, True)
        assert cut.is_long <= marks(answer).is_long


def test_comparisons_are_read_as_they_were_written(tmp_path):
    comparisons = [
        Comparison("One", " a.", "\nb", "b"),
        Comparison("Two", "c", "d", "a", "is_long"),
    ]
    path = tmp_path / "comparisons.jsonl"
    write_comparisons(path, comparisons)
    assert read_comparisons([path, path]) == comparisons * 2
    assert (comparisons[0].better, comparisons[0].worse) == ("\nb", " a.")
    assert (comparisons[1].better, comparisons[1].worse) == ("c", "d")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (
            {"prompt": "p", "a": "x", "b": "y", "preferred": "c"},
            "line 2: preferred is 'c'; it must",
        ),
        ({"prompt": "p", "a": "x", "b": "x", "preferred": "a"}, "line 2: both answers are equal"),
        ({"prompt": "p", "a": "x", "preferred": "a"}, "line 2 has no member 'b'"),
        ({"prompt": "p", "a": "x", "b": 3, "preferred": "a"}, "line 2: the member 'b' is not a"),
        (
            {"prompt": "p", "a": "x", "b": "y", "preferred": "a", "part": "all"},
            "line 2: part is 'all'; it must be one of has_speech",
        ),
    ],
)
def test_a_line_that_is_no_comparison_is_named(tmp_path, line, problem):
    path = tmp_path / "comparisons.jsonl"
    good = {"prompt": "p", "a": "x", "b": "y", "preferred": "a"}
    path.write_text(f"{json.dumps(good)}\n{json.dumps(line)}\n")
    with pytest.raises(CorpusError, match=problem):
        read_comparisons([path])


def test_prompts_begin_long_paragraphs_without_speech(make_checkpoint):
    tokenizer = make_checkpoint().tokenizer
    texts = [f'{PARAGRAPH * 2}\nShort.\n"{PARAGRAPH * 2}\n{PARAGRAPH * 2}\n']
    prompts = prompts_of(texts, tokenizer, 8)
    assert prompts.shape == (1, 9)
    assert prompts[0, 0] == tokenizer.start_id
    assert PARAGRAPH.startswith(tokenizer.decode(prompts[0].tolist()))
    with pytest.raises(CorpusError, match="no paragraph has 16 tokens"):
        prompts_of(["Short.\n"], tokenizer, 8)


def test_of_two_samples_the_rule_prefers_the_better(make_checkpoint, monkeypatch):
    checkpoint = make_checkpoint(max_tokens=64)
    encode = checkpoint.tokenizer.encode_ids
    texts = [' said, "No."', " a cat", " a dog", ' "dogs" said', " a fox", " a hen"]
    answers = encode(texts)
    rows_of = []

    class Samples:
        def written(self):
            return answers[: 2 * len(set(rows_of[-1]))]

    def sample(model, prompts, **options):
        assert options["stop_id"] == encode(["\n"])[0][0]
        rows_of.append([tuple(row) for row in prompts.tolist()])
        return Samples()

    monkeypatch.setattr(preference, "sample_continuations", sample)
    texts = [f"{letter} {PARAGRAPH * 2}\n" for letter in "abc"]
    made = list(make_comparisons(checkpoint, texts, count=40, seed=1))
    sampled = [comparison for comparison in made if not comparison.part]
    assert [(comparison.better, comparison.worse) for comparison in sampled] == [
        (' said, "No."', " a cat"),
        (' "dogs" said', " a dog"),
    ]
    assert [comparison.preferred for comparison in sampled] == ["a", "b"]
    edited = [comparison for comparison in made if comparison.part]
    assert {comparison.part for comparison in edited} == {"has_speech"}
    assert all(comparison.worse.count('"') < 2 for comparison in edited)
    assert len(list(make_comparisons(checkpoint, texts, count=1, seed=1))) == 1
    assert rows_of[0][::2] == rows_of[0][1::2], "both answers are to one prompt"


# --- the loss -------------------------------------------------------------------------------------


def test_the_loss_is_the_logistic_loss_of_the_difference():
    rewards = torch.randn(7, 2, generator=torch.Generator().manual_seed(0))
    expected = F.binary_cross_entropy_with_logits(
        rewards[:, 0] - rewards[:, 1], torch.ones(7), reduction="none"
    )
    torch.testing.assert_close(bradley_terry_losses(rewards), expected)
    shifted = rewards + torch.randn(7, 1)
    torch.testing.assert_close(bradley_terry_losses(shifted), expected)


def test_with_smoothing_a_share_of_the_pairs_is_reversed():
    rewards = torch.randn(7, 2, generator=torch.Generator().manual_seed(0))
    batch = ComparisonBatch.pad([([1, 2], [3])] * 7, 0)
    losses = batch.losses(Prediction(torch.zeros(1), torch.zeros(()), rewards), smoothing=0.2)
    expected = F.binary_cross_entropy_with_logits(
        rewards[:, 0] - rewards[:, 1], torch.full((7,), 0.8), reduction="none"
    )
    torch.testing.assert_close(losses, expected)


def test_a_reward_is_read_after_the_last_token_of_each_answer(make_model):
    model = make_model(has_reward=True)
    pairs = [([1, 5, 6], [1, 5, 6, 7, 8]), ([1, 9], [1, 2, 3])]
    batch = ComparisonBatch.pad(pairs, 0)
    assert batch.ids.shape == (2, 2, 5)
    rewards = batch.predict(model).reward
    for number, pair in enumerate(pairs):
        for side, ids in enumerate(pair):
            alone = model(torch.tensor([ids])).reward[0, -1]
            torch.testing.assert_close(rewards[number, side], alone)


def test_parts_of_a_batch_keep_their_pairs(make_model):
    model = make_model(has_reward=True)
    batch = ComparisonBatch.pad([([1, n], [1, n, n]) for n in range(2, 7)], 0)
    part = batch.part(1, 2)
    assert isinstance(part, ComparisonBatch)
    torch.testing.assert_close(part.predict(model).reward, batch.predict(model).reward[1::2])


def test_a_comparison_longer_than_the_model_reads_is_named(make_checkpoint):
    tokenizer = make_checkpoint().tokenizer
    comparisons = [Comparison("One", "a", "b", "a"), Comparison("Two", "a", "b" * 99, "a")]
    with pytest.raises(CorpusError, match=r"comparison 2 has \d+ tokens with its prompt, more"):
        encode_comparisons(comparisons, tokenizer, 20)
