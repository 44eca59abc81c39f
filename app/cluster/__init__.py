"""Headlight on a cluster of Ray: replicas of the server behind one address.

    headlight cluster serve --replicas 2          # on this machine
    serve run headlight.cluster:app replicas=2    # the same, by Ray's own command
    serve deploy cluster.yaml                     # on a cluster, KubeRay's too

Each replica is the application of `headlight.main` with its own models, queue and cache. Settings
are those of the environment; `settings` of the arguments overrides them. Replicas share requests of
traces, quotas and metrics (`headlight.cluster.hub`); two layers in the proxy send a request to the
replica that has its trace, and again if a replica dies (`headlight.cluster.proxy`).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field

from headlight.cluster.proxy import CALLBACK, LAYERS
from headlight.model.extras import needed_by
from headlight.settings import Settings

if TYPE_CHECKING:
    from fastapi import FastAPI

NEEDED = ("a cluster", "Ray Serve")
ROOM = 64
"""Requests that a replica takes beyond its queue: answers from its cache, pages, streams."""

# The proxies are started by whichever process comes first, and read it when they start.
os.environ.setdefault(CALLBACK, LAYERS)


class Arguments(BaseModel):
    """The replicas of a cluster and their resources."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    replicas: int = Field(2, ge=1, le=1000, description="Replicas, or the fewest.")
    max_replicas: int = Field(
        0, ge=0, le=1000, description="The most replicas; 0: their number is fixed."
    )
    requests_per_replica: float = Field(
        8, gt=0, description="With max_replicas: more requests in flight start another replica."
    )
    cpus: float = Field(1, ge=0, description="Cores that are reserved for a replica.")
    gpus: float = Field(0, ge=0, description="GPUs that are reserved for a replica.")
    settings: dict[str, str] = Field({}, description="Variables HEADLIGHT_… of the replicas.")


def app(arguments: Arguments) -> Any:
    """Return the application for Ray Serve.

    Raises:
        ImportError: Ray Serve is not installed.
        ValueError: a setting is wrong.
    """
    with needed_by(*NEEDED):
        from ray import serve
    settings = Settings()
    options: dict[str, Any] = {
        "num_cpus": arguments.cpus,
        "num_gpus": arguments.gpus,
        "runtime_env": {"env_vars": arguments.settings},
    }
    if arguments.max_replicas > arguments.replicas:
        number: dict[str, Any] = {
            "autoscaling_config": {
                "min_replicas": arguments.replicas,
                "max_replicas": arguments.max_replicas,
                "target_ongoing_requests": arguments.requests_per_replica,
            }
        }
    else:
        number = {"num_replicas": arguments.replicas}
    deployment = serve.deployment(
        name="headlight",
        ray_actor_options=options,
        max_ongoing_requests=settings.queue_length + settings.max_streams + ROOM,
        graceful_shutdown_timeout_s=settings.shutdown_seconds + settings.work_seconds,
        health_check_period_s=2,
        **number,
    )
    return deployment(serve.ingress(build)(_replica_class())).bind()


def build() -> FastAPI:
    """Return the application of a replica; it is called in the replica."""
    from ray import serve

    from headlight.cluster.hub import HubClient
    from headlight.main import create_app
    from headlight.process import keep_heap_compact

    keep_heap_compact()
    replica = serve.get_replica_context().replica_id.unique_id
    application = create_app(Settings(), HubClient(replica))
    _APPLICATIONS.append(application)
    return application


_APPLICATIONS: list[FastAPI] = []


def _replica_class() -> type:
    from ray import serve

    class Replica:
        """A replica: Ray asks it whether it is healthy, and routes by the name that it holds."""

        async def __init__(self) -> None:  # type: ignore[misc]  # as Ray takes it
            await self.hold(serve.get_replica_context().replica_id.unique_id)

        @serve.multiplexed(max_num_models_per_replica=1)  # type: ignore[untyped-decorator]
        async def hold(self, name: str) -> str:
            """Announce a name under which this replica is found."""
            return name

        def check_health(self) -> None:
            """Raise if the engine has failed, so that Ray replaces the replica."""
            for application in _APPLICATIONS:
                services = application.state.services
                if services.has_failed:
                    raise RuntimeError(services.why_not_ready)

    return Replica
