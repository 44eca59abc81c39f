"""Predictions: the next token, those of each layer, and the reward of a text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from headlight.analyses.analysis import Analysis, Choices, Result
from headlight.forms import Answer, TensorAnswer
from headlight.model.trace import NamedArray, Trace

if TYPE_CHECKING:
    from headlight.model.description import Description
    from headlight.model.served import Served


class ChosenAnswer(Answer):
    """The tokens that `predictions` names, if it does; ranks are from 1."""

    chosen_ids: TensorAnswer | None = None
    chosen_logits: TensorAnswer | None = None
    chosen_probabilities: TensorAnswer | None = None
    chosen_ranks: TensorAnswer | None = None


class NextTokenAnswer(ChosenAnswer):
    """The likeliest tokens after every position, or at it in an encoder, in descending order."""

    ids: TensorAnswer
    probabilities: TensorAnswer
    texts: list[list[str]]
    following: TensorAnswer | None = None
    sampled: TensorAnswer | None = None


class LogitLensAnswer(ChosenAnswer):
    """The likeliest tokens by layer and position, in descending order."""

    ids: TensorAnswer
    probabilities: TensorAnswer
    texts: list[list[list[str]]]


class NextToken(Analysis):
    """The 20 likeliest tokens after every position, or at it in an encoder."""

    id = "next_token"
    needs = ("logits",)
    answer = NextTokenAnswer
    options = ("predictions",)

    def globs(self, description: Description, *, is_long: bool) -> tuple[str, ...]:
        """Return the last stream in place of the logits of a long text."""
        if not _is_made_in_parts(description, is_long=is_long):
            return self.needs
        stack = "decoder" if description.config.has_decoder else "encoder"
        return (f"{stack}.layers.{description.config.n_layers - 1}.residual.after",)

    def n_predictions(self, n_layers: int) -> int:
        return 1

    def compute(self, trace: Trace, model: Served, ask: Choices) -> Result:
        """Compute the predictions from the logits, or without them from the last stream."""
        from headlight.model.analysis.logit_lens import last_prediction
        from headlight.model.analysis.next_token import next_token

        if "logits" in trace:
            arrays = next_token(
                trace, ask.top, ask.ids, following=ask.following, sampling=ask.sampling
            )
        elif ask.sampling is not None:
            raise ValueError("the logits of this text are not held at once; send a shorter text")
        else:
            arrays = last_prediction(trace, model.exits, ask.top, ask.ids, following=ask.following)
        return _with_texts(arrays, model)


class LogitLens(Analysis):
    """The prediction of each layer."""

    id = "logit_lens"
    # It makes logits of every layer, so a text whose logits would be too many is too long for it.
    needs = ("*.residual.after", "logits")
    answer = LogitLensAnswer
    options = ("predictions",)

    def globs(self, description: Description, *, is_long: bool) -> tuple[str, ...]:
        """Return the streams only for a long text."""
        if _is_made_in_parts(description, is_long=is_long):
            return tuple(glob for glob in self.needs if glob != "logits")
        return self.needs

    def n_predictions(self, n_layers: int) -> int:
        return n_layers

    def compute(self, trace: Trace, model: Served, ask: Choices) -> Result:
        from headlight.model.analysis.logit_lens import logit_lens

        return _with_texts(logit_lens(trace, model.exits, ask.top, ask.ids), model)


class Reward(Analysis):
    """The reward of the text and the contribution of each token to it."""

    id = "reward"
    needs = ("reward",)

    def compute(self, trace: Trace, model: Served, ask: Choices) -> Result:
        from headlight.model.analysis.reward import reward

        return Result(reward(trace))


def _is_made_in_parts(description: Description, *, is_long: bool) -> bool:
    """Return True if predictions are computed from the stream: a long text has too many logits."""
    return is_long and "logit_lens" in description.features


def _with_texts(arrays: Mapping[str, NamedArray], model: Served) -> Result:
    """Return the arrays with the texts of their token ids, nested as the ids are."""
    texts: Any = np.frompyfunc(model.tokenizer.text_of, 1, 1)(arrays["ids"].data)
    return Result(arrays, {"texts": texts.tolist()})
