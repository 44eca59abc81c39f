"""Colour for numbers: the two scales of the page, as straight lines in OKLab lightness.

An equal step of value is an equal step to the eye, in grey and to colour-blind eyes too.
OKLab: https://bottosson.github.io/posts/oklab/
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

N_LEVELS = 256

# Stops at equal distances, each lightness, chroma and hue in degrees.
SEQUENTIAL = (
    (0.97, 0.012, 90),
    (0.83, 0.115, 80),
    (0.69, 0.155, 52),
    (0.55, 0.17, 24),
    (0.41, 0.14, 355),
    (0.27, 0.09, 318),
)
DIVERGING = (
    (0.45, 0.13, 250),
    (0.71, 0.085, 245),
    (0.97, 0.004, 90),
    (0.71, 0.125, 52),
    (0.45, 0.125, 38),
)

_TO_LMS = np.array(
    [
        [1, 0.3963377774, 0.2158037573],
        [1, -0.1055613458, -0.0638541728],
        [1, -0.0894841775, -1.291485548],
    ]
)
_TO_LINEAR_RGB = np.array(
    [
        [4.0767416621, -3.3077115913, 0.2309699292],
        [-1.2684380046, 2.6097574011, -0.3413193965],
        [-0.0041960863, -0.7034186147, 1.707614701],
    ]
)


@cache
def levels(*, is_signed: bool = False) -> NDArray[np.uint8]:
    """The colours of a scale on paper, from its lowest value to its highest.

    Args:
        is_signed: with zero in the middle.

    Returns:
        256 × red, green, blue.
    """
    lightness, chroma, hue = np.array(DIVERGING if is_signed else SEQUENTIAL).T
    angle = np.radians(hue)
    stops = np.stack([lightness, chroma * np.cos(angle), chroma * np.sin(angle)])
    places = np.linspace(0, len(lightness) - 1, N_LEVELS)
    lab = np.stack([np.interp(places, np.arange(len(lightness)), axis) for axis in stops])
    light = _TO_LINEAR_RGB @ (_TO_LMS @ lab) ** 3
    encoded = np.where(
        light <= 0.0031308, 12.92 * light, 1.055 * np.maximum(light, 0) ** (1 / 2.4) - 0.055
    )
    return np.floor(np.clip(encoded.T, 0, 1) * 255 + 0.5).astype(np.uint8)


def plotly_scale(*, is_signed: bool = False) -> list[list[float | str]]:
    """The same colours as Plotly wants them: places from 0 to 1, each with its colour."""
    steps = 51
    colours = levels(is_signed=is_signed)[:: (N_LEVELS - 1) // steps]
    return [
        [step / steps, f"rgb({red}, {green}, {blue})"]
        for step, (red, green, blue) in enumerate(colours.tolist())
    ]
