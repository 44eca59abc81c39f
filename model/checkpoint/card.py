"""Model cards: the data, training, licence and evaluation of a model.

A ``CARD.md`` is Markdown with YAML front matter; the tables at its end are generated from the
YAML. Mitchell et al. 2019, https://arxiv.org/abs/1810.03993.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import yaml

from headlight.model.checkpoint.files import CARD, MAX_BYTES, CheckpointError, read_file

try:  # ten times as fast, and a card's metrics are long
    from yaml import CSafeLoader as SafeLoader
except ImportError:
    from yaml import SafeLoader  # type: ignore[assignment]  # another class, the same interface


class Loader(SafeLoader):
    """Reads the core schema of YAML 1.2, and rejects equal keys.

    PyYAML reads YAML 1.1, where `no` is false, `1:60` is 120, and `1:60:60…` or a long 0x… is an
    integer that nothing else can write. A number that is too long for 64 bits is a text here.
    https://yaml.org/spec/1.2.2/#103-core-schema
    """

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - as the base class has it

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Return a mapping whose keys occur once."""
        seen = set()
        for key, _ in node.value:
            if (key.tag, str(key.value)) in seen:
                why = f"the key {str(key.value)[:80]!r} is given twice"
                raise yaml.constructor.ConstructorError(None, None, why, key.start_mark)
            seen.add((key.tag, str(key.value)))
        return super().construct_mapping(node, deep)


_DIGITS = "[0-9]{1,99}"
for _kind, _pattern, _first in (
    ("bool", "true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", "[-+]?[0-9]{1,18}", "-+0123456789"),
    (
        "float",
        rf"[-+]?(\.{_DIGITS}|{_DIGITS}(\.[0-9]{{0,99}})?)([eE][-+]?[0-9]{{1,2}})?",
        "-+.0123456789",
    ),
    ("null", "~|null|Null|NULL|", ["~", "n", "N", ""]),
):
    Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_kind}", re.compile(f"^(?:{_pattern})$"), list(_first)
    )

FENCE = re.compile(r"^---\n", re.MULTILINE)
FIGURES = "## Figures"
EXPERTS = "## Tokens by expert"
HEADS = "## Heads"
CORPUS = "## Training text"
BLANKS = "## Filled blanks"
CONTINUATIONS = "## Continuations"
GUESSES, WRITTEN = "guesses", "continuations"  # figures that are texts, with their own tables
ROBUSTNESS = "## How far the figures carry"
TABLES = [
    re.compile(rf"^{heading}\n\n(?:\|.*\n)+\n?\Z", re.MULTILINE)
    for heading in (FIGURES, HEADS, EXPERTS, CORPUS, CONTINUATIONS, BLANKS, ROBUSTNESS)
]
LISTS = ("trained_on", "attribution")
MAPPINGS = ("examples", "training", "corpus", "metrics", "heads", "expert_tokens")
# The shape of `expert_tokens`, which is checked because a card may be edited by hand.
EXPERT_TOKENS = {
    "text": [str],
    "tokens": int,
    "least_count": int,
    "kinds": {str: float},
    "layers": {
        str: [
            {
                "share": float,
                "kinds": {str: float},
                "tokens": [{"text": str, "share": float, "count": int}],
            }
        ]
    },
}
HEAD_SUMMARY = {
    "text": [str],
    "sentences": int,
    "bits_per_byte?": float,
    "attentions": {str: [{"labels": {str: float}, "cost?": float}]},
}
# Spaces are made visible; a bar would end the cell of a Markdown table.
VISIBLE = str.maketrans({" ": "·", "\n": "↵", "\t": "⇥", "|": "\\|"})
YAML_MAP, YAML_SEQUENCE, YAML_TEXT = (f"tag:yaml.org,2002:{kind}" for kind in ("map", "seq", "str"))
MAX_DEPTH = 50
IN_YAML: dict[type, str] = {list: "list", dict: "mapping", str: "text"}


@dataclass(frozen=True, kw_only=True)
class Example:
    """An example text and the part of the page that shows its point.

    ``view`` is the id of the view, ``where`` the stack (``encoder``, ``decoder``) or the attention
    between them (``cross``), ``layer`` and ``head`` the attention map, ``query`` the index of the
    predicted token and ``source`` that of the source token. All count from 0; None: not given.
    ``claim`` is what the example shows, as `headlight evaluate` measures it.
    """

    text: str
    view: str | None = None
    where: str | None = None
    layer: int | None = None
    head: int | None = None
    query: int | None = None
    source: int | None = None
    claim: str | None = None

    @property
    def opens(self) -> dict[str, str | int]:
        """The given fields without the text."""
        given = _given(self).items()
        return {name: value for name, value in given if name not in {"text", "claim"}}


_EXAMPLE_KEYS = tuple(field.name for field in fields(Example))
_EXAMPLE_COUNTS = ("layer", "head", "query", "source")


@dataclass(frozen=True, kw_only=True)
class ModelCard:
    """The card of one model.

    ``learned`` names in a few words what the model learned: *English children's books*.
    ``examples`` are texts to read with the model, by title. ``training`` holds the command, seed,
    steps, tokens, hours and machine. ``corpus`` holds the figures of the training text that
    ``headlight data report`` measured. ``metrics`` are the figures that ``headlight evaluate``
    measured, ``heads`` a summary of the profile of the heads
    (`headlight.model.profiles.measure`), and ``expert_tokens`` the tokens counted at each
    expert. ``prose`` is the Markdown below the YAML.
    """

    title: str
    licence: str
    learned: str = ""
    trained_on: tuple[str, ...] = ()
    attribution: tuple[str, ...] = ()
    examples: Mapping[str, str | Example] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)
    corpus: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, Any] = field(default_factory=dict)
    heads: Mapping[str, Any] = field(default_factory=dict)
    expert_tokens: Mapping[str, Any] = field(default_factory=dict)
    prose: str = ""


def read_card(path: Path) -> ModelCard:
    """Read a ``CARD.md``.

    Raises:
        ValueError: the file is missing, too large or no file, or its YAML is malformed or not that
            of a card.
    """
    try:
        text = read_file(path.parent, path.name, MAX_BYTES[CARD]).decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} cannot be read: {error}") from error
    text = text.replace("\r\n", "\n")
    parts = FENCE.split(text, maxsplit=2)
    if len(parts) != 3 or parts[0]:
        raise ValueError(f"{path} must begin with YAML between two lines of '---'")
    try:
        head = _plain(parse_yaml(parts[1]))
    except (yaml.YAMLError, ValueError) as error:
        raise ValueError(f"{path} has broken YAML: {error}") from error
    prose = parts[2]
    for table in TABLES:
        prose = table.sub("", prose)
    return _card_of(head, prose.strip(), path)


def write_card(path: Path, card: ModelCard) -> None:
    """Write a card to a file that `read_card` reads back unchanged."""
    head = asdict(card)
    head.pop("prose")
    for name in LISTS:
        head[name] = list(head[name])
    head["examples"] = {
        title: example if isinstance(example, str) else _given(example)
        for title, example in card.examples.items()
    }
    for name in ("corpus", "learned"):
        if not head[name]:  # it was not measured, or not said
            head.pop(name)
    heads, expert_tokens = head.pop("heads"), head.pop("expert_tokens")
    if heads:
        head["heads"] = _heads_in_lines(heads)
    if expert_tokens:  # a dense model has none
        head["expert_tokens"] = _in_lines(expert_tokens)
    written = yaml.dump(head, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
    path.write_text(f"---\n{written}---\n\n{to_markdown(card)}", encoding="utf-8")


def to_markdown(card: ModelCard) -> str:
    """Return the Markdown of a card: its prose and the tables generated from its figures."""
    sample = _mapping(card.metrics, "sample")
    robustness = _mapping(card.metrics, "robustness") or _mapping(sample, "robustness")
    reach = [*_reach(robustness), *_reach_typed(_mapping(card.metrics, "typed"))]
    sections = (
        (ROBUSTNESS, ("measured on", "figure", "value"), reach),
        (BLANKS, ("sentence", "first guesses"), _written(_mapping(sample, "blanks"), GUESSES)),
        (CONTINUATIONS, ("sentence", "the model's continuation"), _written(sample, WRITTEN)),
        (CORPUS, ("figure", "value"), _figures(card.corpus)),
        (EXPERTS, ("layer", "expert", "share of tokens", "top tokens"), _experts(card)),
        (HEADS, ("attention", "head", "labels", "bits a byte without it"), _heads(card)),
        (FIGURES, ("figure", "value"), _figures(card.metrics)),
    )
    return f"{card.prose}\n" + "".join(_section(*section) for section in sections)


def _section(heading: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a heading and a table; empty: there are no rows."""
    lines = "".join(f"| {' | '.join(map(str, row))} |\n" for row in rows)
    head = f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}\n"
    return f"\n{heading}\n\n{head}{lines}" if lines else ""


@cache
def claims() -> Mapping[str, tuple[str, str]]:
    """Return of each claim of an example the score, and the control it is compared with."""
    said = tomllib.loads(Path(__file__).with_name("claims.toml").read_text("utf-8"))
    return {claim: (score, control) for claim, (score, control) in said.items()}


OF_WHAT_IS_RIGHT = frozenset({"alignment", "verb_of_clause", "verb_across", "rule"})
CLAIM = {"claim": str, "score": float, "control": float, "sentences": int}


def measured_claim(card: ModelCard, title: str) -> Mapping[str, Any] | None:
    """Return the figures of an example's claim.

    Returns:
        ``claim``, ``score``, ``control`` and ``sentences``; None if the example claims nothing, or
        another claim was measured.
    """
    example = card.examples[title]
    figures = _mapping(_mapping(card.metrics, "sample"), "examples").get(title)
    claim = example.claim if isinstance(example, Example) else None
    if claim not in claims() or figures is None or not fits(figures, CLAIM):
        return None
    measured: Mapping[str, Any] = figures
    return measured if measured["claim"] == claim else None


def aligner_of(card: ModelCard) -> dict[str, int] | None:
    """Return the head that aligns words best, by the card's figures.

    Returns:
        ``layer``, ``head`` and ``shift``, as in `headlight.model.analysis.alignment.word_links`;
        None if none was measured.
    """
    head = _mapping(_mapping(card.metrics, "alignment"), "head")
    aligner: dict[str, Any] = {key: head.get(key) for key in ("layer", "head", "shift")}
    is_whole = all(type(number) is int for number in aligner.values())
    return aligner if is_whole and aligner["shift"] in (0, 1) else None


def rounded(figures: Mapping[str, Any]) -> dict[str, Any]:
    """Round every float of nested mappings and lists to four digits, as plain data."""
    return {name: _rounded(value) for name, value in figures.items()}


def _rounded(value: Any) -> Any:
    if isinstance(value, Mapping):
        return rounded(value)
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return round(float(value), 4) if isinstance(value, float) else value


def flatten(figures: Mapping[Any, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Return a card's figures as (name, value) pairs; nested names are joined by dots."""
    pairs: list[tuple[str, Any]] = []
    for key, value in figures.items():
        name = f"{prefix}{key}"
        pairs += flatten(value, f"{name}.") if isinstance(value, Mapping) else [(name, value)]
    return pairs


def _figures(figures: Mapping[str, Any]) -> list[tuple[str, Any]]:
    texts = (f"sample.{WRITTEN}.", f"sample.blanks.{GUESSES}.")  # they have their own tables
    return [(name, value) for name, value in flatten(figures) if not name.startswith(texts)]


def _reach(robustness: Mapping[str, Any]) -> Iterable[tuple[str, str, Any]]:
    """Yield the figures of a model on texts that are typed in other ways."""
    main = _plainly(str(robustness.get("figure", "figure")))
    for form, value in _group(robustness, "forms"):
        yield _plainly(form), main, value
    for name, value in _group(robustness, "other_texts"):
        yield f"`{name}`", main, value
    for span, value in _group(robustness, "length"):
        yield _plainly(span), main, value


def _reach_typed(typed: Mapping[str, Any]) -> Iterable[tuple[str, str, Any]]:
    """Yield the figures of a translator, as `typed_figures` returns them."""
    for form, value in _group(typed, "forms"):
        yield _plainly(form), "BLEU without case", value
    if names := _mapping(typed, "names"):
        yield f"{names['names']} names that the corpus lacks", "share kept by letter", names["kept"]


def _written(figures: Mapping[str, Any], name: str) -> Iterable[tuple[str, str]]:
    """Yield the sentences that a model fills in or continues, and what it wrote."""
    return ((_cell(text), _cell(value)) for text, value in _group(figures, name))


def _cell(text: object) -> str:
    """Return a text as the cell of a Markdown table, whose line breaks show."""
    return " ".join(str(text).replace("|", "\\|").replace("\n", " ↵ ").split())


def _mapping(figures: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = figures.get(name)
    return value if isinstance(value, Mapping) else {}


def _group(figures: Mapping[str, Any], name: str) -> Iterable[tuple[str, Any]]:
    return _mapping(figures, name).items()


def _plainly(name: str) -> str:
    return name.replace("_", " ")


def _heads(card: ModelCard) -> Iterable[tuple[object, ...]]:
    for path, of_path in _group(card.heads, "attentions"):
        for number, head in enumerate(of_path):
            yield path, number, _labels(head["labels"]), cost_in_words(head)


def cost_in_words(head: Mapping[str, Any]) -> str:
    """Return the cost of a head, empty if it was not measured."""
    return f"{head['cost']:+.4f}" if "cost" in head else ""


def _labels(labels: Mapping[str, float]) -> str:
    return ", ".join(f"{label} {score:.2f}" for label, score in labels.items()) or "none"


def _experts(card: ModelCard) -> Iterable[tuple[object, ...]]:
    for layer, experts in _group(card.expert_tokens, "layers"):
        for number, expert in enumerate(experts):
            share = f"{100 * expert['share']:.1f} %"
            spelled = (_code(token["text"].translate(VISIBLE)) for token in expert["tokens"])
            yield layer, number, share, " ".join(spelled)


def parse_yaml(text: str) -> Any:
    """Parse YAML, but reject deep nesting, aliases and tags.

    Deep nesting would overflow the stack and end the process; nine lines of aliases can expand to a
    billion values.

    Raises:
        YAMLError: the YAML is malformed, nests too deeply, or has an alias, a tag or equal keys.
    """
    depth = 0
    for event in yaml.parse(text, Loader=Loader):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise yaml.YAMLError(f"it nests more than {MAX_DEPTH} levels deep")
        if isinstance(event, yaml.AliasEvent):
            raise yaml.YAMLError("it has an alias (*); write out its value")
        if tag := getattr(event, "tag", None):
            raise yaml.YAMLError(f"it has the tag {tag[:80]!r}; write the value without one")
    return yaml.load(text, Loader=Loader)  # noqa: S506 - a safe one


def _code(text: str) -> str:
    fence = "``" if "`" in text else "`"
    space = " " if "`" in text else ""
    return f"{fence}{space}{text}{space}{fence}"


def _plain(value: Any) -> Any:
    """Convert parsed YAML to JSON types: keys to strings or integers.

    Raises:
        ValueError: a string has a lone surrogate.
    """
    if isinstance(value, dict):
        names = (name if type(name) in (int, str) else str(name) for name in value)
        return {
            _plain(name): _plain(each) for name, each in zip(names, value.values(), strict=True)
        }
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, str):
        value.encode()  # a lone surrogate is a UnicodeEncodeError, which is a ValueError
    return value


class _Dumper(yaml.SafeDumper):
    """Writes `_Line` and `_Row` in flow style, and strings with line breaks in double quotes."""

    def ignore_aliases(self, data: object) -> bool:
        """Repeat values instead of writing aliases, which `read_card` rejects."""
        return True


class _Line(dict[str, Any]):
    """A mapping in flow style, ``{a: 1}``."""


class _Row(list[Any]):
    """A list in flow style, ``[1, 2]``."""


_Dumper.add_representer(
    _Line, lambda dumper, line: dumper.represent_mapping(YAML_MAP, line.items(), flow_style=True)
)
_Dumper.add_representer(
    _Row, lambda dumper, row: dumper.represent_sequence(YAML_SEQUENCE, row, flow_style=True)
)
_Dumper.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar(
        YAML_TEXT, text, style='"' if "\n" in text else ""
    ),
)


def _in_lines(expert_tokens: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same data with its inner mappings and lists in flow style."""
    return {
        **expert_tokens,
        "kinds": _Line(expert_tokens["kinds"]),
        "layers": {
            layer: [
                {
                    "share": expert["share"],
                    "kinds": _Line(expert["kinds"]),
                    "tokens": _Row(map(_Line, expert["tokens"])),
                }
                for expert in experts
            ]
            for layer, experts in expert_tokens["layers"].items()
        },
    }


def _heads_in_lines(heads: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same data with one line for each head."""
    attentions = {
        path: [_Line({**head, "labels": _Line(head["labels"])}) for head in of_path]
        for path, of_path in heads["attentions"].items()
    }
    return {**heads, "attentions": attentions}


def fits(value: object, shape: object) -> bool:
    """Return True if data has a shape.

    A shape is a type, ``[shape]``, ``{str: shape}`` or ``{name: shape}``, where ``name?`` may be
    missing.
    """
    if shape is float:  # most of a profile's values; a tuple of types is checked the fastest
        return isinstance(value, (int, float)) and math.isfinite(value)
    if isinstance(shape, type):
        return isinstance(value, shape) and not isinstance(value, bool)
    if isinstance(shape, list):
        return isinstance(value, list) and all(fits(each, shape[0]) for each in value)
    assert isinstance(shape, dict)
    if not isinstance(value, dict):
        return False
    if str in shape:
        return all(isinstance(name, str) and fits(value[name], shape[str]) for name in value)
    shapes = {name.removesuffix("?"): each for name, each in shape.items()}
    is_whole = all(name in value for name in shape if not name.endswith("?"))
    return is_whole and all(name in shapes and fits(value[name], shapes[name]) for name in value)


def read_shaped(folder: Path, name: str, max_bytes: int, shape: object, way_out: str) -> Any:
    """Return the JSON of a file in a folder, once its shape is checked (`fits`).

    Raises:
        CheckpointError: the file is damaged, or has another shape; `way_out` says how to renew it.
    """
    path = folder / name
    try:
        content = orjson.loads(read_file(folder, name, max_bytes))
    except CheckpointError:
        raise
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: {error}") from error
    if not fits(content, shape):
        raise CheckpointError(f"{path} is malformed; {way_out}")
    return content


def _card_of(head: object, prose: str, path: Path) -> ModelCard:
    known = {entry.name for entry in fields(ModelCard)} - {"prose"}
    if not isinstance(head, dict) or not set(head) <= known:
        raise ValueError(
            f"{path}: the front matter must be a mapping with keys among {', '.join(sorted(known))}"
        )
    values: dict[str, Any] = dict(head)
    for name in LISTS:
        values[name] = tuple(map(str, _of_type(list, name, values.get(name) or [], path)))
    for name in MAPPINGS:
        values[name] = _of_type(dict, name, values.get(name) or {}, path)
    if values["expert_tokens"] and not fits(values["expert_tokens"], EXPERT_TOKENS):
        raise ValueError(
            f"{path}: expert_tokens is malformed; remove it, and measure it again with "
            "'headlight evaluate --corpus'"
        )
    if values["heads"] and not fits(values["heads"], HEAD_SUMMARY):
        raise ValueError(
            f"{path}: heads is malformed; remove it, and measure it again with 'headlight profile'"
        )
    values["metrics"] = {str(name): figure for name, figure in values["metrics"].items()}
    values["examples"] = _examples_of(values["examples"], path)
    values.setdefault("learned", "")
    for name in ("title", "licence", "learned"):
        values[name] = _of_type(str, name, values.get(name), path)
    return ModelCard(prose=prose, **values)


def _examples_of(written: Mapping[object, object], path: Path) -> dict[str, str | Example]:
    try:
        return {str(title): _example_of(example) for title, example in written.items()}
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _example_of(written: object) -> str | Example:
    """Return an example from YAML: a text, or a mapping with the fields of `Example`."""
    if not isinstance(written, Mapping):
        return str(written)
    if unknown := set(written) - set(_EXAMPLE_KEYS):
        raise ValueError(
            f"unknown key {min(map(str, unknown))} of an example; known are "
            f"{', '.join(_EXAMPLE_KEYS)}"
        )
    for name, value in written.items():
        if name in _EXAMPLE_COUNTS and not (type(value) is int and value >= 0):
            raise ValueError(f"{name} of an example must be an integer from 0, not {value!r}")
        if name not in _EXAMPLE_COUNTS and not isinstance(value, str):
            raise ValueError(f"{name} of an example must be a string, not {value!r}")
    if "text" not in written:
        raise ValueError("an example must have a text")
    return Example(**written)


def _given(example: Example) -> dict[str, Any]:
    return {name: value for name, value in asdict(example).items() if value is not None}


def _of_type(kind: type, name: str, value: object, path: Path) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"{path}: {name} must be a {IN_YAML[kind]}, not {value!r}")
    return value
