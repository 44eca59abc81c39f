"""`make test-processors` runs other kernels, or fails: a setting without an effect is no test."""

import re
from pathlib import Path

import pytest

from tests.kernels import EXPECTED, require_kernels

MAKEFILE = (Path(__file__).parents[2] / "Makefile").read_text()


def test_the_makefile_names_every_setting_once():
    (line,) = re.findall(r"^KERNELS := ((?:.*\\\n)*.*)", MAKEFILE, re.MULTILINE)
    named = line.replace("\\\n", " ").split()
    assert sorted(named) == sorted(f"{name}={value}" for name, value in EXPECTED)


def test_a_setting_that_the_libraries_follow_is_accepted():
    for (name, value), told in EXPECTED.items():
        require_kernels({name: value}, lambda _, told=told: f"{told}\n")


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({}, "no kernels are chosen; set one of ATEN_CPU_CAPABILITY"),
        ({"ATEN_CPU_CAPABILITY": "avx"}, "is not known here; choose default, avx2"),
        ({"MKL_CBWR": "COMPATIBLE"}, "has no effect: no 'CNR:COMPATIBLE'"),
    ],
)
def test_tests_with_this_processors_own_kernels_are_refused(environment, message):
    with pytest.raises(pytest.UsageError, match=message):
        require_kernels(environment, lambda _: "aten: AVX512\nCNR:OFF")
