"""Every chapter that ships: each step opens, and each question is answered wrong and right."""

import pytest

from headlight.chapters.library import Library
from tests.browser.smoke.test_chapter import SIZES, walk

CHAPTERS = [chapter.id for chapter in Library().chapters()[0]]


@pytest.mark.parametrize("chapter", CHAPTERS)
@pytest.mark.parametrize("size", SIZES)
def test_a_chapter_is_read_from_its_first_step_to_its_last(visit, size, chapter):
    assert walk(visit(**SIZES[size]), chapter) >= 3
