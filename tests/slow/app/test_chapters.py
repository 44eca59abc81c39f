"""The chapters that ship, against the models that ship."""

import pytest

from headlight.chapters.check import Checker
from headlight.chapters.library import Library
from headlight.settings import Settings

CHAPTERS, _ = Library().chapters()


@pytest.fixture(scope="module")
def checker():
    return Checker(Settings())


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.id)
def test_every_step_answer_and_claim_holds(checker, chapter):
    others = [other for other in CHAPTERS if other is not chapter]
    findings = checker.check(chapter, others)
    assert {each.step.title: each.faults for each in findings if each.faults} == {}
