"""`headlight site`: the pages as files for any static host."""

from __future__ import annotations

import re
import signal
from pathlib import Path
from time import monotonic, process_time
from typing import TYPE_CHECKING, Annotated

import typer

from headlight.commands.options import ModelsDir
from headlight.commands.output import note, progress
from headlight.commands.parsing import Commands, UsageError, option, settings_with_models

if TYPE_CHECKING:
    from headlight.settings import Settings
    from headlight.site.answers import Reading

app = Commands()

MOST_TEXT_BYTES = 1_000_000
MOST_TEXTS = 500
ADDRESS = re.compile(r"https?://[^\s/?#]+[^\s?#]*")


@app.command()
def site(
    out: Annotated[Path, typer.Argument(help="The folder to write.", metavar="OUT")],
    chapters: Annotated[
        list[Path] | None,
        option("A chapter's file, or a folder of them; repeat it for more.", "PATH"),
    ] = None,
    texts: Annotated[
        Path | None,
        option("More texts, one on each line: a model and a tab may come before it.", "FILE"),
    ] = None,
    server: Annotated[
        str, option("The address of a server that reads what the site does not hold.", "URL")
    ] = "",
    live: Annotated[
        str, option("The models that the browser computes, with commas: stories,sums*.", "NAMES")
    ] = "",
    models_dir: ModelsDir = None,
) -> None:
    """Write the pages as files for any static host; they open from a disk, too.

    The site holds the examples of every model, the chapters, and the experiments with a few
    settings each. Their answers are computed now, which takes some minutes. With --live a page
    also computes any sentence itself; that needs npm and the extra `onnx`. Stop it at any time: an
    earlier site stays in its place until the new one is whole.
    """
    from headlight.site.folder import Plan, write_site

    settings = settings_with_models(models_dir=models_dir)
    if server and not ADDRESS.fullmatch(server):
        raise UsageError(f"--server: {server!r} is no address; write it as https://example.org")
    plan = Plan(
        chapters=chapters or [],
        texts=_texts(texts, settings) if texts else (),
        live=[name.strip() for name in live.split(",") if name.strip()],
        server=server,
    )

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # nothing half-written stays
    began = monotonic()
    with progress("writing the site") as on_progress:
        n_bytes = write_site(out, plan, settings, on_progress, note)
    note(
        f"{out} is written in {monotonic() - began:.0f} s ({process_time():.0f} s of processor): "
        f"{n_bytes / 1e6:.1f} MB. Open {out / 'index.html'}, or serve it: "
        f"python -m http.server --directory {out}"
    )


def _texts(path: Path, settings: Settings) -> list[Reading]:
    """Read texts: one on each line, behind a model and a tab if it is not for the default one."""
    from headlight.models.model_registry import registry_of
    from headlight.site.answers import Reading

    size = path.stat().st_size
    if size > MOST_TEXT_BYTES:
        raise UsageError(f"{path} has {size:,} bytes, more than the {MOST_TEXT_BYTES:,} allowed")
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 (byte {error.start})") from error
    registry = registry_of(settings)
    readings = []
    for number, line in enumerate(lines, 1):
        model, tab, text = line.partition("\t")
        if not tab:
            model, text = registry.default, line
        if not text.strip():
            continue
        if model not in registry.ids:
            known = ", ".join(registry.ids)
            raise UsageError(
                f"{path}, line {number}: there is no model {model!r}; there are {known}"
            )
        readings.append(Reading(model, text.strip(), is_whole=True))
    if not readings:
        raise UsageError(f"{path} has no text; write one on each line")
    if len(readings) > MOST_TEXTS:
        raise UsageError(f"{path} has {len(readings)} texts, more than the {MOST_TEXTS} allowed")
    return readings
