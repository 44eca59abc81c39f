"""EAP-IG on the shape of GPT-2 small, against a batched forward and backward pass.

    OMP_NUM_THREADS=1 python -m tests.benchmarks.circuits

Random weights; 32 pairs of 16 tokens and 5 steps. Times are of the processor, which on one thread
are those of a quiet machine. The unit is one forward and one backward pass of all pairs, with
logits at all positions, and gradients of what is read (not of the weights, which no score needs).
TransformerLens before 4 (with HookedTransformer) is measured if it is installed, by the public code
(https://github.com/hannamw/EAP-IG): hooks keep what each part writes, and multiply the differences
by the gradient of each input.
"""

from __future__ import annotations

import resource
from time import process_time

import torch

from headlight.model.circuits.edge_scores import gradient_scores
from headlight.model.circuits.pairs import Pair, PairPasses
from headlight.model.foreign.loading import quiet
from headlight.model.foreign.model import serve_module

N_PAIRS, N_TOKENS, STEPS = 32, 16, 5
N_ROUNDS = 2


def timed(work, rounds=N_ROUNDS):
    times = []
    for _ in range(rounds):
        began = process_time()
        work()
        times.append(process_time() - began)
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
        embedded = module.transformer.wte(ids).detach().requires_grad_()
        logits = module(inputs_embeds=embedded, use_cache=False).logits
        logits[:, -1, 11].sum().backward()

    one = timed(unit)
    whole = timed(lambda: gradient_scores(passes, STEPS))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"one pass {one:.2f} s; EAP-IG {whole:.2f} s, {whole / one:.1f} times")  # noqa: T201
    print(f"peak {peak:.1f} GiB")  # noqa: T201
    try:
        peer = lens(pairs)
    except ImportError as error:
        print(f"not measured: {error}")  # noqa: T201
        return
    theirs = timed(peer, 1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"TransformerLens {theirs:.2f} s, {theirs / one:.1f} times; peak {peak:.1f} GiB")  # noqa: T201


def lens(pairs):
    """Return EAP-IG with the hooks of TransformerLens, on a random model of the same shape."""
    from transformer_lens import HookedTransformer, HookedTransformerConfig

    layers, heads, width = 12, 12, 768
    config = HookedTransformerConfig(
        n_layers=layers,
        n_heads=heads,
        d_model=width,
        d_head=64,
        d_mlp=3072,
        n_ctx=1024,
        d_vocab=50257,
        act_fn="gelu_new",
        normalization_type="LN",
        device="cpu",
    )
    config.use_split_qkv_input = config.use_attn_result = config.use_hook_mlp_in = True
    model = HookedTransformer(config).requires_grad_(False)
    clean, corrupted = (
        torch.tensor([getattr(pair, side) for pair in pairs]) for side in ("clean", "corrupted")
    )
    writers = {"hook_embed": slice(0, 1)}
    readers, n_readers, before = {}, 0, {}
    for layer in range(layers):
        start = 1 + layer * (heads + 1)
        writers[f"blocks.{layer}.attn.hook_result"] = slice(start, start + heads)
        writers[f"blocks.{layer}.hook_mlp_out"] = slice(start + heads, start + heads + 1)
        names = [f"blocks.{layer}.hook_{letter}_input" for letter in "qkv"]
        for name, count, seen in [
            *((name, heads, start) for name in names),
            (f"blocks.{layer}.hook_mlp_in", 1, start + heads),
        ]:
            readers[name] = slice(n_readers, n_readers + count)
            before[name] = seen
            n_readers += count
    last = f"blocks.{layers - 1}.hook_resid_post"
    readers[last], before[last] = slice(n_readers, n_readers + 1), 1 + layers * (heads + 1)

    def scores():
        changes = torch.zeros(*clean.shape, before[last], width)
        total = torch.zeros(before[last], n_readers + 1)
        kept = {}

        def keep(sign):
            def hook(tensor, hook):
                wide = tensor if tensor.ndim == 4 else tensor[:, :, None]
                changes[:, :, writers[hook.name]] += sign * wide.detach()
                if hook.name == "hook_embed":
                    kept[sign] = tensor.detach()

            return [(name, hook) for name in writers]

        with torch.no_grad():
            model.run_with_hooks(corrupted, fwd_hooks=keep(1))
            model.run_with_hooks(clean, fwd_hooks=keep(-1))

        def add(gradient, hook):
            wide = gradient if gradient.ndim == 4 else gradient[:, :, None]
            seen = before[hook.name]
            total[:seen, readers[hook.name]] += torch.einsum(
                "bpwd,bprd->wr", changes[:, :, :seen], wide
            )

        for step in range(STEPS):
            share = (step + 0.5) / STEPS

            def mix(tensor, hook, share=share):
                return torch.lerp(kept[1], kept[-1], share).requires_grad_()

            forward, backward = [("hook_embed", mix)], [(name, add) for name in readers]
            with model.hooks(fwd_hooks=forward, bwd_hooks=backward):
                model(clean)[:, -1, 11].sum().backward()
        return total

    return scores


if __name__ == "__main__":
    main()
