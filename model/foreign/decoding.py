"""The settings of decoding that a folder names: its end tokens, and the tokens forced or forbidden.

They are in generation_config.json; a folder without that file has them in config.json, by the rule
of `GenerationConfig.from_model_config`. A translation follows all that `FOLLOWED` lists, so that it
is the one of `generate(num_beams=1, do_sample=False)`. A decoder's text follows the end tokens
only, because it is drawn here and not by Transformers; `Decoding.ignored` has the names of the
others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from headlight.model.checkpoint.files import CONFIG, CheckpointError
from headlight.model.foreign.folder import GENERATION, MAX_SIZE, ForeignFolder, read_json

MAX_IDS, MAX_SEQUENCE = 10_000, 100
"""The most ids or sequences of a list, and the most ids of a sequence."""

LONGEST_TARGET = 512
"""The most tokens of a translation, unless twice the source is more."""

_NESTED = ("decoder", "generator", "text_config")
_ID = ("bos_token_id", "decoder_start_token_id", "forced_bos_token_id")
_IDS = ("forced_eos_token_id", "suppress_tokens", "begin_suppress_tokens")
_COUNTS = (
    "max_length",
    "max_new_tokens",
    "min_length",
    "min_new_tokens",
    "no_repeat_ngram_size",
    "encoder_no_repeat_ngram_size",
)
_PENALTIES = ("repetition_penalty", "encoder_repetition_penalty")
_END, _BAD_WORDS = "eos_token_id", "bad_words_ids"

FOLLOWED = (*_ID, *_IDS, *_COUNTS, *_PENALTIES, _END, _BAD_WORDS)
"""The settings that a translation follows."""

# Settings that change a greedy text, with the values that do not.
_NEUTRAL: dict[str, tuple[object, ...]] = {
    "constraints": (),
    "dola_layers": (),
    "exponential_decay_length_penalty": (),
    "force_words_ids": (),
    "guidance_scale": (1,),
    "max_time": (),
    "num_beam_groups": (1,),
    "num_beams": (1,),
    "penalty_alpha": (0,),
    "remove_invalid_values": (False,),
    "sequence_bias": (),
    "stop_strings": (),
    "watermarking_config": (),
}
_NEUTRAL_IN_DECODER: dict[str, tuple[object, ...]] = {
    "bad_words_ids": ([],),
    "begin_suppress_tokens": ([],),
    "encoder_repetition_penalty": (1,),
    "forced_bos_token_id": (),
    "forced_eos_token_id": (),
    "min_length": (0,),
    "min_new_tokens": (0,),
    "no_repeat_ngram_size": (0,),
    "repetition_penalty": (1,),
    "suppress_tokens": ([],),
}


@dataclass(frozen=True, kw_only=True)
class Decoding:
    """The settings of decoding of a folder.

    ``end_ids`` are the tokens after which a text ends; ``start_ids`` those that the decoder of an
    encoder–decoder reads first: its start token, and the token that is forced after it.
    ``settings`` are those of Transformers' `GenerationConfig` that a translation follows, and
    ``ignored`` the names of those that would change a greedy text and are not followed.
    """

    end_ids: frozenset[int] = frozenset()
    start_ids: tuple[int, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()

    @property
    def note(self) -> str:
        """The sentence about what is not followed; empty: everything is."""
        if not self.ignored:
            return ""
        return (
            f"{', '.join(self.ignored)}: set in the folder and not followed, so Transformers may "
            "write another text"
        )

    def longest(self, n_source: int, max_tokens: int) -> int:
        """Return the most tokens that are written for a source, the end token included."""
        usual = 2 * n_source + 10
        named = self.settings.get("max_new_tokens")
        if named is None and "max_length" in self.settings:
            named = self.settings["max_length"] - 1  # the start token counts
        most = usual if named is None else min(named, max(usual, LONGEST_TARGET))
        return max(1, min(most, max_tokens - 1))

    def written(self, ids: list[int]) -> list[int]:
        """Return a target of `generate` without what it begins with, and without its end."""
        begin = 0
        for start in self.start_ids:
            if ids[begin : begin + 1] != [start]:
                break
            begin += 1
        is_ended = len(ids) > begin and ids[-1] in self.end_ids
        return ids[begin : len(ids) - is_ended]


def read_decoding(folder: ForeignFolder, config: Any, task: str) -> Decoding:
    """Read the settings of decoding of a folder.

    Args:
        folder: checked.
        config: of the model.
        task: as of `class_of`.

    Raises:
        CheckpointError: a setting that is followed has the wrong type, is out of range, or names
            a token that the model does not have.
    """
    if task not in ("causal", "seq2seq"):
        return Decoding()
    path = folder.path / GENERATION
    if path.exists() or path.is_symlink():
        return decoding_of(read_json(folder.path, GENERATION), config, task, str(path))
    return decoding_of(_legacy(folder.config), config, task, str(folder.path / CONFIG))


def decoding_of(named: Mapping[str, Any], config: Any, task: str, where: str) -> Decoding:
    """Check settings by name, and keep those that are followed.

    Raises:
        CheckpointError: as `read_decoding`.
    """
    named = {key: value for key, value in named.items() if value is not None}
    neutral = dict(_NEUTRAL)
    if task == "causal":
        neutral |= _NEUTRAL_IN_DECODER
        settings = dict(_checked({_END: named.get(_END)}, _n_ids(config), where))
    else:
        settings = dict(_checked(named, _n_ids(config), where))
        _require_possible(settings, where)
    ignored = (key for key in sorted(neutral) if key in named and named[key] not in neutral[key])
    return Decoding(
        end_ids=frozenset(settings.get(_END, ())),
        start_ids=_start_ids(settings, config) if task == "seq2seq" else (),
        settings=settings,
        ignored=tuple(ignored),
    )


def _legacy(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings in a config.json, as Transformers takes them from there."""
    inner: Any = next((config[name] for name in _NESTED if config.get(name)), {})
    settings = dict(inner) if isinstance(inner, dict) else {}
    settings |= {key: value for key, value in config.items() if value is not None}
    if config.get("force_bos_token_to_be_generated"):
        settings["forced_bos_token_id"] = config.get("bos_token_id")
    return settings


def _n_ids(config: Any) -> int:
    """Return the number of tokens that the model may write."""
    sizes: list[int] = [config.get_text_config().vocab_size]
    for name in ("decoder_vocab_size", "tgt_vocab_size"):
        size = getattr(config, name, None)
        sizes += [size] if isinstance(size, int) else []
    return max(sizes)


def _checked(named: Mapping[str, Any], n_ids: int, where: str) -> Iterator[tuple[str, Any]]:
    """Yield the settings that are followed, in the form that Transformers takes."""
    for key in FOLLOWED:
        value = named.get(key)
        if value is None:
            continue
        if key == _END:  # a token that the model does not have never ends a text
            ends = [token for token in _listed(value, _END, where) if 0 <= token < n_ids]
            if ends:
                yield key, ends
        elif key == _BAD_WORDS:
            if words := _words(value, n_ids, where):
                yield key, words
        elif key in _ID:
            yield key, _known([_integer(value, key, where)], n_ids, key, where)[0]
        elif key in _IDS:
            yield key, _known(_listed(value, key, where), n_ids, key, where)
        elif key in _COUNTS:
            yield key, _count(value, key, where)
        else:
            yield key, _penalty(value, key, where)


def _require_possible(settings: Mapping[str, Any], where: str) -> None:
    """Check that no token is both forced and suppressed, which would leave none to write."""
    suppressed = set(settings.get("suppress_tokens", ()))
    for key in ("forced_bos_token_id", "forced_eos_token_id"):
        forced = settings.get(key)
        forced = {forced} if isinstance(forced, int) else set(forced or ())
        if forced and forced <= suppressed:
            raise CheckpointError(
                f"{where}: {key} ({min(forced):,}) is one of suppress_tokens, so no token is left"
            )


def _integer(value: object, key: str, where: str) -> int:
    if type(value) is not int:
        raise CheckpointError(f"{where}: {key} ({_short(value)}) must be a whole number")
    return value


def _listed(value: object, key: str, where: str) -> list[int]:
    """Return one id or a list of them as a list."""
    ids = value if isinstance(value, list) else [value]
    if len(ids) > MAX_IDS:
        raise CheckpointError(f"{where}: {key} has {len(ids):,} values, at most {MAX_IDS:,}")
    return [_integer(number, key, where) for number in ids]


def _known(ids: list[int], n_ids: int, key: str, where: str) -> list[int]:
    for token in ids:
        if not 0 <= token < n_ids:
            raise CheckpointError(
                f"{where}: {key} names the token {token:,}; the ids are 0 to {n_ids - 1:,}"
            )
    return ids


def _words(value: object, n_ids: int, where: str) -> list[list[int]]:
    if not isinstance(value, list) or not all(isinstance(word, list) and word for word in value):
        raise CheckpointError(f"{where}: {_BAD_WORDS} must be a list of lists of token ids")
    longest = max((len(word) for word in value), default=0)
    if len(value) > MAX_IDS or longest > MAX_SEQUENCE:
        raise CheckpointError(
            f"{where}: {_BAD_WORDS} has {len(value):,} words of up to {longest:,} tokens, at most "
            f"{MAX_IDS:,} of {MAX_SEQUENCE}"
        )
    return [_known(_listed(word, _BAD_WORDS, where), n_ids, _BAD_WORDS, where) for word in value]


def _count(value: object, key: str, where: str) -> int:
    count = _integer(value, key, where)
    least = 1 if key in ("max_length", "max_new_tokens") else 0
    if not least <= count <= MAX_SIZE:
        raise CheckpointError(f"{where}: {key} ({count:,}) must be {least} to {MAX_SIZE:,}")
    return count


def _penalty(value: object, key: str, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise CheckpointError(f"{where}: {key} ({_short(value)}) must be a number above 0")
    return float(value)


def _short(value: object) -> str:
    return repr(value)[:100]


def _start_ids(settings: Mapping[str, Any], config: Any) -> tuple[int, ...]:
    names = ("decoder_start_token_id", "bos_token_id")
    ids = [settings[name] for name in names if name in settings]
    usual = getattr(config, "decoder_start_token_id", None)
    ids += [usual] if isinstance(usual, int) else []
    forced = settings.get("forced_bos_token_id")
    return (*ids[:1], *([] if forced is None else [forced])) if ids else ()
