"""`headlight cluster`, options and work: replicas of the server on a cluster of Ray."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from pathlib import Path
from typing import Annotated, Any

from headlight.commands.output import say
from headlight.commands.parsing import Commands, chosen_models, option, settings_with_models
from headlight.model.extras import needed_by

WAIT_SECONDS = 0.5

RETRY_ON = "conn-failure empty-response\n    option http-buffer-request"
"""When HAProxy sends a request to another replica, which it does only with one that it has whole.

Ray copies the variable into the configuration, which has no other place for the option.
"""

app = Commands(
    name="cluster", help="Serve from several processes or machines, as replicas behind one address."
)


@app.command()
def serve(
    host: Annotated[
        str, option("Address to listen on; 0.0.0.0 for every address of this machine.", "ADDRESS")
    ] = "127.0.0.1",
    port: Annotated[int, option("Port.", "PORT", min=1, max=65535)] = 8000,
    replicas: Annotated[int, option("Replicas, or the fewest.", "N", min=1, max=1000)] = 2,
    max_replicas: Annotated[
        int, option("The most replicas; 0: their number is fixed.", "N", min=0, max=1000)
    ] = 0,
    requests: Annotated[
        float,
        option("With --max-replicas: more requests in flight for each start another.", "N", min=1),
    ] = 8,
    cpus: Annotated[float, option("Cores that are reserved for a replica.", "N", min=0)] = 1,
    gpus: Annotated[float, option("GPUs that are reserved for a replica.", "N", min=0)] = 0,
    default_model: Annotated[
        list[str] | None, option("As in `headlight serve`.", "ID", "stories", name="--model")
    ] = None,
    models_dir: Annotated[
        Path | None, option("A directory with more models, one folder each.", "DIR")
    ] = None,
) -> None:
    """Start replicas of the server on this machine, or on the cluster that RAY_ADDRESS names.

    It does not matter which replica answers; one that dies is replaced, and its requests are sent
    again. SIGHUP replaces all of them, one after another.

    All other settings are those of `headlight serve`, as environment variables.
    """
    settings = settings_with_models(
        host=host, port=port, models_dir=models_dir, **chosen_models(default_model)
    )
    from headlight.cluster import Arguments

    arguments = Arguments(
        replicas=replicas,
        max_replicas=max_replicas,
        requests_per_replica=requests,
        cpus=cpus,
        gpus=gpus,
        settings=_variables(settings.answering_to(host)),
    )
    run(arguments, host, port)


def _variables(settings: Any) -> dict[str, str]:
    """Return the settings that differ from the defaults, as the replicas' variables."""
    from pydantic import SecretStr

    from headlight.settings import Settings, variable_of

    plain: dict[str, str] = {}
    for name, field in Settings.model_fields.items():
        value = getattr(settings, name)
        if value == field.default or value is None:
            continue
        if isinstance(value, tuple):
            value = ",".join(
                item.get_secret_value() if isinstance(item, SecretStr) else str(item)
                for item in value
            )
        plain[variable_of(name)] = str(value)
    return plain


def _renewed(arguments: Any) -> Any:
    """Return arguments of another version, so that Ray replaces every replica."""
    changed = {**arguments.settings, "RENEWED_AT": str(time.time_ns())}
    return arguments.model_copy(update={"settings": changed})


def run(arguments: Any, host: str, port: int) -> None:
    """Run the replicas until a signal comes.

    Raises:
        ImportError: Ray Serve is not installed.
        OSError: the port is taken.
    """
    is_here = not os.environ.get("RAY_ADDRESS")
    if is_here:  # its processes inherit the environment of this one
        os.environ.setdefault("RAY_SERVE_HAPROXY_RETRY_ON", RETRY_ON)
    from headlight.cluster import NEEDED, app

    with needed_by(*NEEDED):
        import ray
        from ray import serve as ray_serve
    with socket.socket() as probe:  # Ray would say so in its logs only
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise OSError(f"cannot listen on {host}:{port}: {why}; choose another port") from error
    options: dict[str, Any] = {"log_to_driver": False, "namespace": "headlight"}
    if is_here:
        most = max(arguments.replicas, arguments.max_replicas)
        cores = max(os.cpu_count() or 1, int(most * arguments.cpus) + 1)
        options |= {"address": "local", "num_cpus": cores, "include_dashboard": False}
    ray.init(**options)
    stopped, renewed = threading.Event(), threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, lambda *_: renewed.set())
    try:
        ray_serve.start(proxy_location="EveryNode", http_options={"host": host, "port": port})
        ray_serve.run(app(arguments), name="headlight", route_prefix="/")
        say(f"Headlight is at http://{host}:{port}: {arguments.replicas} replicas. Ctrl-C stops.")
        while not stopped.wait(WAIT_SECONDS):
            if renewed.is_set():
                renewed.clear()
                ray_serve.run(app(_renewed(arguments)), name="headlight", route_prefix="/")
                say("All replicas are new.")
    finally:
        ray_serve.shutdown()
        ray.shutdown()
