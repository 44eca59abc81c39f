"""The content security policy: the browser reports no breach of it on any page."""

import pytest

PAGES = ("#text=the+cat+sat&model=plain", "experiments", "docs", "models/plain/card", "nothing")
REPORTS = """
window.breaches = [];
document.addEventListener('securitypolicyviolation', (breach) =>
  window.breaches.push(`${breach.effectiveDirective} ${breach.blockedURI}`));
"""


@pytest.fixture
def page(new_reader, url):
    """Yield a page whose breaches are listed, and which is held to the policy."""
    reader = new_reader(bypass_csp=False)
    reader.page.add_init_script(REPORTS)
    yield reader.page
    reader.page.context.close()


@pytest.mark.parametrize("path", PAGES)
def test_no_page_breaks_the_policy(page, url, path):
    page.goto(f"{url}/{path}")
    page.wait_for_load_state("networkidle")
    assert page.evaluate("window.breaches") == []


def test_what_breaks_it_is_reported(page, url):
    page.goto(f"{url}/nothing")
    page.evaluate(
        "document.body.append(Object.assign(new Image(), {src: 'http://b.example/a.png'}))"
    )
    page.wait_for_function("window.breaches.length")
    assert page.evaluate("window.breaches") == ["img-src http://b.example/a.png"]
