"""The figures of a recipe's models: what `headlight evaluate` writes on their cards.

A recipe names its `Figures`. Training never measures them, so those that need
`headlight.lab.evaluation` are named by their place there.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from headlight.model.checkpoint.checkpoint import Checkpoint


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The files to measure on.

    ``text`` is held-out text, held-out pairs for `translate`, or comparisons that were not trained
    on for `reward`. ``corpus`` is the training corpus: `stories` counts there which tokens each
    expert takes, `translate` looks for names that it lacks. ``gold`` is a second word alignment.
    """

    text: tuple[Path, ...] = ()
    corpus: tuple[Path, ...] = ()
    gold: Path | None = None


class Figures:
    """The figures of the models of a recipe; a subclass overrides what applies to it.

    Attributes:
        takes: the evidence that is measured, by the names of `Evidence`.
        counts_expert_tokens: whether the tokens that each expert takes are counted in the corpus.
    """

    takes: ClassVar[frozenset[str]] = frozenset({"text"})
    counts_expert_tokens: ClassVar[bool] = False

    def measure(self, checkpoint: Checkpoint, evidence: Evidence) -> dict[str, Any]:
        """Measure a model on files.

        Raises:
            CorpusError: a file is unusable, or too short.
            ValueError: a model of this recipe takes no such evidence.
        """
        raise NotImplementedError

    def sample(self, checkpoint: Checkpoint) -> dict[str, Any] | None:
        """Measure a model on the project's own texts; None: as `measure` does on the sample.

        Raises:
            CorpusError: the sample is shorter than the model's context.
        """
        return None
