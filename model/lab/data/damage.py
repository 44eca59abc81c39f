"""Bad documents made from good ones, in five ways that corpora are bad.

They replace labelled data: the classifier that ships was trained to tell passages of stories from
the same passages damaged, and knows no other fault. Each way changes a text by a random amount, so
that both slight and severe damage occur.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

BOILERPLATE = (
    "Home | About us | Contact | Privacy policy | Terms of use",
    "Copyright © 2019-2024. All rights reserved.",
    "Click here to subscribe to our newsletter!",
    "Share on Facebook Share on Twitter Pin it",
    "We use cookies to improve your experience. Accept all Reject all",
    "Posted on 12/03/2018 at 09:41 by admin | 0 comments | Leave a reply",
    "SKU: 00482-B In stock: 14 Price: $19.99 Add to cart",
    "Page 3 of 17 « Previous Next »",
    "Tags: books, children, story, free, download, pdf",
    "Log in or register to read the full article.",
    "Related posts: Top 10 tips (2020) | Best offers | Sitemap",
    "Loading… Please enable JavaScript in your browser.",
)
"""Lines of web pages that are not part of their text."""

# Letters that scanned type confuses.
_CONFUSED = {
    "e": "co",
    "o": "0c",
    "l": "1I|",
    "i": "1l!",
    "h": "bli",
    "m": ["rn", "nn"],
    "w": ["vv"],
    "n": "ur",
    "u": "n",
    "a": "u4",
    "s": "58",
    "t": "lf",
    "c": "e(",
    "d": ["cl"],
    "r": "t",
    "f": "t",
    "g": "q9",
    "b": "6h",
}
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


DAMAGES: dict[str, Callable[[str, Random], str]] = {
    "shuffled": shuffled,
    "truncated": truncated,
    "boilerplate": with_boilerplate,
    "scanned": scanned,
    "repeated": repeated,
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
