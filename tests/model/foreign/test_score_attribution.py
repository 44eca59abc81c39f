"""The parts of a foreign model's scores sum to them, or it says why there are none."""

import pytest

from headlight.model.analysis.score_attribution import facts_of, read_for, score_parts
from headlight.model.tracing import trace
from tests.model.analysis.test_score_attribution import cells_of, scale_of

SUMMED = (
    *("gpt2", "llama", "mixtral", "gemma2", "bert", "t5", "bloom", "gpt_oss"),
    *("gemma3", "qwen3moe", "olmoe", "persimmon", "phi", "gpt_neox", "falcon", "mpt"),
    *("gpt_bigcode", "granite", "bart", "marian", "umt5", "distilbert"),
)
REFUSED = {"jetmoe": "not known by parts"}
TEXT, TARGET = "The cat sat by the dog and the cat.", "The dog sat by the cat."


def read_text(model):
    is_double = model.config.kind == "encoder-decoder"
    return trace(model, TEXT, TARGET if is_double else None, capture=["logits"])


@pytest.mark.parametrize("name", SUMMED)
def test_the_table_sums_to_the_score(name, served):
    model = served(name)
    text = read_text(model)
    for facts in model.description.attentions:
        is_target = text.target_tokens is not None and facts.path.startswith("decoder")
        query = len(text.target_tokens if is_target else text.tokens) - 1
        read = read_for(model, text, facts.path, query)
        for cell in cells_of(read, facts.path, facts.n_heads, query):
            made = score_parts(model, read, cell)
            scale = scale_of(read, facts.path, cell.head, facts.scale)
            assert abs(made.remainder) < 1e-5 * scale, cell
            has_distance = made.key_parts[-1].kind == "distance"
            assert has_distance == facts.has_bias


@pytest.mark.parametrize("name", REFUSED)
def test_a_model_whose_queries_are_no_sum_is_refused_with_the_reason(name, served):
    model = served(name)
    with pytest.raises(ValueError, match=REFUSED[name]):
        facts_of(model, model.description.attentions[0].path)
