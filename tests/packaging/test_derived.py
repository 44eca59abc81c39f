"""The files that are made of the API's requests are current; `make openapi` renews them."""

import inspect
import os
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from headlight.client import endpoints
from headlight.main import create_app
from headlight.settings import Settings
from tests.packaging import derived, reference

DOCUMENT = create_app(Settings(device="cpu")).openapi()
RENEW = "HEADLIGHT_RENEW_OPENAPI" in os.environ
ROOT = Path(__file__).parents[2]
FILES = {
    "app/client/arguments.py": derived.arguments,
    "docs/api.md": reference.reference,
    "static/js/state/address.js": derived.address,
    "static/js/api/routes.js": lambda: derived.calls(DOCUMENT),
    "static/js/api/schemas.d.ts": lambda: derived.page_types(DOCUMENT),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_made_is_current(name):
    content = FILES[name]()
    if RENEW:
        (ROOT / name).write_text(content)
    assert (ROOT / name).read_text() == content, f"{name} is stale: run `make openapi`"


@pytest.mark.parametrize("name", ["trace", "traces", "generate", "circuit", "tokenize"])
def test_a_checker_of_types_sees_the_arguments_that_the_client_has(name):
    hints = get_type_hints(vars(endpoints)[name].__wrapped__)
    (seen,) = get_args(hints["options"])
    taken = inspect.signature(vars(endpoints)[name]).parameters
    assert seen.__annotations__.keys() == taken.keys() - hints.keys()


def test_an_argument_that_no_request_has_is_refused_before_it_is_sent():
    with pytest.raises(TypeError, match=r"trace\(\) takes no argument layer; it takes .*layers"):
        endpoints.trace("a", layer=[0])
