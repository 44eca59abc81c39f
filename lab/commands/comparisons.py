"""`headlight comparisons`: pairs of answers for a reward model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from headlight.commands.output import note, notes, say
from headlight.commands.parsing import Commands, UsageError, folder_of, option, usage_errors

app = Commands()


@app.command()
def comparisons(
    corpus: Annotated[
        list[Path], option("Text whose paragraphs begin the prompts; repeat it for more.", "FILE")
    ],
    out: Annotated[Path, option("The file to write.", "FILE")],
    model: Annotated[str, option("The decoder that answers.", "MODEL", "stories")] = "stories",
    count: Annotated[int, option("How many comparisons.", "N", min=1)] = 2000,
    seed: Annotated[int, option("The seed of prompts and samples.", "N", min=0)] = 0,
    force: Annotated[bool, option("Replace an existing file.", name="--force")] = False,
) -> None:
    """Write comparisons for `headlight train reward`: two samples of a model, and which is better.

    A rule decides, not a person: an answer holds speech in quotes that are closed, repeats no
    phrase of three words, and has at least twenty words. Three quarters of the comparisons are
    pairs of one answer, of which an edit broke one of these.
    """
    from headlight.lab.commands.training import progress_bar
    from headlight.lab.training.preference import make_comparisons, write_comparisons
    from headlight.model.checkpoint.loading import load_checkpoint
    from headlight.model.corpus import read_documents

    if out.exists() and not force:
        raise ValueError(f"{out} exists; replace it with --force")
    with usage_errors():
        checkpoint = load_checkpoint(folder_of(model))
        if checkpoint.config.kind != "decoder":
            raise UsageError(f"{model} is of kind {checkpoint.config.kind!r}; use a decoder")
    pairs = []
    with progress_bar(notes, "comparisons") as progress:
        task = progress.add_task("", total=count, figures="")
        for comparison in make_comparisons(
            checkpoint, read_documents(corpus), count=count, seed=seed
        ):
            pairs.append(comparison)
            progress.update(task, advance=1)
    write_comparisons(out, pairs)
    say(f"wrote {len(pairs)} comparisons to {out}")
    if len(pairs) < count:
        note(
            f"{len(pairs)} of {count}: each paragraph of the corpus begins one prompt, and all are "
            "used; pairs of one score and blank answers are left out: name more text with "
            "--corpus"
        )
