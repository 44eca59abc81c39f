"""The share of a part foretells what its cut changes, on the model that ships."""

from dataclasses import replace

import pytest

from headlight.lab.evaluation.score_shares import share_figures
from headlight.model.checkpoint.loading import ZOO, load


@pytest.fixture(scope="module")
def stories():
    return load(ZOO / "stories")


def test_shares_and_cuts_rank_parts_alike_in_a_few_texts(stories):
    figures = share_figures(stories, 2)
    assert (figures["texts"], figures["cuts"]) == (2, 60)
    assert len(figures["by_head"]) == 10
    assert figures["rank_correlation"] > 0.5
    assert 0 <= figures["stood_in"] < 0.5


@pytest.mark.slow
def test_the_card_has_the_figures_of_two_hundred_texts(stories):
    figures = share_figures(stories)
    told = stories.description.card.metrics["sample"]["score_shares"]
    assert figures["cuts"] == told["cuts"]
    assert figures["rank_correlation"] == pytest.approx(told["rank_correlation"], abs=0.01)
    assert figures["stood_in"] == pytest.approx(told["stood_in"], abs=0.01)


def test_a_model_without_a_profile_has_no_figures(stories):
    description = replace(stories.description, heads=None)
    assert share_figures(replace(stories, description=description)) == {}
