"""`headlight comparisons`: pairs of answers for a reward model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from headlight.commands.parsing import Commands, option

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
    from headlight.lab.commands.training import sample_comparisons

    sample_comparisons(corpus, out, model=model, count=count, seed=seed, force=force)
