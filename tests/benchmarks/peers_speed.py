"""A forward pass with all attention weights, compared with the libraries that people use.

    make bench

One random model of GPT-2 small's shape, the same weights and the same tokens for everyone, who
run by turns. Noise only ever adds, so each figure is the least of some warm passes. The weights
stay where the model runs, as each library gives them.
"""

import time
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import NamedTuple

import torch
from torch import Tensor
from transformers import GPT2Config, GPT2LMHeadModel

from tests.model.references.test_gpt2 import copy as copy_gpt2

SIZES = {"n_layers": 12, "n_heads": 12, "d_model": 768, "d_ff": 3072}
GPT2_SIZES = {**SIZES, "vocab_size": 50257, "max_tokens": 1024, "norm_epsilon": 1e-5}
LENGTHS = (64, 256, 1024)
N_ROUNDS = {64: 7, 256: 5, 1024: 3}
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
OURS, BARE = "Headlight", "Headlight, nothing captured"
SITES = ["decoder.layers.*.self_attention.weights"]


class Read(NamedTuple):
    """One pass as a library returns it: logits, and a tensor of weights for each layer."""

    logits: Tensor
    weights: Sequence[Tensor]


Reader = Callable[[Tensor], Read]


def test_forward_and_all_weights_beside_the_peers(table):
    torch.manual_seed(0)
    gpt2 = GPT2LMHeadModel._from_config(
        GPT2Config(activation_function="gelu"), attn_implementation="eager"
    ).eval()
    for device in DEVICES:
        readers, missing = readers_of(gpt2.to(device))
        for length in LENGTHS:
            ids = torch.randint(gpt2.config.vocab_size, (1, length), device=device)
            assert_same(readers, ids)
            times = measure(readers, ids, N_ROUNDS[length])
            tell(table, f"{device}, {length} tokens", times, missing)


def readers_of(gpt2):
    """Return the libraries that can read the model, by name, and why the others cannot."""
    model = copy_gpt2(gpt2, **GPT2_SIZES).to(gpt2.device)
    readers: dict[str, Reader] = {OURS: captured_by(model)}
    missing: dict[str, str] = {}
    peers = {
        "Hugging Face, output_attentions=True": hugging_face,
        "TransformerLens, run_with_cache": transformer_lens,
        "nnsight, trace": nnsight,
    }
    for name, peer in peers.items():
        try:
            readers[name] = peer(deepcopy(gpt2))
        except ImportError as error:
            missing[name] = f"not measured: {error}"
    return readers | {BARE: lambda ids: Read(model(ids).logits, ())}, missing


def captured_by(model):
    def read(ids):
        with model.capture(SITES) as captured:
            logits = model(ids).logits
        return Read(logits, list(captured.values()))

    return read


def hugging_face(gpt2):
    def read(ids):
        output = gpt2(ids, output_attentions=True, use_cache=False)
        return Read(output.logits, output.attentions)

    return read


def transformer_lens(gpt2):
    from tokenizers import Tokenizer
    from tokenizers.models import BPE
    from transformer_lens.model_bridge import TransformerBridge
    from transformers import PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(BPE()), eos_token="</s>")
    bridge = TransformerBridge.boot_transformers("gpt2", hf_model=gpt2, tokenizer=tokenizer)

    def read(ids):
        logits, cache = bridge.run_with_cache(
            ids, names_filter=lambda name: name.endswith("hook_pattern")
        )
        return Read(logits, [cache["pattern", layer] for layer in range(SIZES["n_layers"])])

    return read


def nnsight(gpt2):
    from nnsight import NNsight, save

    model = NNsight(gpt2)

    def read(ids):
        with model.trace(ids, use_cache=False):
            weights = save([])
            for layer in model.transformer.h:
                weights.append(layer.attn.output[1])
            logits = save(model.output.logits)
        return Read(logits, weights)

    return read


@torch.no_grad()
def assert_same(readers, ids):
    """Check that all libraries read the same model: logits and weights agree."""
    expected = readers[OURS](ids)
    assert len(expected.weights) == SIZES["n_layers"]
    for name, reader in readers.items():
        actual = reader(ids)
        torch.testing.assert_close(actual.logits, expected.logits, rtol=0, atol=1e-4, msg=name)
        assert len(actual.weights) == (0 if name == BARE else SIZES["n_layers"])
        for mine, theirs in zip(expected.weights, actual.weights, strict=False):
            torch.testing.assert_close(theirs, mine, rtol=0, atol=1e-5, msg=name)


@torch.no_grad()
def measure(readers, ids, n_rounds):
    """Return the least milliseconds of each reader."""
    clock = on_the_gpu if ids.is_cuda else on_the_cpu
    times: dict[str, list[float]] = {name: [] for name in readers}
    for _ in range(n_rounds):
        for name, reader in readers.items():
            times[name].append(clock(lambda reader=reader: reader(ids)))
    return {name: min(taken) for name, taken in times.items()}


def on_the_cpu(work):
    """Return milliseconds of the processor, to which other programs do not add."""
    began = time.process_time()
    work()
    return 1e3 * (time.process_time() - began)


def on_the_gpu(work):
    """Return the milliseconds between two events on the GPU, which does nothing else."""
    began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    began.record()
    work()
    ended.record()
    torch.cuda.synchronize()
    return float(began.elapsed_time(ended))


def tell(table, where, times, missing):
    """Add a row for each library, with its time as a multiple of ours."""
    section = f"Forward and all weights, GPT-2 small's shape, {where}"
    for name, taken in times.items():
        table.add(section, name, f"{taken:.0f} ms, {taken / times[OURS]:.2f} ×")
    for name, reason in missing.items():
        table.add(section, name, reason)
