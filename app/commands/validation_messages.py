"""What is wrong with a setting or an option, in words: its name, its value and the rule.

    HEADLIGHT_QUEUE_LENGTH is -1; it must be at least 0

A value that is a secret, or that the rule's own sentence quotes, is left out.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headlight.validation_paths import sent_names

if TYPE_CHECKING:
    from pydantic import ValidationError

LONGEST_VALUE = 80

Found = Mapping[str, Any]

_RULES = {
    "greater_than_equal": "at least {ge}",
    "greater_than": "more than {gt}",
    "less_than_equal": "at most {le}",
    "less_than": "less than {lt}",
    "literal_error": "{expected}",
    "union_tag_invalid": "one of {expected_tags}",
    "union_tag_not_found": "an object with a {discriminator}",
    "too_long": "no longer than {max_length}",
    "too_short": "no shorter than {min_length}",
    "string_too_long": "no longer than {max_length} characters",
    "string_too_short": "at least {min_length} character",
    "finite_number": "a finite number",
    "missing": "there",
    "extra_forbidden": "left out: there is no such member",
}
_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "string": "a text",
    "list": "a list",
    "path": "a path",
    "model": "an object",
}


def settings_mistakes(error: ValidationError, given: Mapping[str, Any]) -> str:
    """What is wrong with the settings, one a line.

    Args:
        error: of their validation.
        given: settings that the command line has given; their variables may stand behind them.
    """
    return _lines(error, lambda location: name_of(str(location[0]), given))


def request_mistakes(error: ValidationError, asked: Mapping[str, Any]) -> str:
    """What is wrong with the options that make a request, one a line.

    Args:
        error: of the request's validation.
        asked: the request.
    """

    def name(location: Sequence[str | int]) -> str:
        first, *places = sent_names(location, asked)
        whole = "the text" if first == "text" else option_of(str(first))
        return ".".join([whole, *map(str, places)])

    return _lines(error, name)


def name_of(setting: str, given: Mapping[str, Any]) -> str:
    """What has set a setting: an option that was given, or its variable."""
    variable = f"HEADLIGHT_{setting.upper()}"
    is_option = given.get(setting) is not None and os.environ.get(variable) != str(given[setting])
    return option_of(setting) if is_option else variable


def option_of(setting: str) -> str:
    """The option that sets a setting."""
    return f"--{setting.removeprefix('default_').replace('_', '-')}"


def rule_of(found: Found) -> str:
    """What a value must be: "at least 0"."""
    kind = str(found["type"])
    if rule := _RULES.get(kind):
        context = found.get("ctx", {})
        return rule.format_map({name: _plain(value) for name, value in context.items()})
    return _KINDS.get(kind.partition("_")[0], str(found["msg"]))


def _lines(error: ValidationError, name: Callable[[Sequence[str | int]], str]) -> str:
    return "\n".join(_sentence(name(found["loc"]), found) for found in error.errors())


def _sentence(name: str, found: Found) -> str:
    if found["type"] == "value_error":
        return f"{name}: {found['ctx']['error']}"
    if found["type"] in ("missing", "extra_forbidden"):
        return f"{name} must be {rule_of(found)}"
    if found["type"] == "union_tag_invalid":
        return f"{name}.kind is {_shown(found['ctx']['tag'])}; it must be {rule_of(found)}"
    return f"{name} is {_shown(found['input'])}; it must be {rule_of(found)}"


def _plain(bound: object) -> str:
    """A bound without quotes, and without a fraction that says nothing."""
    return f"{bound:g}" if isinstance(bound, float) else str(bound).replace("'", "")


def _shown(value: object) -> str:
    """A value as it was written, on one line."""
    text = str(value)
    text = text if text and text.isprintable() else repr(text)
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"
