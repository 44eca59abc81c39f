"""The command `headlight serve`.

Every option is a setting and overrides its environment variable. The server is imported when the
command runs, so that `--help` does not wait for PyTorch.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from headlight.commands.options import USAGE_ERROR, check_models_dir, fail, settings_of

LogLevel = Literal["error", "warning", "info", "debug"]
LogFormat = Literal["text", "json"]

LISTENING = "Listening"
MODELS = "Models and device"
LOGGING = "Logging"

EPILOG = (
    "All other settings are environment variables: `headlight limits` lists the limits, "
    "`headlight settings` the rest: host names, API keys, proxies."
)


def _option(setting: str, panel: str, what: str, **given: Any) -> Any:
    """An option that overrides the environment variable of a setting."""
    variable = f"HEADLIGHT_{setting.upper()}"
    return typer.Option(help=what, envvar=variable, rich_help_panel=panel, **given)


def serve(
    host: Annotated[
        str,
        _option(
            "host",
            LISTENING,
            "Address to listen on; 0.0.0.0 or :: for every address of this machine. Host names "
            "the server is reached by must be listed in HEADLIGHT_ALLOWED_HOSTS.",
            metavar="ADDRESS",
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int,
        _option("port", LISTENING, "Port; 0 takes a free one.", min=0, max=65535, metavar="PORT"),
    ] = 8000,
    workers: Annotated[
        int | None,
        _option(
            "workers",
            LISTENING,
            "Processes that share the port, each with its own models and cache: a trace that one "
            "keeps is not found by id in another.",
            min=1,
            metavar="N",
            show_default="1",
        ),
    ] = None,
    model: Annotated[
        str | None,
        _option(
            "default_model",
            MODELS,
            "The model that answers a request that names none.",
            metavar="ID",
            show_default="stories",
        ),
    ] = None,
    device: Annotated[
        str | None,
        _option("device", MODELS, "auto, cpu, cuda or mps.", metavar="NAME", show_default="auto"),
    ] = None,
    precision: Annotated[
        str | None,
        _option(
            "precision", MODELS, "float32 or bfloat16.", metavar="NAME", show_default="float32"
        ),
    ] = None,
    threads: Annotated[
        int | None,
        _option(
            "threads",
            MODELS,
            "CPU threads of a forward pass; 0: PyTorch's default.",
            min=0,
            metavar="N",
            show_default="1",
        ),
    ] = None,
    models_dir: Annotated[
        Path | None,
        _option("models_dir", MODELS, "A folder with more models, one folder each.", metavar="DIR"),
    ] = None,
    log_level: Annotated[
        LogLevel | None,
        _option(
            "log_level",
            LOGGING,
            "Level; info adds a line for every request.",
            show_default="warning",
        ),
    ] = None,
    log_format: Annotated[
        LogFormat | None,
        _option(
            "log_format",
            LOGGING,
            "Lines for people, or one JSON object a line.",
            show_default="text",
        ),
    ] = None,
) -> None:
    """Start the server: the page, the API and its documentation."""
    from headlight import server
    from headlight.errors import Problem

    settings = settings_of(
        host=host,
        port=port,
        workers=workers,
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
        with server.listen(settings.host, settings.port) as listener:
            server.serve(listener, settings.host, settings)
    except Problem as problem:  # the default model
        fail(problem.detail, code=USAGE_ERROR if problem.status_code == 404 else 1)
    except (OSError, ValueError, server.EngineLost) as error:
        fail(str(error))
