"""The numbers of a foreign model are those of Transformers, and follow from one another."""

import threading

import pytest
import torch

from headlight.model.checkpoint.files import CheckpointError
from headlight.model.foreign import attention, checks
from headlight.model.foreign.blockwise_check import WholeMatrices
from headlight.model.foreign.model import serve_module
from headlight.model.foreign.probe import record
from headlight.model.generation.sampling import Continuation, Sampling, generate
from headlight.model.interventions.expert_ablation import ExpertAblation
from headlight.model.interventions.head_ablation import HeadAblation
from headlight.model.interventions.no_scaling import NoScaling
from headlight.model.interventions.site_edit import SiteEdit
from headlight.model.served import UnwatchedPass
from tests.model.foreign.conftest import ARCHITECTURES
from tests.tiny_checkpoints import SIZES, make_model

TEXT = [5, 40, 17, 90, 41, 8, 230, 66, 12, 99]
TARGET = [0, 33, 71, 250, 14, 7]


def inputs_of(model, text=TEXT, target=TARGET):
    """Return the texts and targets of a pass."""
    return [text], [target] if model.config.kind == "encoder-decoder" else None


def read(model, *sites, text=TEXT, target=TARGET, **options):
    tensors = model.read(*inputs_of(model, text, target), sites=sites, **options)
    return {site: tensor[0] for site, tensor in tensors.items()}


def everything(model, **options):
    return read(model, *(site.name for site in model.description.sites), **options)


def paths(model):
    return [facts.path for facts in model.description.attentions]


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_logits_and_weights_are_exactly_those_of_eager_attention(name, served, reference):
    model = served(name)
    inputs = {"input_ids": torch.tensor([TEXT])}
    if model.config.kind == "encoder-decoder":
        inputs["decoder_input_ids"] = torch.tensor([TARGET])
    out = reference(name, inputs)
    tensors = everything(model)
    assert torch.equal(tensors["logits"], out.logits[0])
    if model.config.kind == "encoder-decoder":
        expected = {
            **_by_layer("encoder", "self", out.encoder_attentions),
            **_by_layer("decoder", "self", out.decoder_attentions),
            **_by_layer("decoder", "cross", out.cross_attentions),
        }
    else:
        expected = _by_layer(model.config.kind, "self", out.attentions)
    assert expected.keys() == {f"{path}.weights" for path in paths(model)}
    for site, weights in expected.items():
        assert torch.equal(tensors[site], weights[0]), site


def _by_layer(stack, kind, attentions):
    return {
        f"{stack}.layers.{layer}.{kind}_attention.weights": weights
        for layer, weights in enumerate(attentions)
    }


def rounded(out, factor):
    """Enlarge every logit and weight a little, as other kernels might."""
    out.logits = out.logits * factor
    out.attentions = tuple(weights * factor for weights in out.attentions)
    return out


@pytest.mark.parametrize("factor", [1 + 1e-6, 1 + 1e-3])
def test_rounding_is_told_and_any_larger_difference_is_refused(factor, monkeypatch):
    module = make_model("gpt2")
    original = module.forward

    def forward(*args, **options):
        out = original(*args, **options)
        return rounded(out, factor) if options.get("output_attentions") else out

    monkeypatch.setattr(module, "forward", forward)
    if factor > 1 + 1e-5:
        with pytest.raises(CheckpointError, match="differ from those of eager attention by"):
            serve_module(module, "causal", "tiny")
        return
    measured = serve_module(module, "causal", "tiny").description.checks
    for name in ("logits_watched", "logits_unwatched", "weights"):
        assert 0 < measured[name] < 1e-4, name


def test_weights_of_large_scores_may_differ_by_more():
    small, large = (_limits(std) for std in (0.1, 4.0))
    assert small == 1
    assert large > 10


def _limits(std):
    """Return the factor of the limits of weights, of a model with queries of a size."""
    module = make_model("gpt2")
    for layer in module.transformer.h:
        torch.nn.init.normal_(layer.attn.c_attn.weight, std=std)
    ran = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checks, "check_blocks", lambda *arguments: ran.append(arguments[-1]))
        serve_module(module, "causal", "tiny")
    return ran[0]


def test_the_steps_to_the_weights_share_one_tensor(served):
    model = served("llama")
    with WholeMatrices({(len(TEXT), len(TEXT))}) as made:
        read(model, *(f"{path}.weights" for path in paths(model)))
    steps = {step for step in made.found if ".mul" in step or "softmax" in step}
    assert steps == {"aten.mul_.Tensor", "aten.softmax.int_out"}


def test_a_file_that_reads_an_earlier_step_again_keeps_it(monkeypatch):
    from transformers.models.gpt2 import modeling_gpt2

    def eager(module, query, key, value, mask, scaling, **_):
        product = query @ key.transpose(-1, -2)
        weights = (product * scaling + mask).softmax(dim=-1)
        return ((weights + 1e-8 * product) @ value).transpose(1, 2), weights

    monkeypatch.setattr(modeling_gpt2, "eager_attention_forward", eager)
    attention.own_eager.cache_clear()
    try:
        model = serve_module(make_model("gpt2"), "causal", "tiny")
    finally:
        attention.own_eager.cache_clear()
    assert not any(points.is_in_place for _, points in model.named.attention_points)


def test_softmax_and_average_follow_from_the_scores_and_values(model):
    tensors = everything(model)
    for path in paths(model):
        scores, weights = tensors[f"{path}.scores"].double(), tensors[f"{path}.weights"].double()
        sink = tensors.get(f"{path}.sink")
        left = 1 if sink is None else 1 - sink.double()[..., None]
        torch.testing.assert_close(scores.softmax(dim=-1) * left, weights, rtol=0, atol=1e-6)
        torch.testing.assert_close(
            weights @ tensors[f"{path}.values"].double(),
            tensors[f"{path}.context"].double(),
            rtol=0,
            atol=1e-6 * float(tensors[f"{path}.context"].abs().max()) + 1e-9,
        )


@pytest.mark.parametrize("name", ["t5", "bloom"])
def test_a_position_bias_can_be_read_and_changed(name, served):
    model = served(name)
    facts = model.description.attentions[-1 if name == "bloom" else 0]
    sites = [f"{facts.path}.{part}" for part in ("queries", "keys", "bias", "scores")]
    tensors = read(model, *sites)
    queries, keys, bias, scores = (tensors[site].double() for site in sites)
    product = queries @ keys.transpose(-1, -2) * facts.scale
    seen = scores.isfinite()
    torch.testing.assert_close((product + bias)[seen], scores[seen], rtol=0, atol=1e-5)
    assert bool((bias[:, -1].diff(dim=-1).abs() > 1e-3).any())
    edit = SiteEdit(kind="scale", site=sites[2], value=0.0)
    changed = read(model, sites[3], interventions=[edit])[sites[3]].double()
    torch.testing.assert_close(changed[seen], product[seen], rtol=0, atol=1e-5)
    assert not bool(changed[~seen].isfinite().any())


def test_a_bias_is_what_is_added_behind_a_cap(monkeypatch):
    from transformers.models.gemma2 import modeling_gemma2

    def eager(module, query, key, value, mask, scaling, softcap, **_):
        key, value = (tensor.repeat_interleave(2, dim=1) for tensor in (key, value))
        scores = softcap * torch.tanh(query @ key.transpose(-1, -2) * scaling / softcap)
        bias = -0.1 * torch.arange(key.shape[-2])
        weights = (scores + bias + mask).softmax(dim=-1)
        return (weights @ value).transpose(1, 2), weights

    monkeypatch.setattr(modeling_gemma2, "eager_attention_forward", eager)
    attention.own_eager.cache_clear()
    try:
        model = serve_module(make_model("gemma2"), "causal", "tiny")
        sites = [f"decoder.layers.1.self_attention.{part}" for part in ("bias", "scores")]
        tensors = read(model, *sites)
    finally:
        attention.own_eager.cache_clear()
    seen = tensors[sites[1]].isfinite()
    expected = (-0.1 * torch.arange(len(TEXT))).expand_as(seen)
    torch.testing.assert_close(tensors[sites[0]][seen], expected[seen], rtol=0, atol=1e-5)


def test_a_pass_that_nobody_watches_gives_the_same_logits(model):
    watched, plain = everything(model)["logits"], read(model, "logits")["logits"]
    scale = float(watched.abs().max())
    torch.testing.assert_close(plain, watched, rtol=0, atol=1e-5 * scale)


def test_a_head_that_is_off_writes_nothing(model):
    path = paths(model)[-1]
    stack, _, layer, kind = path.split(".")
    where = "cross" if kind.startswith("cross") else stack
    off = HeadAblation(heads=(1,), layer=int(layer), where=where)
    gain = [f"{path}.gain"] if f"{path}.gain" in model.points.hook_points else []
    sites = [f"{path}.context", f"{path}.output", "logits", *gain]
    before, after = read(model, *sites), read(model, *sites, interventions=[off])
    for captured in (before, after):  # a norm behind the projection has another scale without it
        output = captured.pop(f"{path}.output")
        captured[f"{path}.output"] = output / captured.get(f"{path}.gain", torch.ones(()))
    assert not after[f"{path}.context"][1].any()
    rows = torch.from_numpy(model.output_weights(path).data)
    written = before[f"{path}.context"][1] @ rows[1]
    torch.testing.assert_close(
        before[f"{path}.output"] - written, after[f"{path}.output"], rtol=0, atol=1e-5
    )
    assert not torch.equal(before["logits"], after["logits"])


def test_an_expert_that_is_off_is_never_chosen_for_a_correction_of_its_score():
    from transformers import DeepseekV3Config, DeepseekV3ForCausalLM

    widths = dict.fromkeys(("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"), 8)
    ranks = dict.fromkeys(("q_lora_rank", "kv_lora_rank", "moe_intermediate_size"), 16)
    groups = dict.fromkeys(("n_group", "topk_group", "n_shared_experts"), 1)
    config = DeepseekV3Config(
        **{**SIZES, "num_hidden_layers": 1, "num_key_value_heads": 4},
        **widths,
        **ranks,
        **groups,
        n_routed_experts=4,
        num_experts_per_tok=2,
        first_k_dense_replace=0,
    )
    module = DeepseekV3ForCausalLM(config).eval()
    module.model.layers[0].mlp.gate.e_score_correction_bias[1] = 9.0
    model = serve_module(module, "causal", "tiny")
    site = "decoder.layers.0.experts.expert_indices"
    off = [ExpertAblation(experts=(1,))]
    assert (read(model, site)[site] == 1).any(dim=-1).all()
    assert not (read(model, site, interventions=off)[site] == 1).any()


@pytest.mark.parametrize("name", ["mixtral", "gpt_oss"])
def test_expert_weights_are_the_probabilities_of_the_chosen_ones(name, served):
    tensors = everything(served(name))
    path = "decoder.layers.0.experts"
    chosen = tensors[f"{path}.router_probs"].gather(-1, tensors[f"{path}.expert_indices"])
    torch.testing.assert_close(
        chosen / chosen.sum(dim=-1, keepdim=True), tensors[f"{path}.expert_weights"]
    )


def test_padded_rows_are_what_they_are_alone(model):
    short, target = TEXT[:6], TARGET[:3]
    sites = [f"{path}.weights" for path in paths(model)]
    is_pair = model.config.kind == "encoder-decoder"
    together = model.read(
        [TEXT, short], [TARGET, target] if is_pair else None, sites=["logits", *sites]
    )
    alone = read(model, "logits", *sites, text=short, target=target)
    for site, expected in alone.items():
        actual = together[site][1][tuple(slice(size) for size in expected.shape)]
        scale = float(expected.abs().max())
        torch.testing.assert_close(actual, expected, rtol=0, atol=1e-5 * scale)


def test_texts_are_continued_greedily_as_transformers_does(served, reference):
    model = served("llama")
    tokens = generate(model.writer(), TEXT, n_tokens=5, sampling=Sampling(temperature=0))
    written = [token.id for token in tokens]
    expected = list(TEXT)
    for _ in range(5):
        out = reference("llama", {"input_ids": torch.tensor([expected])})
        expected.append(int(out.logits[0, -1].argmax()))
    assert written == expected[len(TEXT) :]


def test_a_masked_model_continues_no_text(served):
    with pytest.raises(ValueError, match="cannot generate"):
        Continuation(served("bert").writer(), TEXT, n_tokens=1, sampling=Sampling())


@pytest.mark.parametrize("name", ["llama", "bloom"])
def test_passes_in_two_threads_have_a_state_each(name, served):
    model = served(name)
    first, second = sites = [f"{path}.scores" for path in paths(model)]
    cases = ([], [NoScaling()])
    alone = [read(model, *sites, interventions=case)[second] for case in cases]
    assert not torch.allclose(*alone, rtol=1e-2, atol=1e-2)
    both, results = threading.Barrier(2), {}

    def wait(scores):
        both.wait(60)
        return scores

    def work(number):
        with model.points.edit(first, wait), model.points.edit(second, wait):
            results[number] = read(model, *sites, interventions=cases[number])[second]

    threads = [threading.Thread(target=work, args=(number,)) for number in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in (0, 1):  # a thread may use more cores than the first, and so other kernels
        torch.testing.assert_close(results[number], alone[number], rtol=1e-5, atol=1e-5)


def test_a_pass_that_goes_another_way_is_an_error(served):
    model = served("bert")
    layer = model.module.bert.encoder.layer[0].attention.self
    original, text = layer.forward, TEXT
    site = "encoder.layers.0.self_attention.weights"
    layer.forward = lambda hidden, *_, **__: (hidden, None)
    try:
        with pytest.raises(UnwatchedPass, match="takes another way"):
            read(model, site, text=text)
    finally:
        layer.forward = original
    assert site in read(model, site, text=text)


class OneSoftmax(torch.nn.Module):
    """A router of three experts, and a softmax over the last axis but one, or over the last."""

    def __init__(self, shape, axis):
        super().__init__()
        self.shape, self.axis, self.gate = shape, axis, torch.nn.Linear(4, 5)

    def forward(self, rows):
        self.gate(rows).topk(3)
        return torch.ones(self.shape).softmax(self.axis)


@pytest.mark.parametrize(
    ("shape", "axis", "n_unseen"),
    [
        pytest.param((22, 5), -1, 0, id="of as many as the matrix makes: a router"),
        pytest.param((2, 11, 3), -1, 0, id="of as many as are chosen: a router"),
        pytest.param((22, 9, 1), 1, 0, id="the filter of a convolution"),
        pytest.param((22, 11), -1, 1, id="over the tokens"),
        pytest.param((2, 11, 12), -1, 1, id="over something else"),
        pytest.param((2, 4, 11, 13), -1, 1, id="of heads over something else"),
    ],
)
def test_a_softmax_that_is_no_routers_must_be_an_attentions(shape, axis, n_unseen):
    recorded = record(OneSoftmax(shape, axis), {"rows": torch.ones(22, 4)}, {(11, 11)})
    assert recorded.n_unseen_softmaxes == n_unseen
