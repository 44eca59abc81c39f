"""docs/ideas.md in a browser: every link draws what it names."""

import pytest

from tests.browser.conftest import SECONDS
from tests.packaging.test_ideas import EXPERIMENT_LINKS, PAGE_LINKS, parameters_of

DRAWN = ".plot .main-svg"


@pytest.mark.parametrize("link", EXPERIMENT_LINKS)
def test_a_link_to_an_experiment_draws_it_with_its_parameters(new_reader, url, link):
    reader = new_reader()
    reader.page.goto(url + link)
    name = parameters_of(link)["experiment"]
    panel = reader.page.locator(f"#view-{name}")
    panel.locator(DRAWN).first.wait_for(state="attached", timeout=2 * SECONDS * 1000)
    assert not reader.page.locator(".notice:visible").count()
    assert all(f"{key}=" in reader.page.url for key in parameters_of(link))
    reader.page.context.close()


@pytest.mark.parametrize("link", PAGE_LINKS)
def test_a_link_to_the_page_draws_its_view(new_reader, url, link):
    reader = new_reader()
    reader.page.goto(url + link)
    view = parameters_of(link)["view"]
    panel = reader.page.locator(f"#view-{view}")
    panel.locator(DRAWN).first.wait_for(state="attached")
    assert not reader.page.locator("#notice").is_visible()
    reader.page.context.close()
