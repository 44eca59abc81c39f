"""The options that are made from the fields of a request."""

import json
from typing import Literal

import pytest
import typer
from typer.testing import CliRunner

from headlight.commands.parsing import Commands
from headlight.commands.requests import flags_of, given, members_of, of_request
from headlight.forms import Request, option
from headlight.schemas.circuits import CircuitRequest
from headlight.schemas.generation import GenerateRequest
from headlight.schemas.traces import TraceRequest

FOR_PROGRAMS = {
    TraceRequest: {"ids", "messages", "text"},
    GenerateRequest: {
        *("ids", "messages", "text", "forced", "skip", "n_alternatives"),
        *("layers", "heads", "capture"),
    },
    CircuitRequest: {"pairs", "edges"},
}


class Inner(Request):
    """Options in a request."""

    unit: Literal["bits", "nats"] = option("bits", "The unit.")


class Form(Request):
    """A request."""

    count: int = option(3, "A number.", flag="--number")
    share: float | None = option(None, "A share.")
    names: list[str] | None = option(None, "Names.")
    is_shown: bool = option(False, "Shown.")
    is_whole: bool = option(True, "Whole.", help="Not whole.")
    pairs: list[dict[str, int]] = option([], "Pairs.")
    hidden: str = option("", flag=None)
    inner: Inner | None = option(None, "Inner options.")


app = Commands()


@app.command(cls=of_request(f"{__name__}:Form"))
def show(ctx: typer.Context, share: float = 0.5) -> None:
    typer.echo(json.dumps([share, given(ctx), flags_of(ctx)["count"]]))


@pytest.mark.parametrize(
    ("words", "members"),
    [
        ("", {}),
        ("--number 0", {"count": 0}),
        ("--names a --names b", {"names": ["a", "b"]}),
        ("--is-shown --no-is-whole", {"is_shown": True, "is_whole": False}),
        ('--pairs [{"a":1}]', {"pairs": [{"a": 1}]}),
        ("--inner.unit nats", {"inner": {"unit": "nats"}}),
    ],
)
def test_the_values_that_are_given_are_members_of_the_request(words, members):
    result = CliRunner().invoke(app, words.split())
    assert json.loads(result.stdout) == [0.5, members, "--number"]
    Form.model_validate(members)


@pytest.mark.parametrize("words", ["--hidden a", "--count 1", "--pairs [", "--share a"])
def test_what_the_request_does_not_have_is_a_usage_error(words):
    assert CliRunner().invoke(app, words.split()).exit_code == 2


@pytest.mark.parametrize("form", FOR_PROGRAMS)
def test_the_command_line_has_every_field_that_is_not_for_programs(form):
    named = {member.path[0] for member in members_of(form)}
    assert form.model_fields.keys() - named == FOR_PROGRAMS[form]
