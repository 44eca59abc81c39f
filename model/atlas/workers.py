"""Read the shards of an atlas with Ray Data: one actor with the model for each core or GPU.

Without `RAY_ADDRESS` a cluster of this machine is started, and ends with this process; with it the
actors run wherever the cluster has room, and the folder of the atlas must be shared. An actor that
dies is started again by Ray, and its shard is read again.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson

from headlight.model.atlas.build import ReadShards
from headlight.model.atlas.ranges import Range
from headlight.model.atlas.shards import Settings, write_shard
from headlight.model.corpus import CorpusError
from headlight.model.extras import needed_by
from headlight.model.served import Served

BY = "reading by other processes, which --workers 0 does without,"
ADDRESS = "RAY_ADDRESS"


class WorkerError(RuntimeError):
    """A shard could not be read; the message gives the file and the reason."""


def read_with_ray(
    folder: Path,
    load: Callable[..., Served],
    settings: Settings,
    out: Path,
    *,
    n_workers: int,
    device: str = "cpu",
) -> ReadShards:
    """Return a reader of shards for `build` that shares them among actors of Ray.

    Args:
        folder: of the model.
        load: reads the folder to a `device`; Ray pickles it.
        settings: of the atlas.
        out: the folder of the atlas.
        n_workers: the number of actors.
        device: of each actor: ``cpu``, or ``cuda`` for a GPU each.

    Raises:
        ImportError: Ray is not installed.
    """
    with needed_by(BY, "Ray"):
        import ray  # noqa: F401

    def read(parts: Sequence[Range]) -> Iterable[dict[str, Any]]:
        if not parts:
            return
        with_gpu = {"num_gpus": 1} if device.startswith("cuda") else {}
        with Cluster(n_workers):
            import ray.data

            logging.getLogger("ray.data").setLevel(logging.ERROR)
            context = ray.data.DataContext.get_current()
            context.enable_progress_bars = False
            rows = [{"part": orjson.dumps(asdict(part))} for part in parts]
            dataset = ray.data.from_items(rows, override_num_blocks=len(rows)).map_batches(
                _Actor,
                fn_constructor_kwargs={
                    "folder": folder.resolve(),
                    "load": load,
                    "settings": asdict(settings),
                    "out": str(out.resolve()),
                    "device": device,
                },
                batch_size=1,
                compute=ray.data.ActorPoolStrategy(size=n_workers),
                num_cpus=1,
                **with_gpu,
            )
            for row in dataset.iter_rows():
                result = orjson.loads(row["result"])
                if error := result.get("error"):
                    raise (CorpusError if result["is_text"] else WorkerError)(error)
                yield result

    return read


class Cluster:
    """A connection to Ray for the length of a block."""

    def __init__(self, n_workers: int) -> None:
        self.n_workers = n_workers

    def __enter__(self) -> None:
        os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
        os.environ.setdefault("RAY_DATA_DISABLE_PROGRESS_BARS", "1")
        import ray

        logging.getLogger("ray").setLevel(logging.ERROR)
        if os.environ.get(ADDRESS):
            ray.init(log_to_driver=False, logging_level=logging.ERROR)
            return
        # One more core for what schedules, so that no actor waits for it.
        ray.init(
            address="local",
            num_cpus=self.n_workers + 1,
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
            object_store_memory=128 * 2**20,
        )

    def __exit__(self, *_: object) -> None:
        import ray

        ray.shutdown()


class _Actor:
    """A model in a process of Ray; called with a batch of one range."""

    def __init__(
        self,
        folder: Path,
        load: Callable[..., Served],
        settings: dict[str, Any],
        out: str,
        device: str,
    ) -> None:
        import torch

        torch.set_num_threads(1)
        self.checkpoint = load(folder, device=device)
        self.settings = Settings(**settings)
        self.out = Path(out)

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[bytes]]:
        return {"result": [orjson.dumps(result) for result in self._results(batch["part"])]}

    def _results(self, parts: Iterable[bytes]) -> Iterator[dict[str, Any]]:
        for part in parts:
            try:
                done = write_shard(
                    self.checkpoint, Range(**orjson.loads(part)), self.settings, self.out
                )
            except CorpusError as error:
                yield {"error": str(error), "is_text": True}
            except OSError as error:
                yield {"error": f"{error.filename}: {error.strerror}", "is_text": False}
            else:
                yield {"number": done["number"], "tokens": done["tokens"]}
