"""Render a chat template of a stranger, in a process of its own with little time and memory.

It reads JSON from its input and writes JSON: ``{"texts": […]}``, a text of each list of messages,
or ``{"error": "…"}``. The environment is that of Transformers' ``apply_chat_template``, which has
no bounds: Jinja's immutable sandbox keeps a template from the machine, not from looping, and a
thread that loops cannot be ended. Importing Transformers here would take a second for each.
"""

import json
import sys
from datetime import datetime
from typing import Any

from jinja2 import TemplateError
from jinja2.ext import Extension, loopcontrols
from jinja2.nodes import Scope
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

MAX_BYTES = 2**29


class _Generation(Extension):
    """Read ``{% generation %}``, which marks an answer for training, as what is in it."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> Scope:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return Scope(body, lineno=line)


def _raise(message: object) -> None:
    raise TemplateError(str(message))


def _tojson(value: object, indent: int | None = None, **options: Any) -> str:
    return json.dumps(value, **{"ensure_ascii": False, "indent": indent, **options})


def render(
    template: str, conversations: list[list[dict[str, str]]], names: dict[str, Any], most: int
) -> list[str]:
    """Return the text of each conversation.

    Args:
        template: in Jinja.
        conversations: lists of messages.
        names: the other variables of the template.
        most: the characters that a text may have.

    Raises:
        TemplateError: the template is none, fails, or writes more.
    """
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols]
    )
    environment.filters["tojson"] = _tojson
    environment.globals |= {"raise_exception": _raise, "strftime_now": datetime.now().strftime}
    compiled = environment.from_string(template)
    texts = []
    for messages in conversations:
        text = ""
        for piece in compiled.generate(messages=messages, **names):
            text += piece
            if len(text) > most:
                raise TemplateError(f"it writes more than {most:,} characters")
        texts.append(text)
    return texts


def main() -> None:
    """Render what the input asks for, within the bounds."""
    try:
        import resource

        seconds = int(sys.argv[1])
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_AS, (MAX_BYTES, MAX_BYTES))
    except (ImportError, ValueError, OSError):  # a system without: the caller's clock is left
        pass
    try:
        answer: dict[str, Any] = {"texts": render(**json.load(sys.stdin))}
    except MemoryError:
        answer = {"error": "it needs too much memory"}
    except Exception as error:  # a template may cause any
        answer = {"error": f"{error}" or type(error).__name__}
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
