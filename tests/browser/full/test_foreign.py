"""Every view on Hugging Face checkpoints of six architectures."""

import pytest

from tests.browser.conftest import VIEWS
from tests.browser.foreign_server import check_view, foreign_reader

MODELS = ["gpt2", "llama", "mixtral", "bert", "t5", "gpt_oss"]
foreign = foreign_reader(MODELS)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("model", MODELS)
def test_each_view_draws_or_says_what_the_model_lacks(foreign, model, view):
    check_view(foreign, model, view)


def test_a_masked_model_is_asked_what_fits(foreign):
    check_view(foreign, "bert", "next_token")
    assert foreign.view.locator(".view-title").text_content() == "What fits here"
