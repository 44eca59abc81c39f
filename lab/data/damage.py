"""Bad documents made from good ones, in nine ways that corpora are bad.

They replace labelled data: the classifier that ships was trained to tell passages of stories from
the same passages damaged, and knows no other fault. Each way changes a text by a random amount, so
that both slight and severe damage occur.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from random import Random

_PARTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
BOILERPLATE, _CONFUSED, _TAGS = _PARTS["boilerplate"], _PARTS["confused"], _PARTS["tags"].split()
_SENTENCE = re.compile(r"[^.!?]+[.!?]+[\"')\]]*\s*|[^.!?]+$")


def shuffled(text: str, random: Random) -> str:
    """Return the words in another order, within stretches of random length from 6 words on."""
    words = text.split()
    length = random.choice((6, 12, 40, len(words)))
    parts = [words[start : start + length] for start in range(0, len(words), max(1, length))]
    for part in parts:
        random.shuffle(part)
    return " ".join(word for part in parts for word in part)


def truncated(text: str, random: Random) -> str:
    """Return a piece that begins and ends within sentences, or within words."""
    length = max(1, round(len(text) * random.uniform(0.1, 0.6)))
    start = random.randrange(max(1, len(text) - length))
    piece = text[start : start + length]
    if random.random() < 0.5:
        piece = piece.partition(" ")[2].rpartition(" ")[0]
    return piece.strip().rstrip(".!?\"'") or text[:length]


def with_boilerplate(text: str, random: Random) -> str:
    """Insert lines of web pages between the sentences, at least a third as many."""
    sentences = [sentence.strip() for sentence in _SENTENCE.findall(text) if sentence.strip()]
    start = random.randrange(max(1, len(sentences) // 2))
    kept = sentences[start : start + random.randint(2, 12)]
    lines = kept + random.choices(BOILERPLATE, k=max(2, round(len(kept) * random.uniform(0.3, 2))))
    random.shuffle(lines)
    return "\n".join(lines)


def scanned(text: str, random: Random) -> str:
    """Confuse letters, drop and add spaces, hyphenate at the ends of lines, and add stray marks."""
    rate = random.choice((0.02, 0.05, 0.1, 0.2))
    parts: list[str] = []
    for letter in text:
        chance = random.random()
        if chance < rate and letter.lower() in _CONFUSED:
            parts.append(random.choice(_CONFUSED[letter.lower()]))
        elif chance < rate / 2 and letter == " ":
            parts.append(random.choice(("", "- ", " . ", "  ")))
        elif chance < rate / 8:
            parts.append(letter + random.choice("~^*|_,;'`"))
        else:
            parts.append(letter)
    return "".join(parts)


def repeated(text: str, random: Random) -> str:
    """Repeat one to three sentences again and again."""
    sentences = [sentence.strip() for sentence in _SENTENCE.findall(text) if sentence.strip()]
    start = random.randrange(max(1, len(sentences) - 3))
    kept = sentences[start : start + random.randint(1, 3)]
    before = sentences[max(0, start - random.randint(0, 4)) : start]
    return " ".join(before + kept * random.randint(3, 12))


_TYPOGRAPHIC = (
    (re.compile(r'"(?=\w)'), "“"),
    (re.compile(r'"'), "”"),
    (re.compile(r"(?<=\w)'(?=\w)"), "’"),
    (re.compile(r"--"), "—"),
    (re.compile(r"\b([Cc])afe\b"), r"\1afé"),
)
_ENTITIES = (("&", "&amp;"), ('"', "&quot;"), ("'", "&#39;"), ("--", "&mdash;"), ("  ", "&nbsp; "))


def misdecoded(text: str, random: Random) -> str:
    """Read the UTF-8 of typographic marks as Windows-1252, once or twice, or double accents.

    A text without such marks gets a few accents on its vowels, which are then doubled.
    """
    for pattern, mark in _TYPOGRAPHIC:
        text = pattern.sub(mark, text)
    if random.random() < 0.25 or text.isascii():
        return _with_doubled_accents(text, random)
    for _ in range(random.choice((1, 1, 2))):
        text = text.encode("utf-8").decode("cp1252", errors="replace")
    return text


def _with_doubled_accents(text: str, random: Random) -> str:
    rate, mark = random.choice((0.01, 0.03, 0.1)), random.choice("\u0301\u0300\u0302\u0308´")
    letters = [
        letter + 2 * mark if letter in "aeiou" and random.random() < rate else letter
        for letter in text
    ]
    return "".join(letters) if 2 * mark in "".join(letters) else text + 2 * mark


def with_doubled_quotes(text: str, random: Random) -> str:
    """Double every quotation mark, as tables do, and quote a sentence if there is none."""
    if '"' not in text:
        sentences = [sentence for sentence in _SENTENCE.findall(text) if sentence.strip()]
        chosen = random.choice(sentences).strip() if sentences else text
        text = text.replace(chosen, f'"{chosen}"', 1)
    doubled = text.replace('"', '""')
    return f'"{doubled}"' if random.random() < 0.3 else doubled


def with_html(text: str, random: Random) -> str:
    """Put tags around some sentences, and entities in place of marks."""
    rate = random.choice((0.15, 0.4, 1.0))
    parts = []
    for sentence in _SENTENCE.findall(text) or [text]:
        if random.random() < rate:
            tag = random.choice(_TAGS)
            extra = random.choice(("", "", ' class="text"', " style='color:red'", ' href="#n1"'))
            sentence = random.choice(
                (f"<{tag}{extra}>{sentence}</{tag}>", f"{sentence}<{tag}>", f"<{tag}>{sentence}")
            )
        parts.append(sentence)
    text = "".join(parts)
    if random.random() < 0.6:
        for mark, entity in _ENTITIES:
            text = text.replace(mark, entity)
    return text if "<" in text or "&" in text else f"<p>{text}</p>"


def without_spaces(text: str, random: Random) -> str:
    """Lose some of the spaces between words, or all."""
    rate = random.choice((0.03, 0.06, 0.12, 0.3, 0.6, 1.0))
    return re.sub(r"[ \n]", lambda match: "" if random.random() < rate else match[0], text)


DAMAGES: dict[str, Callable[[str, Random], str]] = {
    "shuffled": shuffled,
    "truncated": truncated,
    "boilerplate": with_boilerplate,
    "scanned": scanned,
    "repeated": repeated,
    "misdecoded": misdecoded,
    "doubled_quotes": with_doubled_quotes,
    "html": with_html,
    "lost_spaces": without_spaces,
}
"""Every way, by its name."""


def damaged(text: str, seed: int, number: int) -> tuple[str, str]:
    """Return a text damaged in one way, which `number` chooses in turn.

    Args:
        text: not blank.
        seed: decides, together with `number`, everything random.
        number: of the document.

    Returns:
        The name of the way, and the text.
    """
    kind = list(DAMAGES)[number % len(DAMAGES)]
    return kind, DAMAGES[kind](text, Random(f"{seed} {number}"))  # nosec B311
