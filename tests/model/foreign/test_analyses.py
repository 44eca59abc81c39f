"""Analyses of foreign models equal an independent computation or are left out with a reason."""

from dataclasses import dataclass

import numpy as np
import pytest
import transformers

from headlight.analyses.analysis import Choices
from headlight.analyses.analysis_registry import ANALYSES, available
from headlight.analyses.differences import Patching
from headlight.model.foreign.loading import quiet
from headlight.model.tracing import tokenize, trace
from headlight.problems import Problem
from headlight.tracing.results import analyse, sites_of
from tests.model.foreign.independent_pass import Reader
from tests.model.foreign.layouts import LAYOUTS
from tests.model.foreign.references import REFERENCES, NotOffered, Question
from tests.tiny_checkpoints import ARCHITECTURES, MORE

TEXT, OTHER, TARGET = "The cat sat by the dog.", "The dog sat by the cat.", "The dog sat."
DEFAULT = ("gpt2", "llama", "bert", "t5", "granite", "olmo2", "doge")
PARTS = ["residual", "attention", "feed_forward", "heads"]
TOLERANCE = 3e-5
"""The share of an array's largest number: the sums of float32 are in another order."""

TESTED_ELSEWHERE = {"score_attribution", "attention_thread", "reasons"}
TESTED_ELSEWHERE |= {"head_circuits", "quantization_sensitivity", "role_shares"}
TESTED_ELSEWHERE |= {"vector", "similarity", "moved_vectors", "patched_vector"}
TESTED_ELSEWHERE |= {"answer", "moved_scores"}
"""They have files of their own, which compare them with passes."""

WRONG = {("starcoder2", "patching"): "both texts give the same difference; this test needs others"}
"""The analyses that are known to be wrong, with the reason."""


@dataclass(frozen=True)
class Subject:
    """A served model, the trace of a text with every site, and the same text for a bare module."""

    served: object
    trace: object
    question: Question


@pytest.fixture(scope="module")
def subject(served, folder_of):
    """Return a model and its text, read once."""
    made = {}

    def make(name):
        if name not in made:
            made.clear()
            model = served(name)
            traced = trace(
                model,
                TEXT,
                TARGET if "encoder" in LAYOUTS[name] and "decoder" in LAYOUTS[name] else None,
                capture=["*"],
            )
            kind = getattr(transformers, {**ARCHITECTURES, **MORE}[name][0])
            with quiet():
                module = kind.from_pretrained(folder_of(name), attn_implementation="eager")
            module.config._experts_implementation = "eager"
            module.eval().requires_grad_(requires_grad=False)
            target = traced.target_tokens
            reader = Reader(
                module,
                LAYOUTS[name],
                [token.id for token in traced.tokens],
                [token.id for token in target] if target else None,
            )
            other = [token.id for token in tokenize(model, OTHER, traced.target).tokens]
            made[name] = Subject(model, traced, Question(reader, traced.tokens, target, other))
        return made[name]

    return make


def rows():
    """Yield every architecture with every analysis; those that are not the default are slow."""
    for name in LAYOUTS:
        for analysis in REFERENCES:
            marks = [] if name in DEFAULT else [pytest.mark.slow]
            if reason := WRONG.get((name, analysis)):
                marks.append(pytest.mark.xfail(reason=reason, strict=True))
            yield pytest.param(name, analysis, marks=marks, id=f"{name}-{analysis}")


def numbers_of(result, expected):
    """Return the arrays of an analysis, and the numbers of those that name their parts."""
    arrays = {name: array.data for name, array in result.arrays.items()}
    metadata = result.metadata
    if "part_names" in metadata:
        parts = dict(zip(metadata["part_names"], arrays.pop("parts"), strict=True))
        pieces = [parts.pop(name) for name in list(parts) if name.startswith("embedding.")]
        if pieces:
            parts["embedding"] = sum(pieces)
        parts["rest"] = parts.pop("bias") + parts.pop("remainder")
        arrays |= {f"parts.{name}": np.array(value) for name, value in parts.items()}
        arrays = {name: array for name, array in arrays.items() if name != "experts"}
        for name in metadata["omitted"]:
            expected.pop(name, None)
    if "edges" in metadata:
        for name in ("difference", "probability"):
            arrays[name] = np.array(metadata[name])
        arrays["edges"] = np.array([edge["difference"] for edge in metadata["edges"]])
    return arrays


def test_every_analysis_has_its_row():
    assert set(REFERENCES) == set(ANALYSES) - TESTED_ELSEWHERE


@pytest.mark.parametrize(("name", "analysis"), [*rows()])
def test_an_analysis_equals_the_independent_computation(name, analysis, subject):
    model, question = subject(name).served, subject(name).question
    if analysis not in available(model.description):
        with pytest.raises(Problem) as refusal:
            sites_of([analysis], model.description)
        try:
            REFERENCES[analysis](question)
        except NotOffered:
            return
        assert "cannot be computed: " in str(refusal.value.detail) or " (" in str(
            refusal.value.detail
        ), refusal.value.detail
        return
    choices = Choices({Patching.Options: Patching.Options(text=OTHER, parts=PARTS)})
    result = analyse(analysis, subject(name).trace, model, choices)
    expected = REFERENCES[analysis](question)
    arrays = numbers_of(result, expected)
    if not all(layout.is_split for layout in LAYOUTS[name].values()):
        arrays = {key: array for key, array in arrays.items() if not key.endswith(".heads")}
    if analysis == "residual_stream":  # it has the statistics of the model's kind of norm
        expected = {
            key: value
            for key, value in expected.items()
            if key in arrays or not key.split(".")[1].startswith(("mean", "deviation", "root"))
        }
    assert arrays.keys() == expected.keys()
    for key, array in expected.items():
        scale = float(np.abs(array).max()) if array.size else 0.0
        if analysis in ("logit_attribution", "patching", "saliency"):
            scale = max(scale, 1.0)
        if analysis == "patching":  # divided by a difference that may be a 65th of an effect
            scale *= 16
        np.testing.assert_allclose(arrays[key], array, rtol=0, atol=TOLERANCE * scale, err_msg=key)
