"""Forty architectures with each head, or with none, against the library's own eager attention.

Each has the traits of trained models: a massive activation in one feature, and heads that rest on
the token that has it. Hidden states, weights and outputs are the library's to the bit.
"""

import copy

import numpy as np
import pytest
import torch
import transformers

from headlight.model.analysis.sentence_vectors import vector_of
from headlight.model.checkpoint.files import CheckpointError
from headlight.model.description import Pooling
from headlight.model.foreign.loading import quiet
from headlight.model.foreign.model import serve_module
from headlight.model.foreign.outputs import inputs_for
from tests.benchmarks.architectures import make
from tests.trained_traits import EVERY, trained_like

TEXT = [5, 41, 17, 91, 42, 8, 231, 66, 12, 99]
ENCODERS = (
    "albert bert big_bird camembert convbert data2vec-text deberta-v2 distilbert electra ernie "
    "luke megatron-bert mobilebert modernbert mpnet rembert roberta roberta-prelayernorm "
    "roc_bert roformer xlm-roberta xlm-roberta-xl"
)
SEVERAL = f"{ENCODERS} deberta bloom exaone4 falcon gpt2 gpt_neo gpt_neox llama mistral mixtral"
TYPES = {
    "vector": f"{ENCODERS} clip_text_model deberta esm eurobert flaubert gte jina_embeddings_v3 "
    "layoutlm modernvbert molmo2_text nomic_bert tapas tipsv2_text_model ultrabert xlm gpt2 llama "
    "qwen3",
    "label": f"{SEVERAL} ctrl deepseek_v3 gemma2 gpt_oss olmo2 opt phi3 tapas",
    "token_label": f"{SEVERAL} apertus esm gemma2 gpt_oss helium phi qwen3_moe t5",
    "answer": f"{SEVERAL} gptj markuplm mpt nemotron opt qwen3 seed_oss splinter",
    "choice": f"{ENCODERS} flaubert xlm xlnet",
}
"""The library has no other type with multiple choice that is served."""
CASES = [(head, name) for head, names in TYPES.items() for name in names.split()]
LABELS = {"label": {"num_labels": 3}, "token_label": {"num_labels": 3}}


@pytest.mark.parametrize(("head", "name"), CASES)
def test_states_weights_and_outputs_are_exactly_those_of_the_library(head, name):
    with quiet():
        module, reason = make(name, head, LABELS.get(head, {}))
    assert module is not None, reason
    module = trained_like(name, head, module)
    plain = copy.deepcopy(module)
    model = serve_module(module, head, name)
    sites = [site.name for site in model.description.sites]
    sites = [site for site in sites if "." not in site or site.endswith((".before", "n.weights"))]
    captured = {site: tensor[0] for site, tensor in model.read([TEXT], None, sites=sites).items()}
    with quiet(), torch.inference_mode():
        if plain._can_set_attn_implementation():
            plain.set_attn_implementation("eager")
        inputs = inputs_for(head, {"input_ids": torch.tensor([TEXT])})
        library = plain(**inputs, output_attentions=True, output_hidden_states=True)

    expected = {
        "vector": lambda: library.last_hidden_state[0],
        "answer": lambda: torch.stack([library.start_logits[0], library.end_logits[0]], dim=-1),
        "label": lambda: library.logits.expand(len(TEXT), -1),
        "choice": lambda: library.logits[0].expand(len(TEXT)),
        "token_label": lambda: library.logits[0],
    }[head]()
    site = {"vector": "last_hidden_state", "answer": "answer_logits", "choice": "reward"}
    output = captured.pop(site.get(head, "logits"))
    if head in ("label", "choice"):  # a decoder also has those of each beginning
        output, expected = output[-1], expected[-1]
    assert torch.equal(output, expected)
    weights = [tensor for site, tensor in captured.items() if site.endswith(".weights")]
    assert len(weights) == len(library.attentions) > 0
    assert all(map(torch.equal, weights, (each[0] for each in library.attentions)))
    streams = [tensor for site, tensor in captured.items() if site.endswith(".before")]
    assert all(map(torch.equal, streams, (each[0] for each in library.hidden_states)))

    assert TEXT[0] % EVERY == 0
    if streams:
        sizes = torch.stack(streams).abs()
        assert sizes.max() > 20 * sizes.median()
    resting = torch.stack([each[:, 1:, 0].mean(dim=1).max() for each in weights])
    assert resting.max() > 1.5 / len(TEXT)


@pytest.mark.parametrize("mode", ["mean", "cls", "max"])
@pytest.mark.parametrize("name", TYPES["vector"].split())
def test_a_vector_is_pooled_from_the_states_of_the_library(name, mode):
    with quiet():
        module, _ = make(name, "vector")
    with torch.inference_mode(), quiet():
        states = module(input_ids=torch.tensor([TEXT])).last_hidden_state[0]
    model = serve_module(module, "vector", name)
    hidden = model.read([TEXT], None, sites=["last_hidden_state"])["last_hidden_state"][0]
    pooled = {"mean": states.mean(0), "cls": states[0], "max": states.max(0).values}[mode]
    expected = torch.nn.functional.normalize(pooled, dim=0)
    made = vector_of(hidden.numpy(), Pooling(mode, is_normalized=True))
    np.testing.assert_allclose(made, expected, rtol=0, atol=1e-6)


def test_a_model_that_pools_its_tokens_on_the_way_is_refused_with_the_shape_of_its_softmax():
    with quiet():
        module, _ = make("funnel", "vector")
    with pytest.raises(CheckpointError, match=r"shape \(2, 4, 6, 11\) for texts of 11 tokens"):
        serve_module(module, "vector", "funnel")
    with quiet():
        canine = transformers.CanineModel(transformers.CanineConfig(num_hidden_layers=1)).eval()
    with pytest.raises(CheckpointError, match="reads no tokens of a vocabulary"):
        serve_module(canine, "vector", "canine")
