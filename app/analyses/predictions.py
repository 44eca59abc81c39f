"""Predictions: the next token, those of each layer, and the reward of a text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from headlight.analyses.analysis import Analysis, AnalysisOptions, Choices, Result, names_of
from headlight.forms import MAX_NUMBERS, Answer, TensorAnswer, Token
from headlight.model.trace import NamedArray, Trace

if TYPE_CHECKING:
    from headlight.model.description import Description
    from headlight.model.generation.sampling import Sampling
    from headlight.model.served import Served

MOST_TOP = 2**20


class PredictionsRequest(AnalysisOptions):
    """The predicted tokens that are returned."""

    member = "predictions"

    top: int = Field(
        20, ge=1, le=MOST_TOP, description="How many of the likeliest; at most the vocabulary."
    )
    tokens: list[Token] = Field(
        default=[],
        max_length=MAX_NUMBERS,
        description="Ids, or texts of one token each, such as ` cat`, whose logits, probabilities "
        "and ranks are returned as chosen_logits, chosen_probabilities and chosen_ranks (1 is the "
        "likeliest), with chosen_ids.",
    )
    following: bool = Field(
        False,
        description="Whether next_token also returns `following`: of every token of the text that "
        "is predicted, but the first, the probability that it had. Its −ln is the loss.",
    )
    temperature: float | None = Field(
        None,
        ge=0,
        allow_inf_nan=False,
        description="With this, top_k or top_p, next_token also returns `sampled`: the probability "
        "that each of the tokens has of being sampled, as `/generate` samples. Divides the logits; "
        "0 always takes the likeliest token. If omitted, 1.",
    )
    top_k: int | None = Field(
        None, ge=1, lt=2**31, description="Sample from the k likeliest tokens only."
    )
    top_p: float | None = Field(
        None, gt=0, le=1, description="Sample from the fewest tokens whose probabilities reach p."
    )

    @property
    def samples(self) -> bool:
        """True if probabilities of being sampled are asked for."""
        return not (self.temperature is self.top_k is self.top_p is None)

    @property
    def sampling(self) -> Sampling | None:
        """How next_token would sample, or None."""
        from headlight.model.generation.sampling import Sampling

        if not self.samples:
            return None
        heat = 1.0 if self.temperature is None else self.temperature
        return Sampling(temperature=heat, top_k=self.top_k, top_p=self.top_p)


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
    """The 20 likeliest tokens after every position, or at it in an encoder; or labels."""

    id = "next_token"
    needs = ("logits",)
    answer = NextTokenAnswer
    reads = (PredictionsRequest,)

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

        options = ask[PredictionsRequest]
        top, following, sampling = options.top, options.following, options.sampling
        ids = _ids(ask)
        if "logits" in trace:
            if (following or sampling) and model.description.predicts != "token":
                raise ValueError("labels do not follow one another, and are not sampled")
            is_independent = model.description.predicts == "labels"
            arrays = next_token(
                trace,
                top,
                ids,
                following=following,
                sampling=sampling,
                is_independent=is_independent,
            )
        elif sampling is not None:
            raise ValueError("the logits of this text are not held at once; send a shorter text")
        else:
            arrays = last_prediction(trace, model.exits, top, ids, following=following)
        return _with_texts(arrays, model)


class LogitLens(Analysis):
    """The prediction of each layer."""

    id = "logit_lens"
    # It makes logits of every layer, so a text whose logits would be too many is too long for it.
    needs = ("*.residual.after", "logits")
    answer = LogitLensAnswer
    reads = (PredictionsRequest,)

    def globs(self, description: Description, *, is_long: bool) -> tuple[str, ...]:
        """Return the streams only for a long text."""
        if _is_made_in_parts(description, is_long=is_long):
            return tuple(glob for glob in self.needs if glob != "logits")
        return self.needs

    def n_predictions(self, n_layers: int) -> int:
        return n_layers

    def compute(self, trace: Trace, model: Served, ask: Choices) -> Result:
        from headlight.model.analysis.logit_lens import logit_lens

        top = ask[PredictionsRequest].top
        return _with_texts(logit_lens(trace, model.exits, top, _ids(ask)), model)


class Reward(Analysis):
    """The reward of the text and the contribution of each token to it."""

    id = "reward"
    needs = ("reward",)

    def compute(self, trace: Trace, model: Served, ask: Choices) -> Result:
        """Return both, or of a model that sees both ways, whose text has one number, the first."""
        from headlight.model.analysis.reward import reward

        arrays = reward(trace)
        if model.config.kind == "encoder":
            del arrays["contributions"]
        return Result(arrays)


def _ids(ask: Choices) -> tuple[int, ...]:
    """Return the ids of the tokens that a request names."""
    return tuple(ask.id_of(token) for token in ask[PredictionsRequest].tokens)


def _is_made_in_parts(description: Description, *, is_long: bool) -> bool:
    """Return True if predictions are computed from the stream: a long text has too many logits."""
    return is_long and "logit_lens" in description.features


def _with_texts(arrays: Mapping[str, NamedArray], model: Served) -> Result:
    """Return the arrays with the texts of their token ids, nested as the ids are."""
    texts: Any = np.frompyfunc(names_of(model), 1, 1)(arrays["ids"].data)
    return Result(arrays, {"texts": texts.tolist()})
