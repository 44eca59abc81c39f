"""EAP-IG on the shape of GPT-2 small, against a batched forward and backward pass.

    python -m tests.benchmarks.circuits

Random weights; 32 pairs of 16 tokens and 5 steps, on one thread unless OMP_NUM_THREADS says
otherwise. The unit is one forward and one backward pass of all pairs, with logits at all positions.
TransformerLens is measured if it is installed: its hooks collect the same gradients and writers.
"""

from __future__ import annotations

import resource
from time import perf_counter

import torch

from headlight.model.analysis.circuit_passes import Pair, PairPasses
from headlight.model.analysis.edge_scores import gradient_scores
from headlight.model.foreign.loading import quiet
from headlight.model.foreign.model import serve_module

N_PAIRS, N_TOKENS, STEPS = 32, 16, 5
N_ROUNDS = 2


def timed(work, rounds=N_ROUNDS):
    times = []
    for _ in range(rounds):
        began = perf_counter()
        work()
        times.append(perf_counter() - began)
    return min(times)


def main():
    import transformers

    torch.manual_seed(0)
    with quiet():
        module = transformers.GPT2LMHeadModel(transformers.GPT2Config()).eval()
    model = serve_module(module, "causal", "gpt2")
    draw = torch.randint(0, 50_000, (2, N_PAIRS, N_TOKENS)).tolist()
    pairs = tuple(
        Pair(
            clean=tuple(clean),
            corrupted=(*clean[:5], other[5], *clean[6:]),
            right=(11,),
            wrong=(12,),
            position=N_TOKENS - 1,
        )
        for clean, other in zip(*draw, strict=True)
    )
    passes = PairPasses(model, pairs, max_bytes=2**31)
    print(f"{len(passes.graph.edges):,} edges")  # noqa: T201
    ids = torch.tensor([pair.clean for pair in pairs])

    def unit():
        embedded = module.transformer.wte(ids).requires_grad_()
        logits = module(inputs_embeds=embedded, use_cache=False).logits
        logits[:, -1, 11].sum().backward()

    one = timed(unit)
    whole = timed(lambda: gradient_scores(passes, STEPS))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"one pass {one:.2f} s; EAP-IG {whole:.2f} s, {whole / one:.1f} times")  # noqa: T201
    print(f"peak {peak:.1f} GiB")  # noqa: T201


if __name__ == "__main__":
    main()
