"""The recipe `distill`: a student that reads a text and its teacher's distributions."""

import pytest
import torch

from headlight.lab.training.run import finish, make_run, other_models, read_run, start
from headlight.model.checkpoint.card import ModelCard
from headlight.model.checkpoint.loading import CheckpointError

SETTINGS = {
    "model": {"n_layers": 1, "n_heads": 2, "d_model": 16, "d_ff": 24, "max_tokens": 24},
    "rows": {"tokens": 16, "count": 2, "held_out": 2},
    "loop": {"steps": 4, "warmup": 1, "validate_every": 4, "save_every": 2},
}


@pytest.fixture
def teacher(tmp_path, run):
    """Return the folder of a model trained for a few steps."""
    loop = start(run, tmp_path / "teacher", device="cpu")
    loop.run()
    finish(loop, ModelCard(title="Teacher", licence="MIT"))
    return tmp_path / "teacher"


@pytest.fixture
def make_student(begin, corpus, teacher):
    """Return a student's loop: ``make_student("out", **{"loop.teacher_weight": 0.0})``."""
    return lambda name="student", **changes: begin(
        "distill", [corpus], name, {**SETTINGS, **changes}, teacher=teacher
    )


def losses(loop):
    values = []
    loop.run(lambda report: values.append(report.loss))
    return values


def test_a_student_has_its_teachers_tokenizer_and_its_own_size(make_student, teacher):
    student = make_student()
    assert (student.out / "tokenizer.json").read_bytes() == (
        teacher / "tokenizer.json"
    ).read_bytes()
    assert student.model.config.d_model == 16
    assert student.teacher.config.d_model == student.teacher.vectors.shape[1]
    assert other_models(read_run(student.out)) == {"teacher": str(teacher)}


def test_both_losses_are_mixed_by_the_teachers_weight(make_student):
    first = {
        weight: losses(make_student(f"of-{weight}", **{"loop.teacher_weight": weight}))[0]
        for weight in (0.0, 0.25, 1.0)
    }
    assert first[0.25] == pytest.approx(0.75 * first[0.0] + 0.25 * first[1.0], rel=1e-5)
    assert first[0.0] != pytest.approx(first[1.0], rel=1e-3)


def test_without_its_weight_the_teacher_is_not_read(make_student):
    student = make_student(**{"loop.teacher_weight": 0.0})
    assert student.teacher is None
    reader = make_student("reader")
    reader.teacher.register_forward_pre_hook(lambda *_: pytest.fail("read"))
    with pytest.raises(pytest.fail.Exception):
        reader.run()


def test_the_teacher_learns_nothing(make_student):
    student = make_student()
    before = {name: tensor.clone() for name, tensor in student.teacher.weights().items()}
    student.run()
    after = student.teacher.weights()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert all(tensor.grad is None for tensor in after.values())


def test_a_student_without_a_teacher_is_rejected(corpus):
    with pytest.raises(ValueError, match="needs a model to learn from; name it with --teacher"):
        make_run("distill", [corpus])
    with pytest.raises(CheckpointError, match="there is no model or folder 'nobody'"):
        make_run("distill", [corpus], teacher="nobody")


@pytest.mark.parametrize("recipe", ["reasoning", "reward", "rlhf"])
def test_a_recipe_that_learns_from_no_teacher_rejects_one(recipe):
    with pytest.raises(ValueError, match=f"'{recipe}' uses no teacher; leave out --teacher"):
        make_run(recipe, [], teacher="stories")


def test_a_teacher_of_another_kind_or_with_a_shorter_context_is_rejected(make_student, teacher):
    with pytest.raises(ValueError, match="the teacher is of kind 'decoder', the student of kind"):
        make_student(**{"model.kind": "encoder"})
    with pytest.raises(ValueError, match="reads 24 tokens, fewer than the student"):
        make_student(**{"model.max_tokens": 32})
