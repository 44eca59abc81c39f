"""The container image, built and run by Docker, Podman or Buildah, whichever works here.

Buildah needs no engine, so it runs where the other two cannot. It isolates a process by chroot
only: the network is the machine's, and the file system can be written to.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from socket import create_server
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import httpx

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
READY_SECONDS = 120
STOP_SECONDS = 15


def output_of(*words: object) -> str:
    """Return the standard output of a command; its errors go to this process's."""
    return subprocess.run([*map(str, words)], check=True, stdout=subprocess.PIPE, text=True).stdout


def default_of(argument: str) -> str:
    """Return the default of an ARG of the Dockerfile."""
    (default,) = re.findall(rf"^ARG {argument}=(\S+)$", DOCKERFILE, re.MULTILINE)
    return default


def find_builder() -> str:
    """Name the first builder that works here; install Buildah if none does."""
    for name in ("docker", "podman", "buildah"):
        if (
            shutil.which(name)
            and not subprocess.run([name, "info"], capture_output=True).returncode
        ):
            return name
    subprocess.run([ROOT / ".ci" / "apt-install", "buildah"], check=True)
    return "buildah"


def build(builder: str, tag: str, *, extras: str = "", context: Path = ROOT) -> str:
    """Build the image and return what the builder printed."""
    words = [builder, "build", "--tag", tag, "--build-arg", f"EXTRAS={extras}"]
    index = default_of("TORCH_INDEX")
    if not is_reachable(index):
        # pip finds the CPU build by the machine's settings, as the Makefile does.
        words += ["--build-arg", "TORCH_INDEX=file:///nowhere"]
    if builder == "buildah":
        base = f"docker.io/library/python:{default_of('PYTHON_VERSION')}-slim"
        subprocess.run([ROOT / ".ci" / "base-image", base], check=True)
        words += ["--format", "docker", "--isolation", "chroot", "--network", "host", "--layers"]
    with tempfile.TemporaryDirectory() as folder:
        if builder != "docker":
            words += pip_settings(Path(folder))
        done = subprocess.run(
            [*words, context], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
    if done.returncode:
        raise AssertionError(f"{' '.join(words)} failed:\n{done.stdout[-4000:]}")
    return done.stdout


def is_reachable(url: str) -> bool:
    try:
        httpx.get(url, timeout=10)
    except httpx.TransportError:
        return False
    return True


def pip_settings(folder: Path) -> list[str]:
    """Return the options that give a build the settings of pip here and the files they name."""
    listed = output_of(sys.executable, "-m", "pip", "config", "list")
    settings = dict(
        re.findall(r"^(?:global|install|:env:)\.([\w-]+)='(.*)'$", listed, re.MULTILINE)
    )
    if not settings:
        return []
    file = folder / "pip.conf"
    file.write_text(
        "[global]\n" + "".join(f"{name} = {value}\n" for name, value in settings.items())
    )
    named = [Path(urlsplit(word).path) for value in settings.values() for word in value.split()]
    # An index in a folder links to files next to it.
    places = {
        path.parent if path.name == "simple" else path for path in named if path.is_absolute()
    }
    mounts = [
        f"{file}:/etc/pip.conf:ro",
        *(f"{path}:{path}:ro" for path in places if path.exists()),
    ]
    return [word for mount in mounts for word in ("--volume", mount)]


def settings_of(builder: str, tag: str) -> dict[str, Any]:
    """Return the configuration of an image: its user, entry point, command and probe of health."""
    if builder == "buildah":
        described = json.loads(output_of("buildah", "inspect", "--type", "image", tag))
        return dict(described["Docker"]["config"])
    (described,) = json.loads(output_of(builder, "inspect", "--type", "image", tag))
    return dict(described["Config"])


@dataclass(frozen=True)
class Container:
    """A server in a container, and how to reach into it."""

    builder: str
    name: str
    url: str
    command: Sequence[str]
    process: subprocess.Popen[bytes]

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command in the container, with its user and environment."""
        return subprocess.run(
            [*self.command, *words], capture_output=True, text=True, check=False, timeout=60
        )

    def stop(self) -> int:
        """Send SIGTERM to the server, wait, and return its exit status.

        Raises:
            subprocess.TimeoutExpired: it ran for another 15 seconds.
        """
        if self.builder == "buildah":
            os.kill(server_below(self.process.pid), signal.SIGTERM)
        else:
            output_of(self.builder, "kill", "--signal", "TERM", self.name)
        return self.process.wait(STOP_SECONDS)

    def written(self) -> set[str]:
        """Return the paths outside /tmp that differ from the image's."""
        if self.builder != "buildah":
            lines = output_of(self.builder, "diff", self.name).splitlines()
            paths = {line.split(maxsplit=1)[1] for line in lines}
        else:
            root = Path(output_of("buildah", "mount", self.name).strip())
            paths = {f"/{path.relative_to(root)}" for path in changed_below(root)}
        return {path for path in paths if path.split("/")[1] not in {"tmp", "dev", "proc", "sys"}}


def changed_below(root: Path) -> Iterator[Path]:
    """Yield the files of a container that are not in the layers of its image."""
    began = (root / "began").stat().st_ctime_ns
    for folder, _, names in os.walk(root):
        for path in (Path(folder, name) for name in names):
            if path.lstat().st_ctime_ns > began:
                yield path


def server_below(pid: int) -> int:
    """Return the process that a `buildah run` serves with: the last of its only children."""
    while children := [
        int(child)
        for listed in Path(f"/proc/{pid}/task").glob("*/children")  # each thread has its own
        for child in listed.read_text().split()
    ]:
        pid = children[0]
    return pid


def free_port() -> int:
    with create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextmanager
def running(
    builder: str,
    tag: str,
    *,
    models: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Container]:
    """Start the server of an image as the README does and wait until it is ready.

    Args:
        builder: as `find_builder` names it.
        tag: of the image.
        models: a folder that is mounted at /models, to be read only.
        environment: more variables.
    """
    port, name = free_port(), f"headlight-test-{uuid4().hex[:8]}"
    environment = dict(environment or {})
    mounts = ["--volume", f"{models}:/models:ro"] if models else []
    if models:
        environment["HEADLIGHT_MODELS_DIR"] = "/models"
    if builder == "buildah":
        config = settings_of(builder, tag)
        environment |= {"HEADLIGHT_HOST": "127.0.0.1", "HEADLIGHT_PORT": str(port)}
        output_of("buildah", "from", "--name", name, tag)
        options = ["--isolation", "chroot", "--user", config["User"], *mounts, *given(environment)]
        command = ["buildah", "run", *options, name, "--"]
        subprocess.run([*command, "true"], check=True)  # writes /etc/hosts and its like
        began = Path(output_of("buildah", "mount", name).strip(), "began")
        began.touch()
        serve = [*command, *config["Entrypoint"], *config["Cmd"]]
    else:
        command = [builder, "exec", name]
        published = ["--publish", f"127.0.0.1:{port}:8000"]
        safety = ["--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL"]
        serve = [builder, "run", "--name", name, *published, *safety, *mounts, *given(environment)]
        serve.append(tag)
    process = subprocess.Popen(serve)
    container = Container(builder, name, f"http://127.0.0.1:{port}", command, process)
    try:
        wait_until_ready(container)
        yield container
    finally:
        if process.poll() is None:
            container.stop()
        remove = ["rm"] if builder == "buildah" else ["rm", "--force"]
        subprocess.run([builder, *remove, name], check=True, stdout=subprocess.DEVNULL)


def given(environment: Mapping[str, str]) -> list[str]:
    """Return the options that set variables."""
    return [word for name, value in environment.items() for word in ("--env", f"{name}={value}")]


def wait_until_ready(container: Container) -> None:
    until = time.monotonic() + READY_SECONDS
    while time.monotonic() < until and container.process.poll() is None:
        try:
            if httpx.get(f"{container.url}/readyz").status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    raise AssertionError("the container did not become ready")
