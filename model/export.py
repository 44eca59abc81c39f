"""A model of this project as an ONNX graph: one pass with its sites, edits and derived numbers.

The graph is traced from the code that the server runs: the module itself, inside its own capture
and edits, and the NumPy functions of `headlight.model.analysis`. Nothing is written twice. Its
inputs, which have no effect where they are neutral:

- ``ids`` (row, query), and ``is_typed``, ``is_special``, ``is_first_word`` (query): `TokenFacts`;
  of an encoder–decoder they are the source's, those of the target begin with ``target_``, and
  ``words`` and ``target_words`` (word, token) are 1 for the tokens of a word;
- ``heads`` (row, attention, head): by what each context is multiplied; 0 switches a head off;
- ``networks`` (row, network): the same of what a network or a layer of experts writes;
- ``experts`` (network, expert): 0 for one that is never chosen; ``factors`` (attention): of scores;
- ``set_at`` (edit, 3): attention, head and query of rows of weights that ``set_to`` (edit, key)
  replaces, as long as the longer text; an attention of −1 is none;
- ``position`` of the prediction to explain, ``token`` and ``against``: ids, or −1 for the likeliest
  and for the rival of `headlight.model.analysis.reasons`, −2 for the likeliest other one;
- ``in_text`` (vocab): whether a token is spelled like a word of the text;
- ``asked`` (analysis): which of `ANALYSES` are computed; the outputs of others are empty.

Its outputs are the sites and ``analyses.{id}.{array}`` of the first row, without a batch axis; of
``reasons`` those of all rows: the text itself, then without one part each. An encoder–decoder also
has ``analyses.search``, the likeliest tokens after the position: a beam is rows of one pass.
"""

from __future__ import annotations

import json
import logging
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from copy import copy
from dataclasses import replace
from fnmatch import fnmatch
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
import torch._numpy as torch_numpy
from torch import Tensor, nn

from headlight.model.analysis.alignment import alignment, membership
from headlight.model.analysis.attention_by_distance import attention_by_distance
from headlight.model.analysis.head_labels import LABELS, TokenFacts, label_heads, token_facts
from headlight.model.analysis.head_outputs import head_norms, head_outputs, value_weighted
from headlight.model.analysis.layers import ATTENTIONS, attentions_of
from headlight.model.analysis.logit_attribution import LogitDifference, logit_attribution
from headlight.model.analysis.logit_lens import logit_lens
from headlight.model.analysis.next_token import next_token
from headlight.model.analysis.reasons import (
    LISTED,
    RULES,
    choose_rival,
    decisive_row,
    lifts_of,
    lost_without,
    parts_of,
    word_kind,
)
from headlight.model.analysis.residual_stream import residual_stream
from headlight.model.analysis.rollout import rollout
from headlight.model.attention.observer import OBSERVED_AXES
from headlight.model.checkpoint.card import aligner_of
from headlight.model.checkpoint.checkpoint import Checkpoint
from headlight.model.checkpoint.exits import PARAMETERS, norm_and_unembedding
from headlight.model.corpus import read_lines
from headlight.model.distributions import top_k
from headlight.model.extras import needed_by
from headlight.model.generation.translation import Beam, in_target
from headlight.model.profiles.folder import SAMPLE
from headlight.model.trace import NamedArray, Trace
from headlight.model.tracing import ModelInput, tokenize, with_translations
from headlight.model.transformer import Transformer


@contextmanager
def numpy_in_graph() -> Iterator[None]:
    """Let NumPy code compute with tensors, so that tracing records it: PyTorch's own NumPy."""
    modules = [
        module
        for name, module in list(sys.modules.items())
        if name.startswith(HOME) and getattr(module, "np", None) is np
    ]
    with ExitStack() as stack:
        for module in modules:
            stack.enter_context(patch.object(module, "np", torch_numpy))
        stack.enter_context(patch.object(torch, "from_numpy", lambda array: array.tensor))
        array_of: Any = vars(torch_numpy)["ndarray"]  # which has no types
        stack.enter_context(patch.object(Tensor, "numpy", lambda tensor: array_of(tensor)))
        yield


Arrays = dict[str, NamedArray]
Facts = Mapping[str, Tensor]
HOME = "headlight.model."
FACTS = ("is_typed", "is_special", "is_first_word")
KINDS = ("", "number", "name", "word")
ANALYSES = (
    *("alignment", "attention_by_distance", "head_labels", "head_norms", "head_outputs"),
    *("logit_attribution", "logit_lens", "next_token", "residual_stream", "rollout", "search"),
    "value_weighted",
)
"""Those that a graph leaves out where nobody asks; ``reasons`` come with ``logit_attribution``."""


class Derived(nn.Module):
    """The analyses that are functions of one pass, from its tensors by site."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        super().__init__()
        self.arrays: dict[str, list[str]] = {}  # the axes of each result
        self.parts: Sequence[str] = ()  # of a logit difference
        self.rows: list[dict[str, Any]] = []  # the parts that are taken away, in order
        self.config, model = checkpoint.config, checkpoint.model
        self.attentions = {facts.path: facts for facts in checkpoint.description.attentions}
        self.axes = {name: axes for name, (axes, _) in exported_sites(checkpoint).items()}
        self.stack = "decoder" if self.config.has_decoder else "encoder"  # that predicts
        self.kinds = {
            kind: some
            for kind in ATTENTIONS
            if (some := _places(self.attentions, f"{self.stack}.*{kind}"))
        }
        self.networks = _places(networks_of(checkpoint), f"{self.stack}.*")
        self.aligner = aligner_of(checkpoint.description.card)
        self.start_id = checkpoint.tokenizer.start_id
        self.of_end = [
            name for name in model.weights() if any(fnmatch(name, glob) for glob in PARAMETERS)
        ]
        outputs = [f"{path}.output_projection.weight" for path in self.attentions]
        constants = {
            name: model.weights()[name].detach().clone() for name in (*outputs, *self.of_end)
        }
        words = [
            checkpoint.tokenizer.text_of(token).strip() for token in range(self.config.vocab_size)
        ]
        known = {word: number for number, word in enumerate(dict.fromkeys(words))}
        constants |= {
            "words": torch.tensor([known[word] for word in words]),
            "kinds": torch.tensor([KINDS.index(word_kind(word)) for word in words]),
        }
        self.linear_exit = checkpoint.linear_exit
        self.names = list(constants)
        for at, tensor in enumerate(constants.values()):
            self.register_buffer(f"constant_{at}", tensor)

    def forward(
        self, tensors: Mapping[str, Tensor], facts: Facts, logits: Tensor
    ) -> dict[str, Tensor]:
        """Return the arrays of all analyses, by ``analyses.{id}.{array}``.

        ``logits`` (row, vocab) are those of all rows at the position.
        """
        trace = Trace(
            model="",
            revision="",
            precision="float32",
            text="",
            tokens=(),
            tensors={
                name: NamedArray(self.axes[name], each.numpy()) for name, each in tensors.items()
            },
            attentions=self.attentions,
        )
        constants = {
            name: self._named(name, getattr(self, f"constant_{at}"))
            for at, name in enumerate(self.names)
        }
        explained, reasons = self._explained(trace, constants, facts, logits)
        exits = norm_and_unembedding(
            {name: constants[name] for name in self.of_end}, self.config.norm_epsilon
        )
        stream = {"norm": self.config.norm, "norm_place": self.config.norm_place}
        results: dict[str, Arrays] = {
            "attention_by_distance": attention_by_distance(trace),
            "head_labels": _labels(trace, facts),
            "head_norms": head_norms(trace, constants),
            "head_outputs": head_outputs(trace, constants),
            "logit_attribution": explained,
            "logit_lens": logit_lens(trace, lambda stack, streams: exits(stack, streams)),
            "next_token": next_token(trace),
            "reasons": reasons,
            "residual_stream": residual_stream(trace, **stream),
            "rollout": rollout(trace),
            "value_weighted": value_weighted(trace, constants),
        }
        if "words" in facts:
            best = in_target(logits, self.start_id).topk(2 * Beam().width)
            choices = (("scores", best.values), ("ids", best.indices))
            search = {name: NamedArray(("row", "choice"), each.numpy()) for name, each in choices}
            words = facts["words"].numpy(), facts["target_words"].numpy()
            aligned = alignment(trace, self.aligner, words)
            results |= {"alignment": aligned, "search": search}
        named = {
            f"analyses.{name}.{key}": array
            for name, arrays in results.items()
            for key, array in arrays.items()
        }
        self.arrays = {name: list(array.axes) for name, array in named.items()}
        return {name: torch.from_numpy(array.data) for name, array in named.items()}

    def _named(self, name: str, tensor: Tensor) -> NamedArray:
        axes = {3: ("head", "d_head", "d_model"), 2: ("vocab", "d_model"), 1: ("d_model",)}
        if name.endswith(".output_projection.weight"):
            tensor = tensor.T.unflatten(0, (self.config.n_heads, -1))
        return NamedArray(axes[tensor.ndim], tensor.numpy())

    def _explained(
        self, trace: Trace, constants: Arrays, facts: Facts, logits: Tensor
    ) -> tuple[Arrays, Arrays]:
        """Return the attribution of a logit difference, and what `find_reasons` makes of rows."""
        names = ("position", "token", "against", "in_text", "heads", "networks")
        read: list[Any] = [facts[name].numpy() for name in names]
        at, token, given, in_text, with_heads, with_networks = read
        tensors = {
            name: replace(array, data=array.data.take(at, axis=array.axes.index(axis)))
            for axis in ("query", "position")
            for name, array in trace.tensors.items()
            if axis in array.axes and name.startswith((self.stack, "logits"))
        }
        part = replace(trace, tensors={**trace.tensors, **tensors})
        self.rows = [
            {name: getattr(each, name) for name in ("site", "layer", "head")}
            for each in parts_of(trace)
        ]
        moe, heads, networks = self.config.moe, 1 - with_heads, 1 - with_networks
        networks = networks[:, list(self.networks)]
        off = {kind: heads[:, list(some)] for kind, some in self.kinds.items()}

        def attribute(exit_of: Any, difference: Any) -> Any:
            n_experts = moe.n_experts if moe else 0
            return logit_attribution(part, exit_of, constants, difference, n_experts=n_experts)

        def exit_of(stack: str, stream: Any, tokens: Sequence[Any]) -> Any:
            ids = np.stack([np.asarray(each).reshape(()) for each in tokens])
            chosen: Any = torch.from_numpy(ids)
            return self.linear_exit(stack, stream, chosen)

        def of_rows(arrays: Mapping[str, NamedArray]) -> Any:
            # ONNX Runtime 1.32 takes rows for columns where a gathered matrix meets a vector.
            sums: Any = (networks * arrays["feed_forward"].data).sum(-1)
            for kind, some in off.items():
                of_heads: Any = arrays[f"{kind}.heads"].data
                sums = sums + np.einsum("rlh,lh->r", some, of_heads)
            return sums

        probabilities = logits.double().softmax(dim=-1).numpy()
        own, likely = probabilities[0], top_k(probabilities[:1], LISTED)[0][0]
        token = np.where(token < 0, likely[:1], token)
        words, kinds = constants["words"].data, constants["kinds"].data
        fits = in_text[likely] & in_text[token] & (kinds[token] > 0)
        fits &= (kinds[likely] == kinds[token]) & (words[likely] != words[token])
        asked: Any = LogitDifference(position=0, token=token, against=token)
        lifts = of_rows(lifts_of(attribute, exit_of, asked, len(own)))
        lost, is_head = lost_without(own, probabilities, token), heads.sum((1, 2)) > 0
        decisive = decisive_row(lost, is_head, lifts)
        rule, rival = choose_rival(own, probabilities, token, decisive, likely, fits)
        other = np.where(likely[:1] == token, likely[1:2], likely[:1])
        rival = np.where(given >= 0, given, np.where(given == -1, rival, other))
        attribution = attribute(exit_of, replace(asked, against=rival))
        self.parts, split = attribution.parts, attribution.arrays
        is_kept = (rule == RULES.index("gains")) & (given < 0)
        decisive = np.where(is_kept, decisive, decisive_row(lost, is_head, of_rows(split)))
        reads = [self._read(part, split, kind, some) for kind, some in off.items()]
        both = np.stack([token[0], rival[0]])
        arrays = {
            "tokens": both,
            "rule": rule,
            "decisive": decisive,
            "lost": lost,
            "key": sum(key for key, _ in reads),
            "adds": np.stack([lifts, lifts - of_rows(split)], 1),
            "weight": sum(weight for _, weight in reads),
            "probabilities": probabilities[:, both],
            "top": probabilities.argmax(1),
            "top_probability": probabilities.max(1),
        }
        axes = ("row", "token")
        return split, {name: NamedArray(axes[: each.ndim], each) for name, each in arrays.items()}

    def _read(self, part: Trace, split: Arrays, kind: str, off: Any) -> tuple[Any, Any]:
        """Return key and weight of what the head reads that is off in a row; 0 without one."""
        by_key: Any = split[f"{kind}.keys"].data
        keys: Any = np.einsum("rlh,lhk->rk", off, by_key)
        key = (keys * np.where(keys.sum(1, keepdims=True) >= 0, 1, -1)).argmax(1)
        weights = np.stack([part[f"{path}.weights"][:, 0] for path in self.kinds[kind].values()])
        rows: Any = np.einsum("rlh,lhk->rk", off, weights)
        weight = (rows * (np.arange(rows.shape[1]) == key[:, None])).sum(1)
        return key * (off.sum((1, 2)) > 0), weight


def _places(paths: Iterable[str], glob: str) -> dict[int, str]:
    return {at: path for at, path in enumerate(paths) if fnmatch(path, glob)}


def _labels(trace: Trace, facts: Facts) -> Arrays:
    """Return `head_labels` of all attentions, from facts in place of tokens."""
    arrays: Arrays = {}
    target = "target_" if "target_ids" in facts else ""
    tokens = {
        stack: TokenFacts(*(facts[f"{prefix}{name}"].numpy() for name in ("ids", *FACTS)))
        for stack, prefix in (("encoder", ""), ("decoder", target))
    }
    for attention in attentions_of(trace):
        keys = tokens["encoder" if attention.is_cross else attention.stack]
        arrays |= label_heads(attention, tokens[attention.stack], keys)
    return arrays


def exported_sites(checkpoint: Checkpoint) -> dict[str, tuple[tuple[str, ...], bool]]:
    """Return the sites of the graph with their axes, without the batch; and if there is one."""
    return {
        site.name: (site.axes[1:], True) if site.axes[0] == "batch" else (site.axes, False)
        for site in checkpoint.model.sites
        if site.name.rpartition(".")[2] not in OBSERVED_AXES
    }


def networks_of(checkpoint: Checkpoint) -> list[str]:
    """Return the paths of the feed-forward networks and layers of experts, in order."""
    endings = (".feed_forward.output", ".experts.output")
    return [
        name[: -len(".output")] for name in exported_sites(checkpoint) if name.endswith(endings)
    ]


class Pass(nn.Module):
    """A pass with the edits of its inputs; see the module."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        super().__init__()
        self.model, self.derived = checkpoint.model, Derived(checkpoint)
        self.sites = exported_sites(checkpoint)
        self.attentions = [facts.path for facts in checkpoint.description.attentions]
        self.networks = networks_of(checkpoint)

    def forward(self, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return the outputs; see the module."""
        with ExitStack() as stack:
            for site, edit in self._edits(inputs):
                stack.enter_context(self.model.edit(site, edit))
            captured = stack.enter_context(self.model.capture_sites(list(self.sites)))
            logits = self.model(inputs["ids"], inputs.get("target_ids")).logits
        outputs = {
            name: captured[name][0] if has_batch else captured[name]
            for name, (_, has_batch) in self.sites.items()
        }
        with numpy_in_graph() if torch.compiler.is_exporting() else nullcontext():
            outputs |= self.derived(
                {name: outputs[name] for name in self.sites},
                inputs | {name: inputs[name][0] for name in inputs if name.endswith("ids")},
                logits.index_select(1, inputs["position"])[:, 0],
            )
        return outputs

    def _edits(self, inputs: dict[str, Tensor]) -> list[tuple[str, Callable[[Tensor], Tensor]]]:
        edits: list[tuple[str, Callable[[Tensor], Tensor]]] = []
        for at, path in enumerate(self.attentions):
            heads = inputs["heads"][:, at, :, None, None]
            edits += [
                (f"{path}.scores", partial(torch.mul, inputs["factors"][at])),
                (f"{path}.weights", partial(_with_rows, inputs["set_at"], inputs["set_to"], at)),
                (f"{path}.context", partial(torch.mul, heads)),
            ]
        for at, path in enumerate(self.networks):
            edits.append(
                (f"{path}.output", partial(torch.mul, inputs["networks"][:, at, None, None]))
            )
            if path.endswith(".experts"):
                allowed = inputs["experts"][at] > 0
                edits.append((f"{path}.router_logits", partial(_only, allowed)))
        return edits


def _only(allowed: Tensor, logits: Tensor) -> Tensor:
    return torch.where(allowed, logits, float("-inf"))


def _with_rows(places: Tensor, rows: Tensor, attention: int, weights: Tensor) -> Tensor:
    """Replace rows of weights (batch, head, query, key) of one attention."""
    heads = torch.arange(weights.shape[1], device=weights.device)
    queries = torch.arange(weights.shape[2], device=weights.device)
    is_here = (
        (places[:, 0] == attention)[:, None, None]
        & (places[:, 1, None] == heads)[:, :, None]
        & (places[:, 2, None] == queries)[:, None]
    ).to(weights.dtype)  # edit head query
    keys = torch.arange(weights.shape[3]).clamp(max=rows.shape[1] - 1)
    written = torch.einsum("ehq,ek->hqk", is_here, rows[:, keys])
    return torch.where(is_here.sum(dim=0)[..., None] > 0, written, weights)


def neutral_inputs(
    checkpoint: Checkpoint, reading: ModelInput, n_rows: int = 1
) -> dict[str, Tensor]:
    """Return the inputs of a pass over a text without edits."""
    config, networks = checkpoint.config, networks_of(checkpoint)
    texts = {"": reading.tokens, "target_": reading.target_tokens or ()}
    n_attentions, n_keys = len(checkpoint.description.attentions), max(map(len, texts.values()))
    inputs: dict[str, Tensor] = {}
    for prefix, tokens in texts.items():
        if tokens:
            facts = token_facts(tokens)
            for name in FACTS:
                inputs[f"{prefix}{name}"] = torch.from_numpy(getattr(facts, name))
            inputs[f"{prefix}ids"] = torch.from_numpy(facts.ids)[None].repeat(n_rows, 1)
        if reading.target_tokens:
            inputs[f"{prefix}words"] = torch.from_numpy(membership(tokens)).float()
    return inputs | {
        "heads": torch.ones(n_rows, n_attentions, config.n_heads),
        "networks": torch.ones(n_rows, len(networks)),
        "experts": torch.ones(len(networks), config.moe.n_experts if config.moe else 1),
        "factors": torch.ones(n_attentions),
        "set_at": torch.full((n_rows, 3), -1),
        "set_to": torch.zeros(n_rows, n_keys),
        "position": torch.tensor([len(reading.target_tokens or reading.tokens) - 1]),
        "token": torch.tensor([-1]),
        "against": torch.tensor([-1]),
        "in_text": torch.zeros(config.vocab_size, dtype=torch.bool),
        "asked": torch.ones(len(ANALYSES), dtype=torch.bool),
    }


# --- the file -------------------------------------------------------------------------------------

SHORTEST = 3
"""Tokens of a text: a graph takes a length of 1 or 2 for a fixed number."""
CHECKED_TEXTS = 50
LARGE = 1024
"""The elements of a constant from which it is stored in float16, if that changes no number."""


class ExportError(ValueError):
    """A model does not export, or its graph computes other numbers; the message has the reason."""


def export_model(checkpoint: Checkpoint) -> tuple[bytes, dict[str, Any]]:
    """Return the checked graph of a model, as a file holds it, and its manifest.

    The manifest is also in the metadata of the file, with the largest differences from PyTorch.

    Raises:
        ExportError: see the class.
        ImportError: the extra `onnx` is not installed.
    """
    with needed_by("headlight export", "onnxruntime", "onnx"):
        import onnxruntime  # noqa: F401
        import onnxscript  # noqa: F401
    if checkpoint.config.has_reward:
        raise ExportError(f"'{checkpoint.id}' rates texts; only what predicts words is exported")
    # It warns of libraries that no model of this project needs.
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    texts = _texts_of(checkpoint)
    inputs = neutral_inputs(checkpoint, texts[-1], n_rows=2)
    module = Pass(checkpoint).eval()
    with torch.no_grad(), warnings.catch_warnings(), _own_embedding(checkpoint.model):
        warnings.simplefilter("ignore")
        shapes = _open_shapes(inputs, checkpoint.config.max_tokens)
        program = torch.export.export(module, (inputs,), dynamic_shapes=(shapes,), strict=False)
        _with_equal_types(program)
        names = list(module(inputs))
        exported = torch.onnx.export(
            program, input_names=list(inputs), output_names=names, verbose=False, optimize=False
        )
    assert exported is not None
    _simplify(exported.model)
    if checkpoint.config.kind == "decoder":  # a translator would have a quarter more bytes
        exported.optimize()
    model = exported.model_proto
    _on_demand(model, _narrow(model))
    manifest = _manifest(checkpoint, module, names)
    manifest["differences"] = check_model(model.SerializeToString(), checkpoint, module, texts)
    for key, value in manifest.items():
        entry = model.metadata_props.add()
        entry.key, entry.value = key, json.dumps(value, ensure_ascii=False)
    return model.SerializeToString(), manifest


def _own_embedding(model: Transformer) -> AbstractContextManager[Any]:
    """Give a decoder its own module of shared embeddings, else tracing copies all modules."""
    modules = model.get_submodule("decoder.embedding" if model.config.has_decoder else "")._modules
    shared = modules.get("vectors")
    return patch.dict(modules, {"vectors": copy(shared)} if shared else {})


def _texts_of(checkpoint: Checkpoint) -> list[ModelInput]:
    """Return texts of many lengths, shortest first: beginnings of examples and of the sample."""
    examples = checkpoint.description.card.examples.values()
    written = [each if isinstance(each, str) else each.text for each in examples]
    words = [text.split() for text in (*written, *read_lines(SAMPLE)) if text]
    parts = {" ".join(each[:n]) for each in words for n in range(2, min(len(each), 40) + 1)}
    lengths = {text: len(checkpoint.tokenizer.encode(text)) for text in parts}
    fitting = [text for text in parts if lengths[text] <= checkpoint.config.max_tokens]
    texts = sorted(fitting, key=lambda text: (lengths[text], text))
    last = len(texts) - 1
    chosen = [texts[at * last // (CHECKED_TEXTS - 1)] for at in range(CHECKED_TEXTS)]
    return with_translations(checkpoint, [tokenize(checkpoint, text) for text in chosen])


def _open_shapes(inputs: Mapping[str, Tensor], longest: int) -> dict[str, Any]:
    length, target = (
        torch.export.Dim(name, min=SHORTEST, max=longest) for name in ("length", "target")
    )
    sizes = ("row", "edit", "key", "word", "target_word")
    row, edit, key, word, target_word = (torch.export.Dim(name, min=1, max=4096) for name in sizes)
    kinds = {
        "ids": {0: row, 1: length},
        "target_ids": {0: row, 1: target},
        **{name: {0: length} for name in FACTS},
        **{f"target_{name}": {0: target} for name in FACTS},
        **{name: {0: row} for name in ("heads", "networks")},
        "words": {0: word, 1: length},
        "target_words": {0: target_word, 1: target},
        "set_at": {0: edit},
        "set_to": {0: edit, 1: key},
    }
    return {name: kinds.get(name) for name in inputs}


BINARY = {
    *("add", "div", "divide", "mul", "multiply", "sub", "subtract", "true_divide", "where"),
    *("eq", "ge", "greater", "greater_equal", "gt", "le", "less", "less_equal", "lt", "ne"),
    *("maximum", "minimum", "not_equal"),
}


def _with_equal_types(program: Any) -> None:
    """Give both sides of arithmetic the type of its result, as no operation of ONNX mixes types."""
    aten = torch.ops.aten
    graph = program.graph
    for node in list(graph.nodes):
        if node.op != "call_function" or node.target.__name__.partition(".")[0] not in BINARY:
            continue
        if not isinstance(node.meta["val"], Tensor):
            continue
        first = len(node.args) - 2 if "where" in node.target.__name__ else 0
        values = [getattr(each, "meta", {"val": each})["val"] for each in node.args[first:][:2]]
        kept = node.meta["val"].dtype
        if kept == torch.bool and any(isinstance(each, Tensor) for each in values):
            kept = torch.result_type(*values)
        sides = []
        for side in node.args[first:][:2]:
            is_node = isinstance(side, torch.fx.Node)
            value = side.meta["val"] if is_node else side
            with graph.inserting_before(node):
                if isinstance(value, int | float) and "Scalar" in node.target.__name__:
                    side = float(side) if kept.is_floating_point else side
                elif isinstance(value, int | float):
                    side = graph.call_function(aten.scalar_tensor.default, (side,), {"dtype": kept})
                    side.meta["val"] = node.meta["val"].new_empty((), dtype=kept)
                elif isinstance(value, Tensor) and value.dtype != kept:
                    side = graph.call_function(aten._to_copy.default, (side,), {"dtype": kept})
                    side.meta["val"] = value.to(kept)
            sides.append(side)
        node.args = (*node.args[:first], *sides, *node.args[first + 2 :])


def _simplify(model: Any) -> None:
    """Store once what is the same, fold constants, and compute once what is computed twice.

    The optimizer of the library then tries patterns, which takes the square of the nodes.
    """
    from onnx_ir.passes import common
    from onnxscript.optimizer import fold_constants

    common.DeduplicateHashedInitializersPass()(model)
    fold_constants(model)
    common.RemoveUnusedNodesPass()(model)
    common.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0)(model)
    common.CommonSubexpressionEliminationPass()(model)


def _narrow(model: Any) -> list[Any]:
    """Store large constants in float16 with a cast where that is exact; return the nodes."""
    from onnx import TensorProto, helper, numpy_helper

    graph, kept, casts = model.graph, [], []
    for constant in graph.initializer:
        array = numpy_helper.to_array(constant)
        if array.size < LARGE or array.dtype != np.float32:
            kept.append(constant)
            continue
        half = array.astype(np.float16)
        if np.array_equal(half.astype(np.float32), array):
            narrow = f"{constant.name}.half"
            casts.append(helper.make_node("Cast", [narrow], [constant.name], to=TensorProto.FLOAT))
            constant = numpy_helper.from_array(half, narrow)
        kept.append(constant)
    del graph.initializer[:]
    graph.initializer.extend(kept)
    nodes = [*casts, *graph.node]
    for node in nodes:
        del node.metadata_props[:]  # where in the code it comes from
    return nodes


def _on_demand(model: Any, nodes: Sequence[Any]) -> None:
    """Put the nodes that only one analysis needs into a branch, run where that is asked for."""
    from onnx import helper, numpy_helper

    graph = model.graph
    types = {each.name: each.type.tensor_type for each in graph.output}
    users = {name: {_analysis_of(name)} for name in types}
    parts: dict[str, list[Any]] = {}
    for node in reversed(nodes):
        needing = {of for name in node.output for of in users.get(name, ())}
        for name in node.input:
            users.setdefault(name, set()).update(needing)
        parts.setdefault(needing.pop() if len(needing) == 1 else "", []).insert(0, node)
    kept = parts.pop("")
    for of, part in parts.items():
        made = [name for node in part for name in node.output if name in types]
        for node in part:
            for names in (node.input, node.output):
                names[:] = [f"{name}.then" if name in made else name for name in names]
        sides: dict[str, list[Any]] = {"then": part, "else": []}
        for name in made:
            sizes, kind = [0] * len(types[name].shape.dim), types[name].elem_type
            empty = numpy_helper.from_array(np.zeros(sizes, helper.tensor_dtype_to_np_dtype(kind)))
            sides["else"].append(helper.make_node("Constant", [], [f"{name}.else"], value=empty))
        branches = {}
        for side, inner in sides.items():
            infos = [
                helper.make_tensor_value_info(f"{name}.{side}", types[name].elem_type, None)
                for name in made
            ]
            branches[f"{side}_branch"] = helper.make_graph(inner, f"{of}.{side}", [], infos)
        at = numpy_helper.from_array(np.array(ANALYSES.index(of)), f"{of}.at")
        graph.initializer.append(at)
        kept.append(helper.make_node("Gather", ["asked", at.name], [f"{of}.asked"]))
        kept.append(helper.make_node("If", [f"{of}.asked"], made, **branches))
    copies = [type(node).FromString(node.SerializeToString()) for node in kept]
    del graph.node[:]
    graph.node.extend(copies)


def _analysis_of(output: str) -> str:
    """Return one of `ANALYSES`, or an empty text for what a pass always computes."""
    kind, name, *_ = f"{output}.".replace(".reasons.", ".logit_attribution.").split(".")
    return name if kind == "analyses" and name in ANALYSES else ""


def _manifest(checkpoint: Checkpoint, module: Pass, names: Sequence[str]) -> dict[str, Any]:
    tokenizer, config = checkpoint.tokenizer, checkpoint.config
    axes = {name: list(axes) for name, (axes, _) in module.sites.items()} | module.derived.arrays
    return {
        "id": checkpoint.id,
        "beam": Beam()._asdict() if config.kind == "encoder-decoder" else None,
        "revision": checkpoint.description.revision,
        "precision": checkpoint.precision,
        "max_tokens": config.max_tokens,
        "axes": {name: axes[name] for name in names if name in axes},
        "attentions": module.attentions,
        "networks": module.networks,
        "parts": module.derived.rows,
        "analyses": list(ANALYSES),
        "sizes": {
            "n_heads": config.n_heads,
            "d_head": config.d_head,
            "n_experts": config.moe.n_experts if config.moe else 1,
        },
        "metadata": {
            "alignment": {"aligner": module.derived.aligner or {}},
            "head_labels": {"labels": list(LABELS)},
            "logit_attribution": {"part_names": list(module.derived.parts), "omitted": {}},
        },
        "tokenizer": json.loads(tokenizer.to_json()),
        "texts": [tokenizer.text_of(token) for token in range(tokenizer.vocab_size)],
        "lowers_capitals": tokenizer.normalization.lowers_capitals,
        "start_id": tokenizer.start_id,
        "end_id": tokenizer.end_id,
        "mask_id": tokenizer.mask_id,
    }


def check_model(
    graph: bytes, checkpoint: Checkpoint, module: Pass, texts: Sequence[ModelInput]
) -> dict[str, Any]:
    """Return the largest differences of a graph from PyTorch over texts, by kind of number.

    Raises:
        ExportError: another token is the likeliest somewhere, weights differ by over 1e-4, or what
            a network adds to a token by over 0.01.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    takes = {each.name for each in session.get_inputs()}
    worst = {"logits": 0.0, "weights": 0.0, "adds": 0.0}
    for text in texts:
        inputs = neutral_inputs(checkpoint, text, n_rows=3)
        inputs["networks"][1, -1] = 0
        with torch.inference_mode():
            expected = module(inputs)
        feeds = {name: each.numpy() for name, each in inputs.items() if name in takes}
        computed = dict(zip(names, session.run(names, feeds), strict=True))
        for kind in worst:
            for name in (each for each in expected if each.rpartition(".")[2] == kind):
                gap = np.abs(computed[name] - expected[name].numpy()).max()
                worst[kind] = max(worst[kind], float(gap))
        is_same = (computed["logits"].argmax(-1) == expected["logits"].numpy().argmax(-1)).all()
        if not is_same or worst["weights"] > 1e-4 or worst["adds"] > 0.01:
            raise ExportError(
                f"the graph of {checkpoint.id} computes other numbers for {text.text!r}"
            )
    return {"texts": len(texts), **worst}
