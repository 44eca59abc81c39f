"""`headlight site`: the pages as files for any static host."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from headlight.commands.output import notes
from headlight.commands.parsing import UsageError
from headlight.settings import Settings

if TYPE_CHECKING:
    from headlight.site.answers import Reading

MOST_TEXT_BYTES = 1_000_000
MOST_TEXTS = 500
ADDRESS = re.compile(r"https?://[^\s/?#]+[^\s?#]*")


def run_site(
    out: Path, chapters: list[Path], texts: Path | None, server: str, settings: Settings
) -> None:
    """Write a site and print its size.

    Raises:
        UsageError: an option is wrong.
        ValueError, OSError: the site cannot be written.
    """
    from headlight.site.folder import Plan, write_site

    if server and not ADDRESS.fullmatch(server):
        raise UsageError(f"--server: {server!r} is no address; write it as https://example.org")
    plan = Plan(chapters=chapters, texts=_texts(texts, settings) if texts else (), server=server)

    def tell(what: str) -> None:
        notes.print(what, markup=False, soft_wrap=True)

    n_bytes = write_site(out, plan, settings, tell)
    notes.print(
        f"{out} is written: {n_bytes / 1e6:.1f} MB. Open {out / 'index.html'}, or serve it: "
        f"python -m http.server --directory {out}",
        markup=False,
        soft_wrap=True,
    )


def _texts(path: Path, settings: Settings) -> list[Reading]:
    """Read texts: one on each line, behind a model and a tab if it is not for the default one."""
    from headlight.models.registry import registry_of
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
