"""Which media type an Accept header chooses."""

import pytest

from app.negotiation import negotiate
from app.problems import Problem

JSON, FILE = "application/json", "application/x-safetensors"


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        ("", JSON),
        ("*/*", JSON),
        ("application/*", JSON),
        (FILE, FILE),
        ("Application/X-Safetensors", FILE),
        (f"{FILE}, {JSON}", JSON),
        (f"{FILE}, {JSON};q=0.9", FILE),
        (f"{JSON};q=0.1, */*;q=0.5", FILE),
        (f"{JSON};q=0, application/*", FILE),
        (f"text/html, {FILE};q=0.2", FILE),
        (f"{FILE}; charset=utf-8; q=1", FILE),
        (f"{JSON};q=much, {FILE};q=0.1", FILE),
        (" , ,", JSON),
    ],
)
def test_the_wanted_type_of_highest_quality_is_chosen(accept, chosen):
    assert negotiate(accept, (JSON, FILE)) == chosen


@pytest.mark.parametrize("accept", ["text/html", f"{JSON};q=0", "*/*;q=0", f"{JSON};q=nan"])
def test_a_client_that_takes_none_is_told_what_there_is(accept):
    with pytest.raises(Problem, match="ask for one of these") as caught:
        negotiate(accept, (JSON, FILE))
    assert caught.value.status_code == 406
    assert caught.value.members == {"offered": [JSON, FILE]}
