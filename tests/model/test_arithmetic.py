"""Problems, their written solutions, and the marks of a chain."""

import pytest

from headlight.model.arithmetic import FORMS, N_TEST, N_VALID, Problem, mark, split, value_of

PROBLEM = Problem(47, 23)
CHAIN = "47*20+47*3=940+141=1081"


def test_a_solution_is_written_in_each_form():
    assert PROBLEM.question == "47*23="
    assert [PROBLEM.solution(form) for form in FORMS] == ["1081", "940+141=1081", CHAIN]
    assert Problem(47, 3).solution("chain") == "141"
    with pytest.raises(ValueError, match="form 'prose' is unknown; choose one of direct, short"):
        PROBLEM.solution("prose")


def test_every_written_solution_is_right_and_sound():
    for problem in split().valid:
        for form in FORMS:
            marking = mark(problem, problem.solution(form))
            assert marking.is_right
            assert marking.is_sound
            assert marking.product_share == (0 if form == "direct" else 1)


def test_the_split_is_whole_and_keeps_turned_problems_together():
    known = split()
    assert (len(known.test), len(known.valid)) == (N_TEST, N_VALID)
    assert len({*known.train, *known.valid, *known.test}) == len(known.train) + N_TEST + N_VALID
    turned = {Problem(each.second, each.first) for each in known.train}
    assert turned == set(known.train)
    assert known.test[0] == split().test[0]
    assert not turned & {*known.test, *known.valid}


@pytest.mark.parametrize(
    ("written", "right", "steps", "share"),
    [
        (CHAIN, True, [True, True, True], 1.0),
        ("47*20+47*3=940+141=1082", False, [True, True, False], 1.0),
        ("47*20+47*3=840+141=981", False, [True, False, True], 0.5),
        ("47*20+47*3=930+151=1081", True, [True, True, True], 0.0),
        ("47*20+47*3=931+141=1081", True, [True, False, False], 0.5),
        ("1081", True, [True], 0.0),
        ("47*20+", False, [False], 0.0),
        ("", False, [False], 0.0),
        ("99999999999", False, [False], 0.0),
    ],
)
def test_a_chain_is_marked_step_by_step(written, right, steps, share):
    marking = mark(PROBLEM, written)
    assert marking.is_right is right
    assert [step.is_right for step in marking.steps] == steps
    assert marking.product_share == share
    assert marking.is_right_for_wrong_reason == (right and not all(steps))
    assert "=".join(step.text for step in marking.steps) == written


def test_a_side_is_a_sum_of_numbers_and_products():
    assert value_of("47*20+47*3") == 1081
    assert value_of("940+141") == 1081
    for side in ("", "+", "4+", "*3", "4*5*6", "-4", "4 + 5", "a", "٣"):
        assert value_of(side) is None


def test_the_harder_range_has_three_partial_products_and_parts_of_its_own():
    hard = split(3)
    parts = [hard.train, hard.valid, hard.test]
    assert [len(part) for part in parts[1:]] == [N_VALID, N_TEST]
    assert sum(map(len, parts)) == len(set().union(*parts)) == 90 * 900
    assert all(100 <= each.second < 1000 for each in hard.test)
    problem = Problem(47, 203)
    assert problem.solution() == "47*200+47*0+47*3=9400+0+141=9541"
    assert mark(problem, problem.solution()).is_sound
    with pytest.raises(ValueError, match=r"second_digits \(4\) must be 2 or 3"):
        split(4)
