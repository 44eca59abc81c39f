"""What a user changes of a recipe: a file of settings, and single ones on the command line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from headlight.model.training.config import merge


class _Loader(yaml.SafeLoader):
    """YAML that reads 1e-3 as a number and refuses a key that is there twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for number, (key, (place, _)) in enumerate(zip(keys, node.value, strict=True)):
            if key in keys[:number] and not isinstance(key, list | dict):
                raise yaml.constructor.ConstructorError(
                    None, None, f"{key!r} is there twice", place.start_mark
                )
        return super().construct_mapping(node, deep)


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
)


def read_settings(assignments: Sequence[str]) -> dict[str, Any]:
    """``["loop.steps=10"]`` as ``{"loop": {"steps": 10}}``; values are read as YAML.

    Raises:
        ValueError: one has no equals sign, or no readable value.
    """
    settings: dict[str, Any] = {}
    for assignment in assignments:
        name, is_there, value = assignment.partition("=")
        if not is_there:
            raise ValueError(f"{assignment!r} sets nothing; write NAME=VALUE")
        merge(settings, {name.strip(): _parse(value, f"the value of {name.strip()}")})
    return settings


def read_settings_file(path: Path) -> dict[str, Any]:
    """A YAML file of the mappings ``model``, ``rows`` and ``loop``, or some of them.

    Raises:
        ValueError: the file cannot be read, or holds something else.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8") from error
    found = _parse(text, str(path))
    if not isinstance(found, dict):
        raise ValueError(f"{path} holds no settings; write them as 'loop:', then '  steps: 100'")
    # A section without a line under it changes nothing.
    return {str(name): value for name, value in found.items() if value is not None}


def _parse(text: str, where: str) -> Any:
    try:
        # _Loader is a SafeLoader: it makes plain data and nothing else.
        return yaml.load(text, _Loader)  # nosec B506
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f", line {mark.line + 1}" if mark and "\n" in text.strip() else ""
        raise ValueError(f"{where}{place} is no YAML: {error.problem}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(f"{where} is no YAML: {reason}") from error
