"""Ask a cluster of replicas while one of them is killed, and count what is wrong.

    python -m tests.load.replicas http://127.0.0.1:8000 --seconds 20 --kill 8

Every answer is compared with that of the same request before the load began.
"""

import argparse
import asyncio
import json
import os
import signal
import subprocess
from collections import Counter
from time import perf_counter
from typing import Any

import httpx

TEXTS = [f"The old king number {n} saw a dog near the red house." for n in range(64)]


def replica_pids() -> list[int]:
    """Return the processes of the replicas on this machine."""
    listed = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True)
    lines = (line.split(None, 1) for line in listed.stdout.splitlines()[1:])
    return [int(pid) for pid, name in lines if name.startswith("ray::ServeReplica")]


def _numbers(content: bytes) -> Any:
    answer = json.loads(content)
    answer.pop("timings", None)
    return answer


def _differs(answer: Any, wanted: Any) -> bool:
    """Return True if two answers differ by more than a batch's rounding."""
    if isinstance(wanted, float) and isinstance(answer, int | float):
        return abs(answer - wanted) > 1e-4
    if isinstance(wanted, list) and isinstance(answer, list):
        return len(answer) != len(wanted) or any(map(_differs, answer, wanted))
    if isinstance(wanted, dict) and isinstance(answer, dict):
        return answer.keys() != wanted.keys() or any(
            _differs(answer[name], wanted[name]) for name in wanted
        )
    return bool(answer != wanted)


class Load:
    """The load and its results.

    Args:
        address: of the cluster.
        n_clients: that ask at one time.
        unique: whether every request is for another text, so that none is cached.
    """

    def __init__(self, address: str, n_clients: int = 64, *, unique: bool = False) -> None:
        self.address, self.n_clients, self.unique = address, n_clients, unique
        self.statuses: Counter[str] = Counter()
        self.wrong = 0
        self.seconds: list[float] = []
        self._count = 0

    async def run(self, seconds: float, kill_after: float | None = None) -> dict[str, Any]:
        """Ask for some seconds, and return what came."""
        limits = httpx.Limits(max_connections=self.n_clients + 4)
        async with httpx.AsyncClient(base_url=self.address, timeout=60, limits=limits) as client:
            wanted = {}
            if not self.unique:
                for text in TEXTS:
                    response = await client.post("/api/v1/trace", json={"text": text})
                    wanted[text] = _numbers(response.raise_for_status().content)
            began = perf_counter()
            clients = [
                asyncio.create_task(self._ask(client, number, began + seconds, wanted))
                for number in range(self.n_clients)
            ]
            if kill_after is not None:
                await asyncio.sleep(kill_after)
                os.kill(replica_pids()[0], signal.SIGKILL)
            await asyncio.gather(*clients)
            took = perf_counter() - began
        ordered = sorted(self.seconds)
        return {
            "clients": self.n_clients,
            "answers": dict(self.statuses),
            "wrong": self.wrong,
            "per_second": round(self.statuses["200"] / took, 1),
            "p50_ms": round(1e3 * ordered[len(ordered) // 2]),
            "p99_ms": round(1e3 * ordered[len(ordered) * 99 // 100]),
        }

    async def _ask(
        self, client: httpx.AsyncClient, number: int, until: float, wanted: dict[str, Any]
    ) -> None:
        while perf_counter() < until:
            self._count += 1
            text = TEXTS[(number + self._count) % len(TEXTS)]
            if self.unique:
                text = f"{text[:-1]} and the {self._count}th one."
            began = perf_counter()
            try:
                response = await client.post("/api/v1/trace", json={"text": text})
            except httpx.HTTPError as error:
                self.statuses[type(error).__name__] += 1
                continue
            self.seconds.append(perf_counter() - began)
            self.statuses[str(response.status_code)] += 1
            if response.status_code == 200 and wanted:
                is_checked = self._count % 8 == 0  # decoding takes the processor from the replicas
                self.wrong += is_checked and _differs(_numbers(response.content), wanted[text])


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--kill", type=float, help="kill -9 a replica after so many seconds")
    parser.add_argument("--unique", action="store_true", help="no request is repeated")
    asked = parser.parse_args()
    load = Load(asked.address, asked.clients, unique=asked.unique)
    print(json.dumps(asyncio.run(load.run(asked.seconds, asked.kill))))  # noqa: T201


if __name__ == "__main__":
    main()
