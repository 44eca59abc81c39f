"""Check the parts of a stranger's tokenizer.json, and try it in a process under limits.

A chain of replacements turns eleven characters into gigabytes, and a template adds a billion
tokens; a call of the library cannot be interrupted. So the parts bound the growth of a text, and a
child process that imports only `tokenizers` opens the file first, with little memory and time. It
takes a tenth of a second.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import tokenizers

from headlight.model.checkpoint.files import (
    MAX_BYTES,
    TOKENIZER,
    CheckpointError,
    open_file,
    read_file,
)

MAX_STEPS, MAX_PIECE_CHARACTERS = 64, 100
MAX_ADDED_TOKENS, MAX_GROWTH = 1_000, 256
MAX_NAMED_TOKENS = 100_000
LEAST_SECONDS, LEAST_BYTES = 1.5, 2**28
BYTES_PER_SECOND, MEMORY_PER_BYTE = 2**22, 24

PARTS = {
    "normalizer": "normalizers",
    "pre_tokenizer": "pretokenizers",
    "post_processor": "processors",
    "decoder": "decoders",
}
"""The parts that may be a sequence, and the member that then holds the steps."""

# Characters that grow when they are decomposed, folded or written as bytes.
_PROBE = " a B\u00e9\ufb03\ufdfa\u732b\U0001f467. <>'\"`1\n\t"

_CHILD = """
import sys
text, n_bytes, seconds, place = sys.argv[1:]
sys.path.insert(0, place)
import tokenizers
try:  # Windows has none of the limits; the time is limited from outside
    import resource
    for name, limit in (("AS", n_bytes), ("CPU", seconds), ("CORE", 0)):
        kind = getattr(resource, "RLIMIT_" + name)
        hard = resource.getrlimit(kind)[1]
        most = int(limit) if hard == resource.RLIM_INFINITY else min(int(limit), hard)
        resource.setrlimit(kind, (most, most))
except (ImportError, AttributeError, ValueError, OSError):
    pass
try:
    found = tokenizers.Tokenizer.from_buffer(sys.stdin.buffer.read())
    found.no_truncation()
    found.no_padding()
    ids = found.encode(text).ids[:1000]
    found.decode(ids)
except Exception as error:
    sys.stdout.buffer.write(str(error)[:300].encode())
"""


def require_harmless(folder: Path) -> None:
    """Check the parts of a folder's tokenizer.json, and try it in a child process.

    Raises:
        CheckpointError: it is not a regular file, a part has the wrong type or lets a text grow
            without bound, or the library does not open it within the limits.
    """
    path = folder / TOKENIZER
    try:
        content = read_file(folder, TOKENIZER, MAX_BYTES[TOKENIZER])
        parts = json.loads(content)
        if not isinstance(parts, dict):
            raise ValueError("must be a JSON object")
        require_bounded_parts(parts)
    except RecursionError as error:
        raise CheckpointError(f"{path}: nests too deeply") from error
    except CheckpointError:
        raise
    except ValueError as error:
        raise CheckpointError(f"{path} is not a readable tokenizer: {error}") from error
    _try_out(folder, len(content))


def require_bounded_parts(parts: Mapping[str, Any]) -> None:
    """Check the types of a tokenizer's parts, and bound how much longer they make a text.

    Raises:
        ValueError: a part has the wrong type, or makes a text too long.
    """
    named = parts.get("added_tokens")
    if named is not None and not (isinstance(named, list) and len(named) <= MAX_NAMED_TOKENS):
        raise ValueError(f"added_tokens must be a list of at most {MAX_NAMED_TOKENS:,} tokens")
    growth = {"normalizer": 1.0, "pre_tokenizer": 1.0, "decoder": 1.0, "post_processor": 1.0}
    n_added = 0
    for part, member in PARTS.items():
        steps = list(_steps(part, parts.get(part), member))
        if len(steps) > MAX_STEPS:
            raise ValueError(f"{part} has {len(steps):,} steps, at most {MAX_STEPS}")
        for step in steps:
            growth[part] *= _growth(part, step)
            if part == "post_processor":
                n_added += _added(step)
    if n_added > MAX_ADDED_TOKENS:
        raise ValueError(
            f"post_processor adds {n_added:,} tokens to a text, at most {MAX_ADDED_TOKENS:,}"
        )
    for part, factor in {
        "normalizer": growth["normalizer"] * growth["pre_tokenizer"],
        "decoder": growth["decoder"],
    }.items():
        if factor > MAX_GROWTH:
            raise ValueError(
                f"{part} may make a text {factor:.3g} times as long, at most {MAX_GROWTH}"
            )


def _steps(part: str, value: object, member: str) -> Iterator[Mapping[str, Any]]:
    """Yield the steps of a part, those of sequences in sequences too."""
    if value is None:
        return
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        raise ValueError(f"{part} must be an object with a type")
    if value["type"] != "Sequence":
        yield value
        return
    inner = value.get(member)
    if not isinstance(inner, list) or len(inner) > MAX_STEPS:
        raise ValueError(f"{part} must have a list of at most {MAX_STEPS} {member}")
    for step in inner:
        yield from _steps(part, step, member)


def _growth(part: str, step: Mapping[str, Any]) -> float:
    """Return how many times as long one step makes a text, at most."""
    if step["type"] == "ByteLevel" and part != "decoder":
        return 2  # a byte beyond ASCII becomes a character of two
    if step["type"] in ("Precompiled", "NFKC", "NFKD"):
        return 4
    if step["type"] == "Prepend":
        return 1 + len(_text(part, step, "prepend")) / MAX_PIECE_CHARACTERS
    if step["type"] != "Replace":
        return 1
    content, pattern = _text(part, step, "content"), step.get("pattern")
    if not isinstance(pattern, dict) or len(pattern) != 1:
        raise ValueError(f"{part} must replace a pattern")
    ((kind, matched),) = pattern.items()
    if not isinstance(matched, str):
        raise ValueError(f"{part} must replace a pattern that is text")
    n_bytes = len(content.encode())
    if kind == "String":
        return max(1.0, n_bytes / max(len(matched.encode()), 1))
    return 1.0 + n_bytes if n_bytes > 1 and matched != " {2,}" else 1.0 + n_bytes / 4


def _text(part: str, step: Mapping[str, Any], member: str) -> str:
    value = step.get(member)
    if not isinstance(value, str) or len(value) > MAX_PIECE_CHARACTERS:
        raise ValueError(
            f"{part}: {member} must be text of at most {MAX_PIECE_CHARACTERS} characters"
        )
    return value


def _added(step: Mapping[str, Any]) -> int:
    """Return the most tokens that a template adds to a text."""
    if step["type"] != "TemplateProcessing":
        return 2
    specials = step.get("special_tokens")
    specials = specials if isinstance(specials, dict) else {}
    longest = 1
    for special in specials.values():
        ids = special.get("ids") if isinstance(special, dict) else None
        if not isinstance(ids, list):
            raise ValueError("post_processor: a special token must have a list of ids")
        longest = max(longest, len(ids))
    lengths = [len(step[name]) for name in ("single", "pair") if isinstance(step.get(name), list)]
    return longest * max(lengths, default=0)


def _try_out(folder: Path, n_bytes: int) -> None:
    """Open a tokenizer in a child process with limits, and read a short text with it."""
    path = folder / TOKENIZER
    seconds = LEAST_SECONDS + n_bytes / BYTES_PER_SECOND
    memory = LEAST_BYTES + MEMORY_PER_BYTE * n_bytes
    place = str(Path(tokenizers.__file__).parents[1])
    limits = [str(memory), str(int(seconds) + 1), place]
    try:
        with open_file(folder, TOKENIZER, n_bytes) as file:
            done = subprocess.run(  # noqa: S603
                [sys.executable, "-I", "-S", "-c", _CHILD, _PROBE, *limits],
                stdin=file,
                capture_output=True,
                timeout=4 * seconds,
                env={"TOKENIZERS_PARALLELISM": "false", "RAYON_NUM_THREADS": "1"},
                check=False,
            )
    except subprocess.TimeoutExpired as error:
        raise CheckpointError(
            f"{path}: the tokenizer does not read a short text within {4 * seconds:.0f} s"
        ) from error
    if done.returncode:
        raise CheckpointError(
            f"{path}: the tokenizer does not read a short text with {memory / 1e6:,.0f} MB of "
            f"memory and {seconds:.1f} s of a processor"
        )
    if reason := done.stdout.decode(errors="replace").strip():
        raise CheckpointError(f"{path} is not a readable tokenizer: {reason}")
