"""A Hugging Face checkpoint with and without observers, compared with other libraries.

    make bench

One random GPT-2 of the small model's shape in one process: all readers share its weights and read
the same tokens by turns. A ratio is the median over the rounds of a reader's time by that of the
library's own SDPA pass in the same round, so that a busy machine weighs on both.

At 1,024 tokens all weights take 1.14 times the pass in processor time: products of queries and
keys, softmax and the mask are 1.6 times the fused kernel, which is an eighth of the pass.
"""

from copy import deepcopy
from statistics import median

import pytest
import torch

from tests.benchmarks.peers_speed import (
    DEVICES,
    hugging_face,
    nnsight,
    on_the_cpu,
    on_the_gpu,
    transformer_lens,
)

LENGTHS = (64, 256, 1024)
N_ROUNDS = {64: 15, 256: 9, 1024: 5}
BARE, EAGER = "SDPA, nothing read", "eager, nothing read"
NOBODY, ONE, ALL = "Headlight, nobody looks", "Headlight, one layer", "Headlight, all weights"
TARGETS = {
    NOBODY: dict.fromkeys(LENGTHS, 1.06),
    ONE: dict.fromkeys(LENGTHS, 1.12),
    ALL: {64: 1.10, 256: 1.10, 1024: 1.2},
}
ALL_OF_EAGER = 1.05
PEERS = {
    "Hugging Face, output_attentions=True": hugging_face,
    "TransformerLens, run_with_cache": transformer_lens,
    "nnsight, trace": nnsight,
}


@pytest.fixture(scope="module")
def gpt2():
    """Return a random model of GPT-2 small's shape and a copier of all but its weights."""
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    torch.set_num_threads(1)
    first = GPT2LMHeadModel._from_config(GPT2Config(), attn_implementation="eager").eval()

    def copy(implementation="eager", device="cpu"):
        first.to(device)
        shared = {id(tensor): tensor for tensor in (*first.parameters(), *first.buffers())}
        made = deepcopy(first, shared)
        made.set_attn_implementation(implementation)
        return made

    return copy


@pytest.mark.parametrize("device", DEVICES)
def test_a_foreign_pass_beside_sdpa_and_the_peers(gpt2, table, device):
    readers, missing = readers_of(gpt2, device)
    for length in LENGTHS:
        ids = torch.randint(50257, (1, length), device=device)
        require_equal(readers, ids)
        ratios = measure(readers, ids, N_ROUNDS[length])
        section = f"A Hugging Face GPT-2 small, {device}, {length} tokens"
        for name, ratio in ratios.items():
            target = TARGETS.get(name, {}).get(length)
            told = "" if target is None else f"≤ {target} ×"
            met = None if target is None else ratio <= target
            table.add(section, name, f"{ratio:.2f} × SDPA", told, met)
        of_eager = ratios[ALL] / ratios[EAGER]
        table.add(
            section,
            f"{ALL}, of eager",
            f"{of_eager:.2f} ×",
            f"≤ {ALL_OF_EAGER} ×",
            of_eager <= ALL_OF_EAGER,
        )
        for name, reason in missing.items():
            table.add(section, name, reason)


def readers_of(gpt2, device):
    """Return the readers by name, and the reasons of the libraries that are missing."""
    from headlight.model.foreign.model import serve_module

    served = serve_module(gpt2(device=device), "causal", "gpt2")
    layers = [f"decoder.layers.{layer}.self_attention.weights" for layer in range(12)]

    def headlight(*sites):
        return lambda ids: served.read(ids.tolist(), None, sites=("logits", *sites))["logits"]

    sdpa, eager = gpt2("sdpa", device), gpt2("eager", device)
    readers = {
        BARE: lambda ids: sdpa(ids, use_cache=False).logits,
        EAGER: lambda ids: eager(ids, use_cache=False).logits,
        NOBODY: headlight(),
        ONE: headlight(layers[5]),
        ALL: headlight(*layers),
    }
    missing = {}
    for name, peer in PEERS.items():
        try:
            read = peer(gpt2("eager", device))
        except ImportError as error:
            missing[name] = f"not measured: {error}"
        else:
            readers[name] = lambda ids, read=read: read(ids).logits
    return readers, missing


@torch.no_grad()
def require_equal(readers, ids):
    """Raise if a reader reads another model."""
    expected = readers[BARE](ids)
    for name, reader in readers.items():
        torch.testing.assert_close(reader(ids), expected, rtol=0, atol=1e-3, msg=name)


@torch.no_grad()
def measure(readers, ids, n_rounds):
    """Return the median over rounds of each reader's time, in times of the first one's."""
    clock = on_the_gpu if ids.is_cuda else on_the_cpu
    rounds = []
    for _ in range(n_rounds):
        times = {name: clock(lambda read=read: read(ids)) for name, read in readers.items()}
        rounds.append({name: taken / times[BARE] for name, taken in times.items()})
    return {name: median(each[name] for each in rounds) for name in readers}
