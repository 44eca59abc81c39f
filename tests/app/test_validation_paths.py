"""A wrong member is named as it was sent."""

import pytest

from headlight.validation_paths import sent_names

EDITS = {"edits": [{"kind": "temperature", "temperature": 1, "value": 0}, {"kind": []}, 3]}


@pytest.mark.parametrize(
    ("location", "names"),
    [
        (["edits", 0, "temperature", "value"], ["edits", 0, "value"]),
        (["edits", 0, "temperature", "temperature"], ["edits", 0, "temperature"]),
        (["edits", 1, "kind"], ["edits", 1, "kind"]),
        (["edits", 2], ["edits", 2]),
        (["edits", 9, "heads"], ["edits", 9, "heads"]),
        (["text"], ["text"]),
        ([], []),
    ],
)
def test_a_tag_that_nobody_sent_is_left_out(location, names):
    assert sent_names(location, EDITS) == names


@pytest.mark.parametrize("body", [None, [], "edits", 3])
def test_a_body_of_any_shape_is_no_mistake(body):
    assert sent_names(["edits", 0, "value"], body) == ["edits", 0, "value"]
