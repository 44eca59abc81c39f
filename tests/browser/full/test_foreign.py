"""Every view on Hugging Face checkpoints of eight architectures."""

import re

import pytest

from tests.browser.conftest import VIEWS
from tests.browser.foreign_server import check_view, foreign_reader

MODELS = ["gpt2", "llama", "mixtral", "bert", "t5", "gpt_oss", "gemma2", "bloom"]
foreign = foreign_reader(MODELS)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("model", MODELS)
def test_each_view_draws_or_says_what_the_model_lacks(foreign, model, view):
    check_view(foreign, model, view)


@pytest.mark.parametrize("model", ["llama", "gemma2", "gpt_oss", "t5", "bloom"])
def test_a_cell_follows_by_the_scale_cap_sink_and_bias_of_its_model(foreign, model):
    check_view(foreign, model, "why")
    verdict = foreign.view.get_by_text("Recomputed in this browser").first.text_content()
    apart = re.search("the score is (.+) and the weight (.+) from the model’s", verdict)
    for distance in apart.groups():
        assert distance == "0" or re.search("·10⁻[⁶⁷⁸⁹¹]", distance), verdict


def test_a_masked_model_is_asked_what_fits(foreign):
    check_view(foreign, "bert", "next_token")
    assert foreign.view.locator(".view-title").text_content() == "What fits here"
