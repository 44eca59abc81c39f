"""An experiment validates, bounds and cancels its runs; frames join to a result."""

import numpy as np
import pytest
from pydantic import Field

from headlight.model.cancellation import Cancelled, cancellable
from headlight.model.experiments.experiment import (
    Cost,
    Experiment,
    Parameters,
    Quantity,
    TooCostly,
    collect,
)
from headlight.model.trace import NamedArray


class Counting(Parameters):
    n: int = Field(3, ge=1, le=1000, description="Frames.")


def count(parameters):
    yield {"label": np.array(["a", "b"])}
    for number in range(parameters.n):
        yield {"step": np.array([number]), "square": np.array([[number**2], [0]])}


@pytest.fixture
def counting():
    made = Experiment(
        id="counting",
        order=0,
        group="Numbers",
        tab="Counting",
        title="Counting",
        parameters=Counting,
        run=count,
        cost=lambda parameters: Cost(seconds=parameters.n, megabytes=10 * parameters.n),
        way_out="count less",
    )
    vars(made)["quantities"] = {
        "label": Quantity("row", "Names."),
        "step": Quantity("step", "Numbers."),
        "square": Quantity("row step", "Squares, and zeros."),
    }
    return made


def test_a_result_joins_the_frames_along_the_growing_axis(counting):
    result = counting.result({"n": 4})
    assert result["step"].data.tolist() == [0, 1, 2, 3]
    assert result["square"].axes == ("row", "step")
    assert result["square"].data.tolist() == [[0, 1, 4, 9], [0, 0, 0, 0]]
    assert result["label"].data.tolist() == ["a", "b"]


def test_an_array_that_does_not_grow_is_that_of_the_last_frame():
    frames = [{"last": NamedArray((), np.array(number))} for number in (1, 2)]
    assert collect(frames)["last"].data == 2


def test_no_frame_is_no_result():
    with pytest.raises(ValueError, match="no frame"):
        collect([])


@pytest.mark.parametrize(
    ("n", "what", "limit", "actual"), [(51, "megabytes", 500, 510), (70, "seconds", 60, 70)]
)
def test_a_run_that_costs_too_much_names_limit_and_actual(counting, n, what, limit, actual):
    with pytest.raises(TooCostly, match=f"about {actual} {what}, more than the {limit}") as caught:
        counting.start({"n": n})
    assert (caught.value.what, caught.value.limit, caught.value.actual) == (what, limit, actual)


def test_a_run_is_cancelled_between_two_frames(counting):
    answers = iter([False, True])
    frames = counting.start({"n": 40})
    with cancellable(lambda: next(answers)):
        next(frames)
        with pytest.raises(Cancelled):
            list(frames)
