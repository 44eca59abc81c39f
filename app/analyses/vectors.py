"""Analyses of models that predict no tokens: the vector of a text, and what moves the output."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from headlight.analyses.analysis import Analysis, AnalysisOptions, Choices, Result
from headlight.analyses.differences import Patching, edited_passes
from headlight.forms import ArraysAnswer, TensorAnswer, option
from headlight.model.trace import NamedArray, Trace

if TYPE_CHECKING:
    from headlight.model.description import Description, Pooling
    from headlight.model.served import Served

HIDDEN = "last_hidden_state"
PARTS = ("*_attention.context", "*.feed_forward.output", "*.experts.output")


class _OfVector(Analysis):
    needs: ClassVar[tuple[str, ...]] = (HIDDEN,)

    def reason_against(self, description: Description) -> str | None:
        """Return why a model makes no vector of a text; None: it does."""
        if description.pooling is not None:
            return None
        return description.omitted.get("vector", "it is no model of vectors")

    def pooling(self, trace: Trace, model: Served) -> Pooling:
        """Return the pooling.

        Raises:
            ValueError: the text is too long for a vector.
        """
        pooling = model.description.pooling
        assert pooling is not None  # `reason_against`
        if pooling.max_tokens is not None and len(trace.tokens) > pooling.max_tokens:
            raise ValueError(
                f"a vector is of at most {pooling.max_tokens} tokens, this text has "
                f"{len(trace.tokens)}; send a shorter one"
            )
        return pooling


class VectorAnswer(ArraysAnswer):
    """The vector of a text."""

    vector: TensorAnswer = Field(description="(d_model); pooled as `pooling` of the card says.")


class SentenceVector(_OfVector):
    """The vector of the text, made of the last hidden states as its folder says."""

    id = "vector"
    answer = VectorAnswer

    def compute(self, trace: Trace, model: Served, ask: Choices) -> Result:
        from headlight.model.analysis.sentence_vectors import vector_of

        vector = vector_of(trace[HIDDEN], self.pooling(trace, model))
        return Result({"vector": NamedArray(("d_model",), vector.astype("float32"))})


class MovedVectors(_OfVector):
    """The change of the vector, and of all hidden states, when a head or network is off."""

    id = "moved_vectors"
    needs = (HIDDEN, PARTS[0])
    also = PARTS[1:]
    has_passes = True

    def compute(self, trace: Trace, model: Served, ask: Choices) -> Result:
        from headlight.model.analysis.sentence_vectors import moved_vectors

        return Result(moved_vectors(edited_passes(trace, model, ask), self.pooling(trace, model)))


class SimilarityAnswer(ArraysAnswer):
    """The cosine of the vectors of two texts, and what it is made of."""

    similarity: float
    other_tokens: list[str] = Field(description="The tokens of the other text.")
    pairs: TensorAnswer = Field(
        description="(query, key): what each pair of a token of the text and one of the other "
        "gives to the similarity. They sum to it."
    )
    heads: TensorAnswer | None = Field(
        None, description="(layer, head): the similarity when the head is off in both texts."
    )
    networks: TensorAnswer | None = Field(None, description="(layer): the same of networks.")


class Similarity(_OfVector):
    """The similarity to another text, and what each pair of tokens gives to it."""

    id = "similarity"
    needs = (HIDDEN, PARTS[0])
    also = PARTS[1:]
    answer = SimilarityAnswer
    has_passes = True

    class Options(AnalysisOptions):
        """The other text, read with the same edits."""

        text: str = option(description="The other text.")
        heads: bool = option(
            False, "Whether to return the similarity without each head and network, too."
        )

    def compute(self, trace: Trace, model: Served, ask: Choices) -> Result:
        from headlight.model.analysis import sentence_vectors

        options, pooling = ask[self.Options], self.pooling(trace, model)
        passes = edited_passes(trace, model, ask)
        other = passes.of_other_text(options.text, None, list(trace))
        self.pooling(other, model)
        pairs = sentence_vectors.similarity_of_pairs(trace[HIDDEN], other[HIDDEN], pooling)
        arrays = {"pairs": NamedArray(("query", "key"), pairs.astype("float32"))}
        if options.heads:
            others = edited_passes(other, model, ask)
            arrays |= sentence_vectors.similarity_without(passes, others, pooling)
        tokens = [token.text for token in other.tokens]
        return Result(arrays, {"similarity": float(pairs.sum()), "other_tokens": tokens})


class PatchedVectorAnswer(ArraysAnswer):
    """The share of the way from this text's vector to the other's, by activation: as `patching`."""

    other_tokens: list[str] = Field(description="The tokens of the other text.")


class PatchedVector(_OfVector):
    """The share of each activation in the change of the vector that another text makes."""

    id = "patched_vector"
    needs = (HIDDEN, "*.residual.before")
    also = Patching.also
    answer = PatchedVectorAnswer
    reads = (Patching.Options,)
    has_passes = True

    def compute(self, trace: Trace, model: Served, ask: Choices) -> Result:
        from headlight.model.analysis.patching import patching
        from headlight.model.analysis.sentence_vectors import VectorChange, vector_of

        other, pooling = ask[Patching.Options], self.pooling(trace, model)
        passes = edited_passes(trace, model, ask)
        source = passes.of_other_text(other.text, None, list(trace))
        own, others = (vector_of(each[HIDDEN], pooling) for each in (trace, source))
        change = VectorChange(own, others, pooling, len(trace.tokens) - 1)
        arrays = patching(passes, source, change, other.parts)
        return Result(arrays, {"other_tokens": [token.text for token in source.tokens]})


class SpanAnswer(ArraysAnswer):
    """The answer that the model marks in the text."""

    start: int = Field(description="The position of its first token.")
    end: int = Field(description="The position of its last token.")
    text: str = Field(description="Its characters; empty if it is a special token.")
    probabilities: TensorAnswer = Field(
        description="(query, end): of each token to be the first, and to be the last."
    )


class AnswerSpan(Analysis):
    """The start and the end of the answer: the likeliest of the second text, if there are two."""

    id = "answer"
    needs = ("answer_logits",)
    answer = SpanAnswer

    def compute(self, trace: Trace, model: Served, ask: Choices) -> Result:
        from headlight.model.analysis.answers import answer_span, softmax

        logits = trace["answer_logits"]
        start, end = answer_span(trace)
        first, last = trace.tokens[start], trace.tokens[end]
        axes = ("query", "end")
        return Result(
            {"probabilities": NamedArray(axes, softmax(logits).astype("float32"))},
            {"start": start, "end": end, "text": trace.text[first.start : last.end]},
        )


class MovedScores(Analysis):
    """The change of a score, or of an answer's start and end logits, when a part is off."""

    id = "moved_scores"
    needs = (PARTS[0],)
    also = ("answer_logits", "reward", *PARTS[1:])
    has_passes = True

    def reason_against(self, description: Description) -> str | None:
        """Return why there is no score to move; None: there is."""
        if description.predicts in ("score", "answer"):
            return None
        return "it gives neither a score nor an answer"

    def compute(self, trace: Trace, model: Served, ask: Choices) -> Result:
        from headlight.model.analysis.answers import moved_scores

        return Result(moved_scores(edited_passes(trace, model, ask)))
