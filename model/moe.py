"""Mixture of experts: a router sends each token to top_k of n_experts feed-forward networks.

    p = softmax(x·W_gate)      y = Σ p_e/Σp · Expert_e(x)   over the top_k experts by p

Shazeer et al. 2017, https://arxiv.org/abs/1701.06538; balance loss: Fedus et al. 2021,
https://arxiv.org/abs/2101.03961.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from headlight.model.config import TransformerConfig
from headlight.model.feed_forward import FeedForward
from headlight.model.hooks import HookPoint


class LayerOutput(NamedTuple):
    """The output of the experts, of a layer or of a stack, and the load-balancing loss.

    Without gradients the loss is not computed, and 0.
    """

    output: Tensor
    balance_loss: Tensor


def load_balance_loss(
    router_probs: Float[Tensor, "token expert"], expert_indices: Int[Tensor, "token top_k"]
) -> Float[Tensor, ""]:
    """Return n_experts·Σ f_e·P_e: 1 for a balanced load, n_experts if one expert takes all tokens.

    f_e is the share of the choices that fall on expert e, P_e its mean probability; the gradient
    flows through P_e. Fedus et al. 2021, section 2.2.
    """
    n_experts = router_probs.shape[-1]
    load = expert_indices.flatten().bincount(minlength=n_experts) / expert_indices.numel()
    return n_experts * (load * router_probs.mean(dim=0)).sum()


# 192 tokens are enough to balance eight experts, and few enough that no expert can specialise in a
# range of positions or in a kind of row.
BLOCK_ROWS, BLOCK_POSITIONS = 6, 32


def blockwise_balance_loss(
    router_probs: Float[Tensor, "batch query expert"],
    expert_indices: Int[Tensor, "batch query top_k"],
    is_token: Bool[Tensor, "batch query"] | None = None,
) -> Float[Tensor, ""]:
    """Return the mean of `load_balance_loss` over blocks of 6 rows and 32 positions.

    Padding, where `is_token` is False, is not counted. A loss over the whole batch would let the
    router reserve some experts for the first positions or for a kind of row, and a short text would
    then never reach the others.
    """
    n_rows, n_positions, n_experts = router_probs.shape
    top_k = expert_indices.shape[-1]
    counted = torch.ones_like(router_probs[..., :1])
    if is_token is not None:
        counted = counted * is_token[..., None]
    # 1. The number of each token's block.
    rows = torch.arange(n_rows, device=router_probs.device) // BLOCK_ROWS
    columns = torch.arange(n_positions, device=router_probs.device) // BLOCK_POSITIONS
    n_columns = -(-n_positions // BLOCK_POSITIONS)
    block = (rows[:, None] * n_columns + columns).flatten()
    # 2. Per block: its tokens, the choices of each expert, the sums of probabilities.
    n_blocks = -(-n_rows // BLOCK_ROWS) * n_columns
    empty = router_probs.new_zeros(n_blocks, n_experts)
    ones = torch.ones_like(expert_indices, dtype=router_probs.dtype)
    chosen = torch.zeros_like(router_probs).scatter_add(-1, expert_indices, ones)
    sizes = empty[:, :1].index_add(0, block, counted.flatten(0, 1))
    choices = empty.index_add(0, block, (chosen * counted).flatten(0, 1))
    probs = empty.index_add(0, block, (router_probs * counted).flatten(0, 1))
    # 3. Σ over blocks of size/n_tokens · n_experts·Σ choices/(size·top_k) · probs/size.
    return n_experts * (choices * probs / (sizes.clamp(min=1) * top_k)).sum() / sizes.sum()


# oneDNN compiles a bfloat16 kernel for each new shape: measured, 1.7 ms for a product of 0.2 ms.
# The blocks of a training step are padded to a multiple of this, so that few shapes occur.
PADDED_TOKENS = 256


class Experts(nn.Module):
    """A router and its experts; each expert runs once, on all tokens routed to it."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        assert config.moe is not None
        n_experts, top_k = config.moe.n_experts, config.moe.top_k
        self.top_k = top_k
        self.router = nn.Linear(config.d_model, n_experts, bias=False)
        self.experts = nn.ModuleList(FeedForward(config) for _ in range(n_experts))
        self.router_logits = HookPoint("batch query expert", expert=n_experts)
        self.router_probs = HookPoint("batch query expert", expert=n_experts)
        self.expert_indices = HookPoint("batch query top_k", top_k=top_k)
        self.expert_weights = HookPoint("batch query top_k", top_k=top_k)
        self.expert_outputs = HookPoint(
            "batch query top_k d_model", top_k=top_k, d_model=config.d_model
        )
        self.output = HookPoint("batch query d_model", d_model=config.d_model)

    def forward(
        self,
        x: Float[Tensor, "batch query d_model"],
        is_token: Bool[Tensor, "batch query"] | None = None,
    ) -> LayerOutput:
        """Route every token, run the experts, and sum their outputs by the expert weights.

        Args:
            x: the normalised stream.
            is_token: False at padding, which is left out of the balance loss.
        """
        # 1. The probability of each expert for each token.
        router_logits = self.router_logits(self.router(x))
        wide = torch.promote_types(router_logits.dtype, torch.float32)
        router_probs = self.router_probs(router_logits.to(wide).softmax(dim=-1))
        # 2. Keep the top_k experts, and normalise their probabilities to sum to 1.
        top_probs, top_indices = router_probs.topk(self.top_k, dim=-1)
        expert_indices = self.expert_indices(top_indices)
        expert_weights = self.expert_weights(top_probs / top_probs.sum(dim=-1, keepdim=True))
        # 3. Run the chosen experts and sum their weighted outputs.
        written = self._run(
            x.flatten(0, 1), expert_indices.flatten(0, 1), expert_weights.flatten(0, 1)
        )
        written = self.expert_outputs(written.unflatten(0, x.shape[:2]))
        output = self.output(written.sum(dim=2))
        # 4. The loss is for training; it would take a tenth of a pass that only reads.
        if not torch.is_grad_enabled():
            return LayerOutput(output, output.new_zeros(()))
        return LayerOutput(output, blockwise_balance_loss(router_probs, expert_indices, is_token))

    def _run(
        self,
        tokens: Float[Tensor, "token d_model"],
        expert_indices: Int[Tensor, "token top_k"],
        expert_weights: Float[Tensor, "token top_k"],
    ) -> Float[Tensor, "token top_k d_model"]:
        """Return the output of each chosen expert times its weight.

        The (token, expert) pairs are sorted by expert, so that each expert runs on one block.
        """
        if torch.compiler.is_exporting():  # a graph cannot split by counts that depend on numbers
            written = tokens.new_zeros(expert_indices.numel(), tokens.shape[-1])
            for number, expert in enumerate(self.experts):
                pairs = (expert_indices.flatten() == number).nonzero()[:, 0]
                block = tokens.index_select(0, pairs // self.top_k)
                written = written.index_put((pairs,), expert(block))
            by_pair: Tensor = written.unflatten(0, (-1, self.top_k))
            return by_pair * expert_weights[..., None]
        order = expert_indices.flatten().argsort(stable=True)
        counts = expert_indices.flatten().bincount(minlength=len(self.experts)).tolist()
        blocks = tokens.index_select(0, order // self.top_k).split(counts)
        run = _run_padded if _compiles_each_shape(tokens) else _run_whole
        outputs = torch.cat(
            [run(expert, block) for expert, block in zip(self.experts, blocks, strict=True)]
        )
        outputs = outputs.index_select(0, order.argsort())
        by_token: Tensor = outputs.unflatten(0, (-1, self.top_k))
        return by_token * expert_weights[..., None].to(by_token.dtype)


def _compiles_each_shape(tokens: Tensor) -> bool:
    """Return True if a training step computes in bfloat16 on a processor, with oneDNN's kernels."""
    is_step = torch.is_grad_enabled() and tokens.device.type == "cpu"
    return is_step and torch.is_autocast_enabled("cpu")


def _run_whole(expert: nn.Module, block: Tensor) -> Tensor:
    output: Tensor = expert(block)
    return output


def _run_padded(expert: nn.Module, block: Tensor) -> Tensor:
    """Run an expert on a block padded to a multiple of `PADDED_TOKENS`."""
    return _run_whole(expert, F.pad(block, (0, 0, 0, -len(block) % PADDED_TOKENS)))[: len(block)]
