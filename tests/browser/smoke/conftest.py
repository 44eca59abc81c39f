"""One page for the smoke tests of a worker: loading it takes longer than most of the tests."""

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest


@pytest.fixture(scope="session")
def desk(new_reader: Callable[..., Any]) -> Any:
    """Return the page that the tests share."""
    return new_reader(permissions=("clipboard-read", "clipboard-write"))


@pytest.fixture
def reader(desk: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    """Yield the shared page, loaded again after a failure. A test opens what it needs."""
    failed = request.session.testsfailed
    desk.errors.clear()
    yield desk
    desk.page.unroute_all()
    if request.session.testsfailed > failed:
        desk.page.goto("about:blank")
    else:
        desk.page.keyboard.press("Escape")
    assert desk.errors == []
    assert desk.hosts <= {urlsplit(desk.url).netloc}
