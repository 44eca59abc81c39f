"""A chapter's file: Markdown with front matter, its steps as headings of the second level.

    ---
    title: Why √d
    about: One sentence.
    sources:
      - {title: Vaswani et al. 2017, url: https://arxiv.org/abs/1706.03762}
    ---

    ## The name of a step

    ```step
    opens: {model: stories, text: The cat sat, layer: 1, head: 0}
    ```

    At most sixty words.

The block `step` is YAML. A fault is told with the file and the line that it is in.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args
from urllib.parse import parse_qsl, urlencode

import yaml
from pydantic import Field, PrivateAttr, ValidationError, field_validator, model_validator

from headlight.chapters.found import Found, filled, values_of
from headlight.chapters.many import Many
from headlight.chapters.outcomes import Opens, Outcome, Scalar, address_parts
from headlight.chapters.rules import Rule
from headlight.forms import Answer, Number, Request
from headlight.model.cancellation import check
from headlight.model.checkpoint.card import Loader, parse_yaml
from headlight.problems import MAX_ECHO, validation_message

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

    from headlight.model.served import Served

MAX_BYTES = 200_000
MAX_STEPS = 60
MAX_WORDS = 60
MAX_CHARACTERS = 2_000
"""Of a step without its block. Pairs of brackets take time that grows with the square of a text."""
MAX_FAULTS = 20
"""Faults of one file that are told; the last line counts the rest."""
MAX_SAID = 300
FENCE = "step"
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


class ChapterError(ValueError):
    """Faults of a chapter's file; the message has a line for each, with the file and the line."""

    def __init__(
        self, name: str, line: int, message: str, *more: tuple[int, str], n_more: int = 0
    ) -> None:
        self.faults = sorted([(line, message), *more])[:MAX_FAULTS]
        self.n_more = n_more + 1 + len(more) - len(self.faults)
        told = [(at, said[:MAX_SAID] + "…" * (len(said) > MAX_SAID)) for at, said in self.faults]
        if self.n_more > 0:
            told.append((told[-1][0], f"and {self.n_more:,} more faults"))
        super().__init__("\n".join(f"{name}, line {at}: {said}" for at, said in told))


class Source(Request):
    """A publication, or another page to read."""

    title: str = Field(min_length=1)
    url: str = Field(pattern="^https?://")


class Claim(Request):
    """A claim of a text, to be checked: a rule, and the result that it has to have."""

    rule: Annotated[Rule | Many, Field(discriminator="of")]
    says: Scalar | None = Field(None, description="The label or value that it gives.")
    above: float | None = None
    below: float | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Claim:
        if self.says is self.above is self.below is None:
            raise ValueError("a claim needs says, above or below")
        return self

    def fault(self, outcome: Outcome) -> str | None:
        """Return what is not as the claim says; None: it holds."""
        number = outcome.number
        label = outcome.label.split(" (token ")[0].strip("“”")
        said = (str(outcome.right), outcome.label, label)
        if self.says is not None and str(self.says) not in said:
            return f"the claim says {self.says!r}, and it is {outcome.label}"
        if self.above is not None and not (number is not None and number > self.above):
            return f"the claim says above {self.above:g}, and it is {number}"
        if self.below is not None and not (number is not None and number < self.below):
            return f"the claim says below {self.below:g}, and it is {number}"
        return None


class Question(Request):
    """Predict, then reveal: the answer is computed when the step opens."""

    asks: str = Field(min_length=1, max_length=400)
    by: Literal["token", "cell", "bar", "number", "one"] = Field(
        "one",
        description="What is chosen: a token, a cell of the drawing, a bar, a number, or "
        "one of several answers.",
    )
    answer: Rule
    choices: dict[str, str] = Field(
        default={}, description="What each of the values is called, as in {more: It rises}."
    )
    within: float | None = Field(None, gt=0, description="How far a number may be off.")
    because: str = Field("", max_length=600, description="Shown with the right answer; plain text.")
    covered: bool = Field(
        False, description="The drawing is covered until an answer is given or asked for."
    )
    then: dict[str, Any] = Field(
        default={},
        description="What can be opened once an answer was given: members of `opens`, in place "
        "of the step's.",
    )


class Highlight(Request):
    """A row, a column or a cell of the drawing, by the numbers of its tokens."""

    query: Number | None = Field(None, description="The row.")
    key: Number | None = Field(None, description="The column.")

    @model_validator(mode="after")
    def _is_somewhere(self) -> Highlight:
        if self.query is self.key is None:
            raise ValueError("a highlight needs a query, a key or both")
        return self


class Block(Request):
    """The YAML of a step."""

    opens: Opens = Opens()
    marks: str = Field("", max_length=200, description="Where to look, in a few words.")
    picture: str = Field(
        "", max_length=40, description="The drawing of an experiment that is brought into view."
    )
    highlights: list[Highlight] = Field(
        default=[], max_length=12, description="What is outlined in the drawing."
    )
    question: Question | None = None
    claims: list[Claim] = Field(default=[], max_length=20)

    @field_validator("opens", mode="before")
    @classmethod
    def _reads_a_link(cls, opens: Any) -> Any:
        return opened_by(opens) if isinstance(opens, str) else opens

    @model_validator(mode="after")
    def _opens_what_follows(self) -> Block:
        try:
            self.opened_then()
        except ValidationError as error:
            line = "; ".join(
                f"{'.'.join(map(str, e['loc']))}: {validation_message(e)}"
                for e in error.errors()[:MAX_FAULTS]
            )
            raise ValueError(f"question.then: {line}") from error
        return self

    def opened_then(self) -> Opens | None:
        """Return what can be opened once the question is answered; None: nothing else."""
        if self.question is None or not self.question.then:
            return None
        before = self.opens.model_dump(exclude_unset=True)
        merged = {**before, **self.question.then}
        for name in ("more", "knobs"):
            parts = [each for each in (before.get(name), self.question.then.get(name)) if each]
            if parts:
                merged[name] = {key: value for part in parts for key, value in part.items()}
        then = Opens(**merged)
        if (then.experiment is None) != (self.opens.experiment is None):
            raise ValueError("question.then: it stays on the page that the step opens")
        return then


class Step(Answer):
    """One step of a chapter."""

    title: str
    text: str = Field(description="Markdown.")
    html: str = Field(description="The same as HTML: paragraphs, lists, emphasis, code and links.")
    opens: Opens
    link: str = Field(description="The address that opens it, from the root of the server.")
    marks: str
    picture: str
    highlights: list[Highlight]
    question: Question | None
    then: Opens | None
    then_link: str | None = Field(description="The address of `then`.")
    claims: list[Claim]
    line: int = Field(description="Of the file, from 1.")
    question_line: int = Field(description="The line of the question, or that of the step.")
    claim_lines: list[int] = Field(description="The line of each claim.")


class FrontMatter(Request):
    """The YAML at the top of a chapter's file."""

    title: str = Field(min_length=1, max_length=120)
    about: str = Field("", max_length=400)
    order: float = Field(1000, description="Its place among the chapters.")
    sources: list[Source] = Field(default=[], max_length=30)
    next: str | None = Field(None, description="The id of the chapter to go on with.")
    finds: Found | None = Field(
        None, description="For any model: what is looked for in it, and written into the steps."
    )
    texts: dict[str, dict[str, Any]] = Field(
        default={}, description="Sets of texts by name, for claims about a model."
    )


class Chapter(Answer):
    """A chapter."""

    id: str
    title: str
    about: str
    order: float
    sources: list[Source]
    next: str | None
    finds: Found | None
    texts: dict[str, dict[str, Any]] = Field(
        default={}, description="Sets of texts by name, for claims about a model."
    )
    steps: list[Step]
    _written: tuple[str, str] = PrivateAttr(("", ""))

    @property
    def n_questions(self) -> int:
        """How many of its steps ask something."""
        return sum(step.question is not None for step in self.steps)

    def of_model(self, model: Served) -> Chapter:
        """Return the chapter with what it looks for as this model has it.

        Raises:
            ValueError: the model has nothing of the kind.
        """
        if self.finds is None:
            return self
        text, name = self._written
        return read_chapter(text, name, self.id, values_of(self.finds, model))


@dataclass(frozen=True)
class _File:
    name: str

    def fault(self, line: int, message: str) -> ChapterError:
        return ChapterError(self.name, line, message)

    def all_of(self, errors: list[ChapterError]) -> ChapterError:
        """Return the faults of several errors as one."""
        first, *more = [fault for error in errors for fault in error.faults]
        n_more = sum(error.n_more for error in errors)
        return ChapterError(self.name, *first, *more, n_more=n_more)

    def validated(self, form: type[Any], text: str, first: int) -> Any:
        """Return the YAML of a text that begins after line `first` as a model."""
        try:
            values = parse_yaml(text)
            node = yaml.compose(text, Loader=Loader)
        except (yaml.YAMLError, ValueError) as error:
            mark = getattr(error, "problem_mark", None)
            line = first + 1 + (min(mark.line, text.count("\n")) if mark else 0)
            problem = getattr(error, "problem", None) or error
            raise self.fault(line, f"the YAML cannot be read: {problem}") from error
        if not isinstance(values, dict):
            raise self.fault(first + 1, "here has to be YAML with names and values")
        try:
            return form(**values)
        except ValidationError as error:
            errors = error.errors(include_url=False)
            located = {_located(node, fault) for fault in errors[:MAX_FAULTS]}
            fault, *more = [(first + 1 + line, said) for line, said in located]
            n_more = max(len(errors) - MAX_FAULTS, 0)
            raise ChapterError(self.name, *fault, *more, n_more=n_more) from error
        except TypeError as error:
            raise self.fault(first + 1, "the names of the YAML have to be texts") from error


def read_chapter(
    text: str, name: str, identity: str, values: Mapping[str, str] | None = None
) -> Chapter:
    """Read a chapter.

    Args:
        text: of the file.
        name: of the file, for faults.
        identity: the chapter's id.
        values: of what it finds; None: of no model.

    Raises:
        ChapterError: the file breaks a rule.
    """
    file = _File(name)
    text = text.replace("\r\n", "\n")
    if len(text.encode(errors="replace")) > MAX_BYTES:
        raise file.fault(1, f"the file is larger than the {MAX_BYTES:,} bytes of a chapter")
    lines = text.split("\n")
    if lines[0].strip() != "---" or "---" not in (line.strip() for line in lines[1:]):
        raise file.fault(1, "a chapter begins with front matter between two lines of ---")
    end = next(at for at, line in enumerate(lines[1:], start=1) if line.strip() == "---")
    errors: list[ChapterError] = []
    front = steps = None
    try:
        front = file.validated(FrontMatter, "\n".join(lines[1:end]), 1)
        if front.finds is not None:
            lines = [filled(line, values) for line in lines]
    except ChapterError as error:
        errors.append(error)
    try:
        steps = _steps(file, lines, end + 1)
    except ChapterError as error:
        errors.append(error)
    if front is None or steps is None:
        raise file.all_of(errors)
    chapter = Chapter(
        id=identity, steps=steps, **front.model_dump(exclude={"sources"}), sources=front.sources
    )
    chapter._written = (text, name)
    return chapter


def _refuse_foreign(file: _File, tokens: Iterable[Token], first: int) -> None:
    """Refuse HTML and pictures in Markdown that begins after line `first`."""
    for token in tokens:
        line = first + 1 + (token.map or [0])[0]
        for each in (token, *(token.children or ())):
            if each.type in ("html_block", "html_inline"):
                written = each.content.strip()[:40]
                raise file.fault(line, f"HTML is not read, {written!r}; write Markdown")
            if each.type == "image":
                raise file.fault(line, "a chapter has no pictures; its steps open the page")


def _starts(file: _File, tokens: list[Any], lines: list[str], first: int) -> list[int]:
    """Return the lines, counted from `first`, at which steps begin."""
    headings = [token for token in tokens if token.type == "heading_open" and token.tag == "h2"]
    starts = [token.map[0] for token in headings if token.map]
    early = "\n".join(lines[first : first + starts[0]] if starts else lines[first:]).strip()
    if early:
        raise file.fault(first + 1, "text before the first step; a step begins with `## Name`")
    if not starts:
        raise file.fault(first, "the chapter has no step; a step begins with a line `## Name`")
    if len(starts) > MAX_STEPS:
        line = first + starts[MAX_STEPS] + 1
        raise file.fault(line, f"a chapter has at most {MAX_STEPS} steps")
    return starts


def _steps(file: _File, lines: list[str], first: int) -> list[Step]:
    """Return the steps of the lines from `first` on.

    The blocks of the whole file take time in proportion to it. What is in a block may not, so it is
    read step by step, once the step is known to be short.
    """
    from markdown_it import MarkdownIt

    reader = MarkdownIt("commonmark")
    tokens = reader.disable("inline").parse("\n".join(lines[first:]))
    reader.enable("inline")
    starts = _starts(file, tokens, lines, first)
    fences = [token for token in tokens if token.type == "fence" and token.info.strip() == FENCE]
    steps: list[Step] = []
    errors: list[ChapterError] = []
    for start, stop in zip(starts, [*starts[1:], len(lines) - first], strict=True):
        check()
        blocks = [
            (first + token.map[0], first + token.map[1], token.content)
            for token in fences
            if token.map and start <= token.map[0] < stop
        ]
        try:
            steps.append(_step(file, reader, lines, first + start, first + stop, blocks))
        except ChapterError as error:
            errors.append(error)
    if errors:
        raise file.all_of(errors)
    return steps


def _step(
    file: _File,
    reader: MarkdownIt,
    lines: list[str],
    start: int,
    stop: int,
    blocks: list[tuple[int, int, str]],
) -> Step:
    """Return the step of the lines from `start` to `stop`, with its block and where that lies."""
    line = start + 1
    if len(blocks) > 1:
        raise file.fault(blocks[1][0] + 1, "the step has a second block `step`")
    block = Block()
    places: dict[tuple[str | int, ...], int] = {}
    written = lines[start + 1 : stop]
    if blocks:
        begin, end, content = blocks[0]
        block = file.validated(Block, content, begin + 1)
        node = yaml.compose(content, Loader=Loader)
        paths = [("question",), *(("claims", at) for at in range(len(block.claims)))]
        places = {path: begin + 2 + _line_of(node, path)[0] for path in paths}
        written = [*lines[start + 1 : begin], *lines[end:stop]]
    text = "\n".join(written).strip()
    n_characters = len(text) + len(lines[start])
    if n_characters > MAX_CHARACTERS:
        most = f"at most {MAX_CHARACTERS:,} are read next to a drawing"
        raise file.fault(line, f"the step has {n_characters:,} characters; {most}")
    _refuse_foreign(file, reader.parse("\n".join(lines[start:stop])), start)
    n_words = len(text.split())
    if n_words > MAX_WORDS:
        most = f"at most {MAX_WORDS} are read next to a drawing"
        raise file.fault(line, f"the step has {n_words} words; {most}")
    then = block.opened_then()
    return Step(
        **{name: getattr(block, name) for name in Block.model_fields},
        title=lines[start].lstrip("#").strip(),
        text=text,
        html=rendered(text),
        link=link_of(block.opens),
        line=line,
        then=then,
        then_link=None if then is None else link_of(then),
        question_line=places.get(("question",), line),
        claim_lines=[places["claims", at] for at in range(len(block.claims))],
    )


def rendered(text: str) -> str:
    """Render Markdown as HTML, tags in it as text, without pictures."""
    from markdown_it import MarkdownIt

    reader = MarkdownIt("commonmark", {"html": False}).disable("image")
    return str(reader.render(text))


PARTS = address_parts()


def link_of(opens: Opens) -> str:
    """Return the address of what a step opens, as the page writes it."""
    if opens.experiment is not None:
        knobs = {name: _in_link(value) for name, value in opens.knobs.items()}
        return f"/experiments#{urlencode({'experiment': opens.experiment, **knobs})}"
    given = {name: getattr(opens, name) for name in PARTS}
    given = {name: value for name, value in given.items() if not _is_standard(name, value)}
    return f"/#{urlencode({name: _in_link(v) for name, v in {**given, **opens.more}.items()})}"


def _is_standard(name: str, value: Any) -> bool:
    """Return True if the page takes this value where the address says nothing."""
    return value is None or value is False or value in PARTS[name].get("values", [""])[:1]


def _in_link(value: Any) -> str:
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, list):
        is_flat = all(isinstance(entry, int | float | str) for entry in value)
        return ",".join(map(str, value)) if is_flat else json.dumps(value)
    return str(value)


def opened_by(link: str) -> dict[str, Any]:
    """Return what a link of the address bar opens, as the members of `Opens`.

    Raises:
        ValueError: it is no link of a page of Headlight.
    """
    if "#" not in link:
        raise ValueError("a link has a # with what it opens; copy it from the address bar")
    before, _, fragment = link.partition("#")
    pairs = dict(parse_qsl(fragment, keep_blank_values=True))
    for name in ("chapter", "chapter_step"):
        pairs.pop(name, None)
    if before.rstrip("/").endswith("/experiments") or "experiment" in pairs:
        return {
            "experiment": pairs.pop("experiment", ""),
            "knobs": {name: _from_link(value) for name, value in pairs.items()},
        }
    opens: dict[str, Any] = {}
    for name, value in pairs.items():
        if name not in PARTS:
            opens.setdefault("more", {})[name] = _from_link(value)
        elif PARTS[name]["kind"] in ("text", "choice"):
            opens[name] = value
        elif PARTS[name]["kind"] == "flag":
            opens[name] = value == "1"
        else:
            opens[name] = _from_link(value)
    return opens


def _from_link(value: str) -> Any:
    if value.startswith("["):
        try:
            return json.loads(value)
        except RecursionError:
            raise ValueError("a list of the link nests too deeply") from None
    if "," in value and re.fullmatch(r"[\d.,\s+-]+", value):
        return [_from_link(part) for part in value.split(",")]
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return value


def _located(node: yaml.Node | None, fault: Any) -> tuple[int, str]:
    """Return the line, from 0, of one of pydantic's errors, and the error in words."""
    line, path = _line_of(node, fault["loc"])
    if fault["type"] == "extra_forbidden":
        *before, name = path
        name = name[:MAX_ECHO]
        known = difflib.get_close_matches(name, NAMES, n=1)
        where = f" in {'.'.join(before)}" if before else ""
        return line, f"there is no {name!r}{where}" + (f"; {known[0]!r}?" if known else "")
    if fault["type"] == "union_tag_not_found":
        said = "it has to say what it is, as in {of: strongest_key}"
    elif fault["type"] == "union_tag_invalid":
        said = f"`of` is one of {fault['ctx']['expected_tags']}"
    else:
        said = validation_message(fault)
    return line, f"{'.'.join(path)}: {said}" if path else said


_RULES, *_ = get_args(Rule)
NAMES = sorted(
    name
    for form in (
        FrontMatter,
        Source,
        Block,
        Question,
        Claim,
        Highlight,
        Opens,
        Many,
        *get_args(_RULES),
    )
    for name in form.model_fields
)


def _line_of(node: yaml.Node | None, path: tuple[int | str, ...]) -> tuple[int, list[str]]:
    """Return the line, from 0, of the deepest part of a path in YAML, and its names."""
    line, names = 0, []
    for part in path:
        child = None
        if isinstance(node, yaml.MappingNode):
            pairs = {key.value: (key, value) for key, value in node.value}
            if part in pairs:
                key, child = pairs[str(part)]
                line = key.start_mark.line
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int):
            child = node.value[part] if part < len(node.value) else None
            line = child.start_mark.line if child is not None else line
        if child is None:  # a kind of rule, or something that is missing
            if part == path[-1]:
                names.append(str(part))
            continue
        names.append(str(part))
        node = child
    return line, names
