"""The command `headlight serve`: what it may be told, and where each of it may stand.

Every option is a setting, and every setting an environment variable; what is given here wins. What
the command needs is imported when it runs, so that `--help` does not wait for PyTorch.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from headlight.commands.options import check_models_dir, fail, settings_of

LogLevel = Literal["error", "warning", "info", "debug"]
LogFormat = Literal["text", "json"]

WHERE = "Where it listens"
WHAT = "What it runs"
LOGS = "What it logs"

EPILOG = (
    "Everything else is told by environment variables: `headlight limits` lists the limits, "
    "`headlight settings` the rest: host names, API keys, proxies, rate."
)


def _option(setting: str, panel: str, what: str, **given: Any) -> Any:
    """An option that the variable of a setting stands in for."""
    variable = f"HEADLIGHT_{setting.upper()}"
    return typer.Option(help=what, envvar=variable, rich_help_panel=panel, **given)


def serve(
    host: Annotated[
        str,
        _option(
            "host",
            WHERE,
            "Address to listen on; 0.0.0.0 or :: for every one of this machine. A server that is "
            "reached by a name of its own answers to it once HEADLIGHT_ALLOWED_HOSTS names it.",
            metavar="ADDRESS",
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int, _option("port", WHERE, "Port; 0 takes a free one.", min=0, max=65535)
    ] = 8000,
    model: Annotated[
        str | None,
        _option(
            "default_model",
            WHAT,
            "The model that answers when a request names none.",
            metavar="ID",
            show_default="stories",
        ),
    ] = None,
    device: Annotated[
        str | None,
        _option("device", WHAT, "auto, cpu, cuda or mps.", metavar="NAME", show_default="auto"),
    ] = None,
    precision: Annotated[
        str | None,
        _option("precision", WHAT, "float32 or bfloat16.", metavar="NAME", show_default="float32"),
    ] = None,
    threads: Annotated[
        int | None,
        _option(
            "threads",
            WHAT,
            "CPU threads of a forward pass; 0: as many as PyTorch likes.",
            min=0,
            show_default="1",
        ),
    ] = None,
    models_dir: Annotated[
        Path | None,
        _option("models_dir", WHAT, "A folder with more models, one folder each.", metavar="DIR"),
    ] = None,
    log_level: Annotated[
        LogLevel | None,
        _option(
            "log_level",
            LOGS,
            "How much; info is a line for every request.",
            show_default="warning",
        ),
    ] = None,
    log_format: Annotated[
        LogFormat | None,
        _option(
            "log_format",
            LOGS,
            "Lines for people, or one JSON object a line.",
            show_default="text",
        ),
    ] = None,
) -> None:
    """Start the server: the page, the API and its documentation."""
    from headlight.server import run

    settings = settings_of(
        host=host,
        port=port,
        default_model=model,
        device=device,
        precision=precision,
        threads=threads,
        models_dir=models_dir,
        log_level=log_level,
        log_format=log_format,
    )
    check_models_dir(settings)
    try:
        with run.listen(settings.host, settings.port) as listener:
            run.serve(listener, settings.host, settings)
    except (OSError, ValueError, run.EngineLost) as error:
        fail(str(error))
