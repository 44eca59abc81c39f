"""`headlight serve`: the server, on this machine."""

from __future__ import annotations

import gc
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from headlight.commands.parsing import (
    USAGE_ERROR,
    Commands,
    SettingsCommand,
    chosen_models,
    fail,
    option,
    settings_with_models,
)
from headlight.process import keep_heap_compact, load_early

app = Commands()

_OTHER = (
    "All other settings are environment variables: `headlight limits` lists the limits, "
    "`headlight settings` the rest: host names, API keys, proxies."
)

_listening = partial(option, panel="Listening")
_models = partial(option, panel="Models and device")
_logging = partial(option, panel="Logging")


@app.command(cls=SettingsCommand, epilog=_OTHER)
def serve(
    host: Annotated[
        str,
        _listening(
            "Address to listen on; 0.0.0.0 or :: for every address of this machine. Host names "
            "the server is reached by must be listed in HEADLIGHT_ALLOWED_HOSTS.",
            "ADDRESS",
        ),
    ] = "127.0.0.1",
    port: Annotated[int, _listening("Port; 0 takes a free one.", "PORT", min=0, max=65535)] = 8000,
    root_path: Annotated[
        str | None, _listening("Path that a proxy has the server under, as /lens.", "PATH")
    ] = None,
    workers: Annotated[
        int | None,
        _listening(
            "Processes that share the port, each with its own models and cache: a trace that one "
            "keeps is not found by id in another.",
            "N",
            "1",
            min=1,
        ),
    ] = None,
    default_model: Annotated[
        list[str] | None,
        _models(
            "The model that answers a request that names none: an id, or a folder as ./folder; "
            "repeat it for more folders.",
            "ID",
            "stories",
            name="--model",
        ),
    ] = None,
    device: Annotated[str | None, _models("auto, cpu, cuda or mps.", "NAME", "auto")] = None,
    precision: Annotated[str | None, _models("float32 or bfloat16.", "NAME", "float32")] = None,
    threads: Annotated[
        int | None, _models("CPU threads of a forward pass; 0: PyTorch's default.", "N", "1", min=0)
    ] = None,
    models_dir: Annotated[
        Path | None, _models("A directory with more models, one folder each.", "DIR")
    ] = None,
    log_level: Annotated[
        Literal["error", "warning", "info", "debug"] | None,
        _logging("Level; info adds a line for every request.", None, "warning"),
    ] = None,
    log_format: Annotated[
        Literal["text", "json"] | None,
        _logging("Lines for people, or one JSON object a line.", None, "text"),
    ] = None,
) -> None:
    """Start the server: the page, the API and its documentation."""
    options = locals() | chosen_models(default_model)
    gc.disable()  # the imports take a fifth less time; the application enables it when it starts
    keep_heap_compact()
    load_early()
    settings = settings_with_models(**options)
    from headlight import server
    from headlight.problems import Problem

    try:
        with server.listen(settings.host, settings.port) as listener:
            server.serve(listener, settings.host, settings)
    except Problem as problem:  # the default model
        fail(problem.detail, code=USAGE_ERROR if problem.status_code == 404 else 1)
    except (OSError, ValueError, server.EngineLost) as error:
        fail(str(error))
    finally:
        gc.enable()
