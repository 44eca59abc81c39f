"""`headlight chapter`: check the files of chapters, and begin one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headlight.commands.output import note, show, writing
from headlight.commands.parsing import Commands, UsageError, option, settings_of

app = Commands(name="chapter", help="Check chapters against the models, and begin one.")

TEMPLATE = Path(__file__).parent.with_name("chapters") / "template.md"


@app.command("check")
def check_command(
    files: Annotated[
        list[Path] | None, typer.Argument(help="Files of chapters.", metavar="FILE...")
    ] = None,
    every: Annotated[
        bool,
        option("Check the shipped chapters and those of HEADLIGHT_CHAPTERS_DIR.", name="--all"),
    ] = False,
) -> None:
    """Open every step, compute every answer, and test every claim; print what falls short.

    The status is 1 if anything does.
    """
    from headlight.chapters.chapter import ChapterError
    from headlight.chapters.check import Checker
    from headlight.chapters.library import Library, read_file

    if every == bool(files):
        raise UsageError("name files, or --all")
    settings = settings_of()
    library = Library(settings.chapters_dir)
    known, faults = library.chapters()
    chapters, problems = (known, [*faults.values()]) if every else ([], [])
    for path in files or ():
        try:
            chapters.append(read_file(path))
        except (ChapterError, OSError) as error:
            problems.append(str(error))
    checker = Checker(settings)
    for each in chapters:
        show(f"{each.id}: {each.title}")
        others = [other for other in known if other.id != each.id]
        for finding in checker.check(each, others):
            problems += [f"{each.id}.md, line {line}: {said}" for line, said in finding.faults]
            right = f"   {finding.right}" if finding.right else ""
            show(f"  {'—' if finding.faults else '✓'} {finding.step.title}{right}")
    for problem in problems:
        note(problem)
    if problems:
        raise typer.Exit(1)


@app.command("new")
def new_command(
    name: Annotated[str, typer.Argument(help="The chapter's id.", metavar="NAME")],
    out: Annotated[Path | None, option("The folder to write it to; here.", "DIR")] = None,
    force: Annotated[bool, option("Replace a file.")] = False,
) -> None:
    """Write NAME.md with three steps to change: a view, a question, and what it does not show."""
    from headlight.chapters.chapter import NAME

    if not NAME.fullmatch(name):
        raise UsageError(f"{name!r} is no id: use small letters, digits, - and _")
    path = (out or Path()) / f"{name}.md"
    title = name.replace("-", " ").replace("_", " ").capitalize()
    with writing(path, is_forced=force) as file:
        file.write(TEMPLATE.read_text("utf-8").replace("TITLE", title).encode())
    note(f"{path} is written; `headlight chapter check {path}` opens its steps")
