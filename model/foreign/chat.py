"""Conversations: messages with roles, and the text that a model's own template makes of them.

Roles are structure: no character of a message is ever part of a special token, and every token
knows the role of the message that it spells. What the template adds has the role ``template``.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

from headlight.model.checkpoint.files import CheckpointError, read_file
from headlight.model.foreign import chat_process
from headlight.model.foreign.folder import CHAT_TEMPLATE, MAX_CONFIG_BYTES, ForeignFolder
from headlight.model.tokenizer import NoChat
from headlight.model.trace import ROLES, TEMPLATE, Message

_SPARE, _SPARE_EACH = 2**16, 2**10
"""The characters that a template may add, and those that it may add to each message."""
MAX_SECONDS = 2
"""Of a processor's time."""
_MAX_WAIT = 15
"""Seconds on the clock, many more: other processes may have the processor."""
_N_KEPT = 64
_N_SHOWN = 300


@dataclass(frozen=True)
class Conversation:
    """The text of messages; ``spans`` are the begin, end and role of each content in it."""

    text: str
    spans: tuple[tuple[int, int, str], ...]

    def role_at(self, start: int, end: int) -> str:
        """Return the role of characters: that of the first content which shares one of them."""
        number = bisect_right(self.spans, start, key=lambda span: span[1])
        if number < len(self.spans) and self.spans[number][0] < end:
            return self.spans[number][2]
        return TEMPLATE

    @property
    def gaps(self) -> list[tuple[int, int]]:
        """The begin and end of what the template wrote before, between and after the contents."""
        edges = [0, *(edge for span in self.spans for edge in span[:2]), len(self.text)]
        return list(zip(edges[::2], edges[1::2], strict=True))


@dataclass(frozen=True)
class ChatTemplate:
    """A template in Jinja, the file that holds it, and the special tokens that it may name."""

    source: str
    file: str
    names: tuple[tuple[str, str], ...] = ()

    def read(self, messages: Sequence[Message]) -> Conversation:
        """Return the text of messages; it ends where an answer begins, unless one is the last.

        Raises:
            NoChat: the template fails, exceeds its bounds, or changes a content, so that what it
                adds cannot be told from what was said.
        """
        return _read(self, tuple(messages))


def read_template(folder: ForeignFolder, options: Any, names: Any) -> ChatTemplate | None:
    """Return the chat template of a folder: a file of its own, or one in `options`; None: none.

    Args:
        folder: of the model.
        options: the content of tokenizer_config.json.
        names: the special tokens by their names, as ``eos_token``.

    Raises:
        CheckpointError: it is too large, or no text.
    """
    file, source = folder.path / CHAT_TEMPLATE, options.get("chat_template")
    if file.exists():
        try:
            source = read_file(folder.path, CHAT_TEMPLATE, MAX_CONFIG_BYTES).decode()
        except UnicodeDecodeError as error:
            raise CheckpointError(f"{file}: is no text in UTF-8") from error
    elif isinstance(source, list):  # several, of which one is for conversations
        named = {each.get("name"): each.get("template") for each in source if type(each) is dict}
        source = named.get("default")
    if not isinstance(source, str):
        return None
    where = CHAT_TEMPLATE if file.exists() else "tokenizer_config.json"
    return ChatTemplate(source, where, tuple((key, str(value)) for key, value in names.items()))


@lru_cache(_N_KEPT)
def _read(template: ChatTemplate, messages: tuple[Message, ...]) -> Conversation:
    """Render messages as they are and with marks around their contents, which tell the places.

    The marks are private characters that nothing else has, within the white space around a
    content, which templates strip.
    """
    used = {*template.source, *"".join(message.content for message in messages)}
    free = (chr(code) for code in range(0xE000, 0xF900) if chr(code) not in used)
    *begins, end = islice(free, len(ROLES) + 1)
    mark_of = dict(zip(ROLES, begins, strict=True))
    marked = [
        message._replace(
            content=message.content.replace(words, f"{mark_of[message.role]}{words}{end}")
        )
        if (words := message.content.strip())
        else message
        for message in messages
    ]
    text, with_marks = _rendered(template, (messages, marked))
    place = re.compile(f"([{''.join(begins)}])([^{''.join(begins)}{end}]*){end}")
    if place.sub(r"\2", with_marks) != text:
        raise NoChat(
            f"{template.file} changes the words of these messages, so their roles are lost; "
            "send token ids, or messages without markup"
        )
    role_of = {mark: role for role, mark in mark_of.items()}
    spans = [
        (found.start() - 2 * number, found.end() - 2 * number - 2, role_of[found[1]])
        for number, found in enumerate(place.finditer(with_marks))
    ]
    return Conversation(text, tuple(spans))


def _rendered(template: ChatTemplate, conversations: Sequence[Sequence[Message]]) -> list[str]:
    """Return the text of each conversation.

    Raises:
        NoChat: as `ChatTemplate.read`.
    """
    messages = conversations[0]
    n_characters = sum(len(message.content) for message in messages)
    asked = {
        "template": template.source,
        "conversations": [[each._asdict() for each in chat] for chat in conversations],
        "names": {
            **dict(template.names),
            "add_generation_prompt": messages[-1].role != "assistant",
        },
        "most": _SPARE + 2 * n_characters + _SPARE_EACH * len(messages),
    }
    command = [sys.executable, "-P", "-s", chat_process.__file__, str(MAX_SECONDS)]
    environment = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}  # and no secret
    try:
        done = subprocess.run(  # noqa: S603
            command,
            input=json.dumps(asked),
            env=environment,
            capture_output=True,
            text=True,
            timeout=_MAX_WAIT,
        )
        answer = json.loads(done.stdout)
    except (subprocess.TimeoutExpired, ValueError):  # ended by its bounds
        answer = {"error": f"it does not end within {MAX_SECONDS} s"}
    if (why := answer.get("error")) is not None:
        why = " ".join(str(why).split())[:_N_SHOWN]
        raise NoChat(f"{template.file} rejects these messages: {why}; mend it, or send a text")
    texts: list[str] = answer["texts"]
    return texts
