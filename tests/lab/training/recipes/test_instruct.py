"""The recipe `instruct`: prompts and answers, and the loss on the answers only."""

import re

import pytest

from headlight.lab.evaluation.instructions import answers, evaluate, held_out
from headlight.lab.training.instructions import (
    N_SHIPPED,
    OTHER_WORDS,
    SHIPPED,
    Instruction,
    make_instructions,
    read_instructions,
    write_instructions,
)
from headlight.lab.training.run import finish
from headlight.model.checkpoint.card import ModelCard
from headlight.model.checkpoint.loading import load
from headlight.model.corpus import CorpusError

SETTINGS = {
    "rows.count": 8,
    "loop": {"steps": 60, "warmup": 1, "learning_rate": 1e-2, "validate_every": 20},
}


@pytest.fixture
def make_loop(begin, make_folder, tmp_path):
    def make(instructions, **changes):
        path = tmp_path / "answers.jsonl"
        write_instructions(path, instructions)
        settings = {**SETTINGS, **changes}
        return begin("instruct", [path], "mine", settings, begun_from=make_folder())

    return make


def test_the_instructions_that_ship_are_those_of_the_rule():
    assert read_instructions([SHIPPED]) == make_instructions(N_SHIPPED)
    assert len({each.prompt for each in make_instructions(200, seed=1)}) == 200
    assert 0 < len(held_out()) < N_SHIPPED / 4


def test_the_other_words_are_in_no_instruction_that_ships():
    known = set(re.findall(r"[a-z]+", SHIPPED.read_text().lower()))
    others = {word.lower() for words in OTHER_WORDS for word in words.split()}
    assert len(others) == 26
    assert not others & known


def test_only_the_answer_and_the_end_are_counted(make_loop):
    loop = make_loop([Instruction(f"Say {n}?", f" It is {n}. ") for n in range(40)])
    batch = loop.batches.batch(0)
    assert batch.is_counted.any(dim=1).all()
    for ids, targets, is_counted in zip(batch.ids, batch.targets, batch.is_counted, strict=True):
        counted = targets[is_counted]
        assert counted[-1] == loop.batches.tokenizer.end_id
        first = int(is_counted.nonzero()[0])
        assert not is_counted[:first].any()
        assert ids[first] == line_break(loop)


def line_break(loop):
    (row, n_prompt) = loop.batches.trained[0]
    return row[n_prompt - 1]


def test_it_learns_to_answer(make_loop):
    instructions = [Instruction(f"What is number {n}?", "The cat.") for n in range(60)]
    loop = make_loop(instructions)
    assert loop.run()
    finish(loop, ModelCard(title="Mine", licence="MIT", training={"recipe": "instruct"}))
    checkpoint = load(loop.out)
    assert answers(checkpoint, ["What is number 99?"]) == ["The cat."]
    figures = evaluate(checkpoint, [*instructions[:3], Instruction("What is number 7?", "A dog.")])
    assert (figures["exact"], figures["prompts"]) == (0.75, 4)


def test_without_a_separator_the_answer_goes_on_in_the_line(make_loop):
    loop = make_loop(
        [Instruction(f"Number {n} ran", " home.") for n in range(40)], **{"rows.separator": ""}
    )
    newline = loop.batches.tokenizer.encode_ids(["\n"])[0][0]
    assert all(newline not in row for row, _ in loop.batches.trained)


def test_a_long_answer_and_a_lack_of_prompts_are_named(make_loop):
    with pytest.raises(CorpusError, match="tokens with its answer, more than the"):
        make_loop([Instruction(f"Say {n}", "word " * 200) for n in range(40)])
    with pytest.raises(CorpusError, match="examples 0 are held out"):
        make_loop([Instruction("Say", "yes"), Instruction("Say", "no")])
