"""A second, slow implementation of a circuit's run, which shares no code with the first.

It hooks the modules of a model with PyTorch's own forward hooks, and builds the input of every
reader by adding up one tensor after another: what each writer wrote in this run if the edge is
kept, or in the corrupted one. A module of the model then makes the query, key or value of it.
"""

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import torch


@dataclass
class Attention:
    """The modules of an attention: queries, keys, values, their norm, and the output.

    ``columns`` maps the letter and the head to the columns of the module's output.
    """

    name: str
    norm: torch.nn.Module
    q: torch.nn.Module
    k: torch.nn.Module
    v: torch.nn.Module
    o: torch.nn.Module
    n_heads: int
    n_groups: int
    d_head: int
    reads: str = "decoder"  # the stack of its keys and values
    factor: float = 1.0

    def columns(self, letter, head):
        width = self.d_head
        group = head if letter == "q" else head // (self.n_heads // self.n_groups)
        start = group * width
        if self.q is self.k:  # one matrix, as GPT-2 has it
            start += "qkv".index(letter) * self.n_heads * width
        return slice(start, start + width)

    def reader(self, letter, head):
        shared = self.n_heads // self.n_groups
        if letter == "q" or shared == 1:
            return f"{self.name}.{head}.{letter}"
        first = head // shared * shared
        return f"{self.name}.{first}-{first + shared - 1}.{letter}"


@dataclass
class Network:
    """The modules of a feed-forward network or of experts, and their norm."""

    name: str
    norm: torch.nn.Module
    body: torch.nn.Module


@dataclass
class Stack:
    """The parts of a stack in order, the module that embeds, and its last norm."""

    name: str
    embedding: torch.nn.Module
    parts: list
    norm: torch.nn.Module
    tokens: str = "tokens"


class SlowRun:
    """A run of a model with the edges in ``kept``; None: with all, which records the writes."""

    def __init__(self, stacks, kept=None, corrupted=None):
        self.stacks, self.kept, self.corrupted = stacks, kept, corrupted
        self.writes = {stack.name: {} for stack in stacks}

    def input_of(self, stack, reader, before):
        total = 0
        for writer in before:
            is_kept = self.kept is None or f"{writer}→{reader}" in self.kept
            total = total + (self.writes[stack] if is_kept else self.corrupted[stack])[writer]
        return total

    @contextmanager
    def hooked(self):
        with ExitStack() as hooks:
            for stack in self.stacks:
                self._hook(stack, hooks)
            yield self

    def _hook(self, stack, hooks):
        written = self.writes[stack.name]

        def embed(_module, _args, output):
            written.setdefault(stack.tokens, output)  # T5 calls its dropout again at the end

        self._on(hooks, stack.embedding, embed)
        before = [stack.tokens]
        for part in stack.parts:
            if isinstance(part, Attention):
                self._attention(stack.name, part, list(before), hooks)
                before += [f"{part.name}.{head}" for head in range(part.n_heads)]
            else:
                self._network(stack.name, part, list(before), hooks)
                before.append(part.name)
        if self.kept is not None and stack is self.stacks[-1]:
            names = list(before)

            def last(module, _args, _output):
                # every write must be there; the bias of an output projection is added back
                bare = sum(written[name] for name in names)
                rest = module.seen - bare
                return type(module).forward(
                    module, self.input_of(stack.name, "logits", names) + rest
                )

            self._pre(hooks, stack.norm)
            self._on(hooks, stack.norm, last)

    def _pre(self, hooks, module):
        def keep(module, args):
            module.seen = args[0]

        handle = module.register_forward_pre_hook(keep)
        hooks.callback(handle.remove)

    def _on(self, hooks, module, function):
        handle = module.register_forward_hook(function)
        hooks.callback(handle.remove)

    def _normed(self, stack, norm, reader, before, seen):
        """Return the norm of a reader's input; biases that no writer has are those of `seen`."""
        own = sum(self.writes[stack][name] for name in before)
        return type(norm).forward(norm, self.input_of(stack, reader, before) + (seen - own))

    def _attention(self, stack, part, before, hooks):
        written = self.writes[stack]
        self._pre(hooks, part.norm)
        at_keys = part.reads
        others = before
        key_norm = part.norm
        if at_keys != stack:
            source = next(each for each in self.stacks if each.name == at_keys)
            names = [source.tokens]
            for each in source.parts:
                if isinstance(each, Attention):
                    names += [f"{each.name}.{head}" for head in range(each.n_heads)]
                else:
                    names.append(each.name)
            others, key_norm = names, source.norm
            self._pre(hooks, source.norm)

        def project(letters):
            def hook(module, _args, output):
                if self.kept is None:
                    return None
                changed = output.clone()
                for letter in letters:
                    for head in range(part.n_heads):
                        stack_read = stack if letter == "q" else at_keys
                        names = before if letter == "q" else others
                        norm = part.norm if letter == "q" else key_norm
                        x = self._normed(
                            stack_read, norm, part.reader(letter, head), names, norm.seen
                        )
                        columns = part.columns(letter, head)
                        made = type(module).forward(module, x)
                        changed[..., columns] = made[..., columns]
                return changed

            return hook

        by_module = {}
        for letter, module in (("q", part.q), ("k", part.k), ("v", part.v)):
            by_module.setdefault(id(module), (module, []))[1].append(letter)
        for module, letters in by_module.values():
            self._on(hooks, module, project(letters))

        def out(module, args):
            weight = module.weight if type(module).__name__ == "Conv1D" else module.weight.T
            width = part.d_head
            for head in range(part.n_heads):
                rows = slice(head * width, (head + 1) * width)
                written[f"{part.name}.{head}"] = args[0][..., rows] @ weight[rows] * part.factor

        handle = part.o.register_forward_pre_hook(out)
        hooks.callback(handle.remove)

    def _network(self, stack, part, before, hooks):
        written = self.writes[stack]
        self._pre(hooks, part.norm)

        def normed(module, _args, _output):
            if self.kept is None:
                return None
            return self._normed(stack, module, part.name, before, module.seen)

        def wrote(_module, _args, output):
            written[part.name] = output if isinstance(output, torch.Tensor) else output[0]

        self._on(hooks, part.norm, normed)
        self._on(hooks, part.body, wrote)


def own_stacks(model):
    """Return the stacks of a model of this project."""
    config, stacks = model.config, []
    for name in ("encoder", "decoder"):
        if not hasattr(model, name):
            continue
        stack = getattr(model, name)
        prefix = "encoder." if name == "encoder" and config.has_decoder else ""
        parts = []
        for number, layer in enumerate(stack.layers):
            kinds = [("self_attention", f"{prefix}{number}", "attention_norm", name)]
            if hasattr(layer, "cross_attention"):
                kinds.append(
                    ("cross_attention", f"cross.{number}", "cross_attention_norm", "encoder")
                )
            for kind, label, norm, reads in kinds:
                attention = getattr(layer, kind)
                parts.append(
                    Attention(
                        label,
                        getattr(layer, norm),
                        attention.query_projection,
                        attention.key_projection,
                        attention.value_projection,
                        attention.output_projection,
                        config.n_heads,
                        config.n_groups,
                        config.d_head,
                        reads,
                    )
                )
            body = layer.experts if layer.has_experts else layer.feed_forward
            parts.append(Network(f"{prefix}{number}.ff", layer.feed_forward_norm, body))
        stacks.append(Stack(name, stack.embedding, parts, stack.norm, f"{prefix}tokens"))
    return stacks
