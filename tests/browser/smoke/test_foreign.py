"""A Hugging Face checkpoint on the page: chosen, loaded, drawn in each view, with its badge."""

import pytest

from tests.browser.conftest import ONE_THREAD, VIEWS
from tests.server_process import serving
from tests.tiny_checkpoints import save_checkpoint

MODELS = {"gpt2": "The cat sat on the mat", "mixtral": "The cat sat on the mat"}


@pytest.fixture(scope="module")
def foreign_url(tmp_path_factory):
    """The address of a server with two foreign models that nobody has loaded."""
    folder = tmp_path_factory.mktemp("foreign")
    for name in MODELS:
        save_checkpoint(name, folder / name)
    with serving("--models-dir", folder, environment=ONE_THREAD) as server:
        yield server.url


@pytest.fixture(scope="module")
def foreign(new_reader, foreign_url):
    """A reader of that server."""
    reader = new_reader()
    reader.url = foreign_url
    return reader


def test_choosing_a_model_loads_it_and_shows_how_exact_it_is(foreign):
    foreign.open(text=MODELS["gpt2"])
    page = foreign.page
    assert page.locator("#model option", has_text="headlight add").count() == 1
    assert not page.locator("#exact").is_visible()
    page.select_option("#model", "gpt2")
    badge = page.locator("#exact")
    badge.wait_for(state="visible")
    assert badge.text_content() == "0.0 from Hugging Face’s own attention"
    foreign.wait_until_plotted()
    assert "GPT2LMHeadModel" in page.locator("#card").text_content()
    assert foreign.errors == []


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("model", MODELS)
def test_each_view_draws_or_says_what_the_model_lacks(foreign, model, view):
    foreign.open(model=model, text=MODELS[model], view=view)
    foreign.wait_until_drawn()
    failures = foreign.view.locator(".panel-notice.is-failure:visible")
    assert failures.all_text_contents() == []
    foreign.view.locator(".plot .nsewdrag, .panel-notice:visible, .sankey").first.wait_for()
    assert foreign.errors == []
