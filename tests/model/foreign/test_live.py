"""A model that is in memory is read in one line, and stays as it was."""

import copy
import gc
import weakref

import pytest
import torch
from torch import nn

import headlight
from headlight.model.checkpoint.files import CheckpointError
from headlight.model.foreign import load_foreign
from headlight.model.foreign.live import load_live
from headlight.model.interventions.head_ablation import HeadAblation
from tests.tiny_checkpoints import ARCHITECTURES, make_model, save_checkpoint

IDS = [5, 40, 17, 90, 41, 8]


def state_of(model):
    """Return what a caller could notice: flags, hooks, attributes, config and numbers."""
    modules = {
        name: (
            type(module),
            sorted(module.__dict__),
            module.training,
            *(len(getattr(module, hooks)) for hooks in ("_forward_hooks", "_forward_pre_hooks")),
        )
        for name, module in model.named_modules()
    }
    parameters = {
        name: (each.requires_grad, each.data_ptr(), each.detach().clone(), each.grad)
        for name, each in model.named_parameters()
    }
    attributes = {
        # The library caches a value on the class, when it is first asked for.
        kind: sorted(name for name in vars(kind) if not name.endswith("_cached_value"))
        for kind in map(type, model.modules())
    }
    return modules, parameters, attributes, model.config.to_json_string()


def assert_same(before, after):
    for one, other in zip(before[1].values(), after[1].values(), strict=True):
        assert one[:2] == other[:2]
        assert torch.equal(one[2], other[2])
        assert one[3] is other[3]
    assert (before[0], *before[2:]) == (after[0], *after[2:])


def logits_of(model, ids=IDS):
    with torch.no_grad():
        inputs = {"input_ids": torch.tensor([ids])}
        if model.config.is_encoder_decoder:
            inputs["decoder_input_ids"] = torch.tensor([ids])
        return model(**inputs).logits[0]


@pytest.mark.parametrize("name", ["gpt2", "llama", "mixtral", "bert", "t5", "bloom"])
def test_the_caller_s_model_is_as_it_was_and_its_numbers_are_read(name):
    model = make_model(name)
    before, expected = state_of(model), logits_of(model)
    served = load_live(model)
    assert_same(before, state_of(model))
    if model.config.is_encoder_decoder:
        logits = served.read([IDS], [IDS], sites=["logits"])["logits"][0]
        assert torch.allclose(logits, expected, atol=1e-5)
    else:
        trace = headlight.trace(served, ids=IDS, capture="logits")
        assert torch.allclose(torch.tensor(trace["logits"]), expected, atol=1e-5)
    assert_same(before, state_of(model))
    assert torch.equal(logits_of(model), expected)
    assert load_live(model).seconds > 0  # a second time


def test_a_step_of_training_after_it_works_and_is_seen():
    model = make_model("llama").train()
    hook = model.lm_head.register_forward_hook(lambda *_: seen.append(1))
    seen = []
    served = load_live(model)
    first = headlight.trace(served, ids=IDS, capture="logits")["logits"]
    assert seen == []
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    tokens = torch.tensor([IDS])
    model(input_ids=tokens, labels=tokens).loss.backward()
    optimizer.step()
    assert seen == [1]
    hook.remove()
    assert model.training
    after = headlight.trace(served, ids=IDS, capture="logits")["logits"]
    assert abs(first - after).max() > 1e-3
    assert torch.allclose(torch.tensor(after), logits_of(model.eval()), atol=1e-5)


def test_the_parameters_are_shared_and_released():
    model = make_model("gpt2")
    with load_live(model) as served:
        shared = {each.data_ptr() for each in served.module.parameters()}
        assert shared == {each.data_ptr() for each in model.parameters()}
        copied = weakref.ref(served.module)
    gc.collect()
    assert copied() is None
    with pytest.raises(ValueError, match="closed"):
        headlight.trace(served, ids=IDS)
    served = load_live(model)
    copied, caller = weakref.ref(served.module), weakref.ref(model)
    del served, model
    gc.collect()
    assert copied() is None
    assert caller() is None


def test_the_self_check_runs_once_for_each_state(monkeypatch):
    from headlight.model.foreign import model as file

    ran = []
    check = file.check
    monkeypatch.setattr(file, "check", lambda *given: ran.append(1) or check(*given))
    model = make_model("gpt2")
    assert "checked in" in repr(load_live(model))
    load_live(model)
    assert len(ran) == 1
    with torch.no_grad():
        model.lm_head.weight.mul_(1.5)
    load_live(model)
    assert len(ran) == 2


def test_a_tokenizer_in_memory_gives_the_tokens_of_its_folder(tmp_path):
    transformers = pytest.importorskip("transformers")
    folder = tmp_path / "llama"
    save_checkpoint("llama", folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    text = "“It’s” a cat </s> on Läufer"
    special = tokenizer(text)["input_ids"]
    served, known = headlight.load(model, tokenizer), load_foreign(folder)
    one, other = headlight.trace(served, text), headlight.trace(known, text)
    assert one.tokens == other.tokens
    site = "decoder.layers.0.self_attention.weights"
    assert abs(one[site] - other[site]).max() < 1e-6
    assert tokenizer(text)["input_ids"] == special  # the caller's settings
    off = headlight.trace(served, text, interventions=[HeadAblation(heads=(1,), layer=0)])
    deeper = site.replace("layers.0", "layers.1")
    assert abs(off[deeper] - one[deeper]).max() > 1e-4
    assert "iframe" in one.show()._repr_html_()


def test_a_text_is_continued_as_the_library_does():
    model = make_model("llama")
    model.generation_config.eos_token_id = None
    written = headlight.generate(load_live(model), ids=IDS, n_tokens=5)
    ids = model.generate(torch.tensor([IDS]), do_sample=False, max_new_tokens=5, pad_token_id=0)
    assert written == " ".join(f"<{token}>" for token in ids[0, len(IDS) :].tolist())


def test_in_bfloat16_compiled_and_parallel():
    model = make_model("llama").to(torch.bfloat16)
    served = load_live(torch.compile(model, backend="eager"))
    assert load_live(nn.DataParallel(model)).precision == "bfloat16"
    assert served.precision == "bfloat16"
    assert headlight.trace(served, ids=IDS).precision == "bfloat16"


def test_what_is_no_model_is_refused_in_a_sentence():
    transformers = pytest.importorskip("transformers")
    with pytest.raises(TypeError, match="not a Linear"):
        headlight.load(nn.Linear(2, 2))
    with pytest.raises(TypeError, match="no tokenizer of Transformers"):
        load_live(make_model("gpt2"), 5)
    two = transformers.BertForPreTraining(transformers.BertConfig(**ARCHITECTURES["bert"][1]))
    with pytest.raises(CheckpointError, match="BertForPreTraining puts out neither tokens nor"):
        load_live(two)
    with pytest.raises(ValueError, match="without a tokenizer; ask it by ids"):
        headlight.trace(load_live(make_model("gpt2")), "a text")
    model = make_model("gpt2")
    model.held = (model.lm_head.weight * 2).sum()  # not a leaf
    with pytest.raises(CheckpointError, match="cannot be copied"):
        load_live(model)
    del model.held
    before = copy.deepcopy(model.state_dict())
    load_live(model)  # a second try, after a failure
    assert all(torch.equal(before[name], each) for name, each in model.state_dict().items())
