"""A rotation that depends on the length of a text is that of the text, in any company."""

import pytest
import torch

from headlight.model.checkpoint.files import CheckpointError
from headlight.model.foreign import rotations
from headlight.model.foreign.checks import Checked
from headlight.model.foreign.loading import quiet
from headlight.model.foreign.model import serve_module
from headlight.model.foreign.rotations import Switch, separates
from headlight.model.generation.sampling import Sampling, generate
from headlight.model.served import RowCapture
from tests.tiny_checkpoints import SIZES

SHORT, LONG = 16, 64
LONGROPE = {
    "rope_type": "longrope",
    "rope_theta": 1e4,
    "short_factor": [1.0, 1.1, 1.2, 1.3],
    "long_factor": [2.0, 4.0, 8.0, 12.0],
    "factor": LONG / SHORT,
    "original_max_position_embeddings": SHORT,
}
DYNAMIC = {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 4.0}
SITE = "decoder.layers.1.self_attention.weights"
TEXT = [5 + 37 * place % 290 for place in range(40)]


def make(kind):
    """Return a random model with a switch at 16 tokens, made by the library only."""
    if kind == "dynamic":
        module = new_model("Llama", rope_parameters=DYNAMIC)
        for each in module.modules():
            if hasattr(each, "rope_type"):
                each.original_max_seq_len = each.max_seq_len_cached = SHORT
                each.config.max_position_embeddings = SHORT
        return module
    if kind == "phimoe":
        rope = {**LONGROPE, "short_mscale": 1.2, "long_mscale": 1.4}
        return new_model("Phimoe", rope, num_local_experts=4, num_experts_per_tok=2)
    return new_model("Phi3", LONGROPE, original_max_position_embeddings=SHORT)


def new_model(name, rope_parameters, **changes):
    """Return a random model of a class, its weights large enough that a rotation shows."""
    import transformers

    kind = getattr(transformers, f"{name}ForCausalLM")
    torch.manual_seed(1)
    with quiet():
        config = kind.config_class(
            **SIZES, **changes, num_key_value_heads=2, rope_parameters=rope_parameters
        )
        config._experts_implementation = "eager"
        module = kind(config).eval()
    for parameter in module.parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=0.25)
    return module


@pytest.fixture(scope="module", params=["phi3", "phimoe", "dynamic"])
def pair(request):
    """Return a served model, and a function of a new one of the library's weights for a text."""

    def weights(text):
        module = make(request.param)
        with torch.inference_mode(), quiet():
            module.set_attn_implementation("eager")
            return module(torch.tensor([text]), output_attentions=True).attentions[1][0]

    served = serve_module(make(request.param), "causal", "tiny")
    served.config.__dict__["max_tokens"] = LONG
    return served, weights


def test_a_short_text_keeps_its_rotation_in_a_batch_and_after_a_long_text(pair):
    served, weights = pair
    texts = [TEXT, TEXT[:9]]
    together = served.read(texts, None, sites=[SITE])[SITE]
    (after,) = served.read(texts[1:], None, sites=[SITE])[SITE]
    torch.testing.assert_close(together[0], weights(TEXT), rtol=0, atol=1e-5)
    torch.testing.assert_close(together[1, :, :9, :9], weights(TEXT[:9]), rtol=0, atol=1e-5)
    torch.testing.assert_close(after, weights(TEXT[:9]), rtol=0, atol=1e-5)


def test_a_text_is_rotated_for_its_own_length_after_one_that_is_longer(pair):
    served, weights = pair
    for n_tokens in (40, 20, 16, 17):
        (actual,) = served.read([TEXT[:n_tokens]], None, sites=[SITE])[SITE]
        torch.testing.assert_close(actual, weights(TEXT[:n_tokens]), rtol=0, atol=1e-5)


def test_a_cached_row_beyond_the_switch_is_that_of_the_whole_text(pair):
    served, weights = pair
    writer = served.writer()
    assert writer.use_cache
    cache = writer.new_cache()
    writer.extend(cache, TEXT[:14])
    for n_tokens in range(15, 20):
        _, (row,) = writer.step([cache], [TEXT[n_tokens - 1]], [RowCapture((SITE,))])
        expected = weights(TEXT[:n_tokens])[:, -1]
        torch.testing.assert_close(row[SITE].reshape(expected.shape), expected, rtol=0, atol=1e-5)


def test_texts_are_continued_over_the_switch_as_transformers_does():
    served, module = serve_module(make("phi3"), "causal", "tiny"), make("phi3")
    written = generate(served.writer(), TEXT[:12], n_tokens=8, sampling=Sampling(temperature=0))
    with torch.inference_mode(), quiet():
        ids = torch.tensor([TEXT[:12]])
        out = module.generate(ids, max_new_tokens=8, do_sample=False, eos_token_id=None)
    assert [token.id for token in written] == out[0, 12:].tolist()


@pytest.mark.parametrize("n_tokens", [10, 30])
def test_positions_are_those_of_a_text_of_the_length(pair, n_tokens):
    served, _ = pair
    if served.description.rotation is None:
        assert "rotation" in served.description.omitted
        return
    path = "decoder.layers.0.self_attention"
    sites = [f"{path}.queries", f"{path}.rotated_queries"]
    before, after = served.read([TEXT[:n_tokens]], None, sites=sites).values()
    rotation, encoding = served.description.rotation, served.positions(n_tokens)
    cos, sin = (torch.from_numpy(encoding[name].data) for name in ("cos", "sin"))
    first, second = before[..., rotation.first], before[..., rotation.second]
    torch.testing.assert_close(after[..., rotation.first], first * cos - second * sin)
    assert rotation.n_tokens <= SHORT


def test_a_rotation_of_another_switch_than_the_library_s_is_refused(monkeypatch):
    def keep_state(module, *given, **named):
        return type(module).forward(module, *given, **named)

    monkeypatch.setattr(rotations, "_call_copy", keep_state)
    module = make("dynamic")
    with pytest.raises(CheckpointError, match="its rotation differs by"):
        serve_module(module, "causal", "tiny")


def test_the_check_of_a_switch_is_measured(pair):
    served, _ = pair
    assert served.description.checks["rotation_switch"] <= 1e-6
    assert isinstance(served.checked, Checked)


@pytest.mark.parametrize(
    ("lengths", "steady", "growing"),
    [
        ((3, 16), False, False),
        ((16, 17), True, True),
        ((17, 30), False, True),
        ((17, 17), False, False),
    ],
)
def test_lengths_are_apart_on_two_sides_of_a_switch(lengths, steady, growing):
    assert separates([Switch(16, is_growing=False)], lengths) == steady
    assert separates([Switch(16, is_growing=True)], lengths) == growing
