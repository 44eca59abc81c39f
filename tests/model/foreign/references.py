"""Every analysis computed again: from a bare module, by hooks, autograd and NumPy."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from sklearn.metrics import adjusted_mutual_info_score

from headlight.model.trace import Token
from tests.model.foreign.independent_pass import Key, Reader

Arrays = dict[str, np.ndarray]


class NotOffered(Exception):
    """The analysis has no meaning for a model of this structure."""


@dataclass(frozen=True)
class Question:
    """A text to analyse: its reader, tokens, logit difference and the text to patch from."""

    reader: Reader
    tokens: tuple[Token, ...]
    target_tokens: tuple[Token, ...] | None
    other_ids: list[int]

    @property
    def position(self) -> int:
        """The position of the prediction: the last."""
        return len(self.reader.plain.logits) - 1

    @property
    def pair(self) -> list[int]:
        """The two likeliest tokens there."""
        return self.reader.plain.logits[self.position].argsort(descending=True)[:2].tolist()

    def difference(self, logits: torch.Tensor) -> float:
        """Return the difference of the two logits in a pass."""
        first, second = logits[self.position, self.pair].double().tolist()
        return first - second

    def edited(self, edits: Mapping[Key, Callable]) -> float:
        """Return the difference in a pass with edits."""
        return self.difference(self.reader.read(edits).logits)


def layers(asked: Question) -> list[tuple[str, int]]:
    """Return every stack with the number of each layer."""
    reader = asked.reader
    return [(stack, n) for stack in reader.layouts for n in range(len(reader.layers(stack)))]


def attentions(asked: Question) -> dict[str, Key]:
    """Return the key of every attention, by its path."""
    keys = asked.reader.plain.weights
    return {f"{stack}.layers.{layer}.{kind}": (stack, layer, kind) for stack, layer, kind in keys}


def softmax(logits: np.ndarray) -> np.ndarray:
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def entropy(shares: np.ndarray) -> np.ndarray:
    return -(shares * np.log(np.maximum(shares, 1e-300))).sum(axis=-1)


def likeliest(logits: np.ndarray) -> Arrays:
    ids = np.argsort(-logits, axis=-1, kind="stable")[..., :20]
    return {"ids": ids, "probabilities": np.take_along_axis(softmax(logits), ids, axis=-1)}


def next_token(asked: Question) -> Arrays:
    return likeliest(asked.reader.plain.logits.double().numpy())


def logit_lens(asked: Question) -> Arrays:
    """Let each layer's output leave the last layer in its place."""
    reader = asked.reader
    end = (reader.stack, len(reader.layers(reader.stack)) - 1, "after")
    rows = []
    for layer in range(end[1] + 1):
        stream = reader.plain.at[reader.stack, layer, "after"]
        logits = reader.read({end: lambda _, stream=stream: stream}).logits
        rows.append(likeliest(logits.double().numpy()))
    return {name: np.stack([row[name] for row in rows]) for name in rows[0]}


def rollout(asked: Question) -> Arrays:
    by_stack = {}
    for stack, layer in layers(asked):
        mean = asked.reader.weights(stack, layer, "self_attention").mean(axis=0)
        step = mean + np.eye(len(mean))
        step /= step.sum(axis=1, keepdims=True)
        by_stack.setdefault(stack, []).append(step @ by_stack[stack][-1] if layer else step)
    return {stack: np.stack(steps) for stack, steps in by_stack.items()}


def require_split(asked: Question) -> None:
    if not all(layout.is_split for layout in asked.reader.layouts.values()):
        raise NotOffered


def head_outputs(asked: Question) -> Arrays:
    require_split(asked)
    return {path: asked.reader.head_outputs(*key) for path, key in attentions(asked).items()}


def head_norms(asked: Question) -> Arrays:
    return {path: np.linalg.norm(rows, axis=-1) for path, rows in head_outputs(asked).items()}


def value_weighted(asked: Question) -> Arrays:
    require_split(asked)
    reader = asked.reader
    by_path = {}
    for path, key in attentions(asked).items():
        gain = reader.gain(*key)
        rows = [np.linalg.norm(written(asked, key) * row, axis=-1) for row in gain]
        by_path[path] = reader.weights(*key) * np.stack(rows, axis=1)
    return by_path


def written(asked: Question, key: Key) -> np.ndarray:
    """Return the vector (head, key, d_model) that W_O makes of each value."""
    return asked.reader.by_head(*key, asked.reader.values(*key))


def attention_by_distance(asked: Question) -> Arrays:
    arrays = {}
    for path, (stack, layer, kind) in attentions(asked).items():
        if kind == "cross_attention":
            continue
        weights = asked.reader.weights(stack, layer, kind)
        seen, n = (weights > 0).any(axis=0), weights.shape[1]
        distances = range(0 if stack == "decoder" else 1 - n, n)
        columns = []
        for distance in distances:
            pairs = [(q, q - distance) for q in range(n) if 0 <= q - distance < n]
            rows = [weights[:, q, k] for q, k in pairs if seen[q, k]]
            columns.append(np.mean(rows, axis=0) if rows else np.zeros(len(weights)))
        arrays[path] = np.stack(columns, axis=1)
        arrays[f"{stack}.distances"] = np.array(distances)
    return arrays


def head_labels(asked: Question) -> Arrays:
    """Add up the weights on the keys that each score names, query by query."""
    names = "previous next current same_token induction monotonic sink broad positional narrow"
    thresholds = dict(zip(names.split(), [0.5] * 7 + [0.9, 0.5, 0.75], strict=True))
    arrays = {}
    for path, key in attentions(asked).items():
        scores = _scores(asked, key)
        values = np.stack([scores[name][0] for name in thresholds], axis=1)
        counts = np.array([scores[name][1] for name in thresholds])
        labels = []
        for row in values:
            row = np.where(counts >= 3, row, 0)
            for group in ([0, 1, 2, 3, 4, 5], [6], [7], [8], [9]):
                reached = [n for n in group if row[n] >= list(thresholds.values())[n]]
                if reached:
                    labels.append(max(reached, key=lambda n: row[n]))
                    break
            else:
                labels.append(len(thresholds))
        arrays[f"{path}.label"] = np.array(labels)
        arrays[f"{path}.label_scores"], arrays[f"{path}.label_queries"] = values, counts
    return arrays


def _scores(asked: Question, key: Key) -> dict[str, tuple[np.ndarray, int]]:
    stack, _, kind = key
    weights, is_cross = asked.reader.weights(*key), kind == "cross_attention"
    n_heads, n_queries, n_keys = weights.shape
    seen = [set(np.flatnonzero((weights[:, query] > 0).any(axis=0))) for query in range(n_queries)]
    keys = asked.tokens if is_cross or stack == "encoder" else asked.target_tokens or asked.tokens
    queries = keys if not is_cross else asked.target_tokens
    is_causal = stack == "decoder" and not is_cross
    sinks = {0} if not is_cross or not keys[0].is_typed else set()
    if not is_causal and not keys[-1].is_typed:
        sinks.add(n_keys - 1)
    first = next((token.word for token in keys if token.word is not None), None)
    opening = {n for n, token in enumerate(keys) if token.word is not None and token.word == first}
    none = (np.zeros(n_heads), 0)

    def mean_on(named: Callable[[int], set], *, is_rare: bool = False) -> tuple[np.ndarray, int]:
        rows = []
        for query in range(n_queries):
            on = named(query) & seen[query]
            if on and seen[query] - on and not (is_rare and 2 * len(on) > len(seen[query])):
                rows.append(weights[:, query, sorted(on)].sum(axis=1))
        return (np.mean(rows, axis=0), len(rows)) if rows else none

    def resting(query: int) -> set:
        if is_cross:
            return sinks
        words = set() if query in opening else {n for n in opening if n < query}
        return (sinks | words) - {query}

    scores = dict.fromkeys(("previous", "next", "current", "same_token", "induction"), none)
    scores["sink"] = mean_on(resting, is_rare=True)
    if not is_cross:
        same = [{n for n in range(n_keys) if keys[n].id == token.id} for token in keys]
        scores["previous"] = mean_on(lambda q: {q - 1} - sinks)
        scores["current"] = mean_on(lambda q: {q} - sinks)
        scores["same_token"] = mean_on(lambda q: same[q] - {q} - sinks)
        scores["induction"] = mean_on(lambda q: {n + 1 for n in same[q] if n + 1 < q - 1} - sinks)
        if not is_causal:
            scores["next"] = mean_on(lambda q: {q + 1} - sinks)
    several = [query for query in range(n_queries) if len(seen[query]) > 1]
    spread = [entropy(weights[:, query]) / np.log(len(seen[query])) for query in several]
    scores["broad"] = (np.clip(np.mean(spread, axis=0), 0, 1), len(several))
    scores["narrow"] = (1 - scores["broad"][0], len(several))
    scores["monotonic"] = _monotonic(weights, queries, keys) if is_cross else none
    scores["positional"] = none if is_cross else _positional(weights, seen, several)
    return scores


def _positional(weights: np.ndarray, seen: list[set], several: list[int]) -> tuple[np.ndarray, int]:
    pairs = [(query, key) for query in several for key in seen[query]]
    distances = {query - key for query, key in pairs}
    left, varied = np.zeros(len(weights)), np.zeros(len(weights))
    for distance in distances:
        column = [weights[:, q, k] for q, k in pairs if q - k == distance]
        left += ((np.array(column) - np.mean(column, axis=0)) ** 2).sum(axis=0)
    for query, key in pairs:
        varied += (weights[:, query, key] - 1 / len(seen[query])) ** 2
    if len(pairs) <= len(distances):
        return np.zeros(len(weights)), 0
    value = 1 - left / (len(pairs) - len(distances)) / (varied / len(pairs))
    return np.clip(value, 0, 1), len(several)


def _monotonic(weights: np.ndarray, queries: Any, keys: Any) -> tuple[np.ndarray, int]:
    rows, columns = (
        [n for n, token in enumerate(tokens) if not token.is_special] for tokens in (queries, keys)
    )
    values = []
    for head in weights[:, rows][:, :, columns]:
        places = [each.ravel() for each in np.indices(head.shape)]
        covariance = np.cov(*places, aweights=head.ravel(), ddof=0)
        correlation = covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1])
        values.append(max(0, correlation * head.sum() / len(rows)))
    return np.array(values), len(rows)


def alignment(asked: Question) -> Arrays:
    if asked.target_tokens is None:
        raise NotOffered
    keys = [key for key in asked.reader.plain.weights if key[2] == "cross_attention"]
    weights = np.mean([asked.reader.weights(*key).mean(axis=0) for key in keys], axis=0)
    places = []
    for tokens in (asked.target_tokens, asked.tokens):
        words = {token.word for token in tokens if token.word is not None}
        places.append(
            [
                [n for n, token in enumerate(tokens) if token.word == word and not token.is_special]
                for word in sorted(words)
            ]
        )
    rows = [
        [weights[np.ix_(target, source)].sum() / len(target) for source in places[1]]
        for target in places[0]
    ]
    shares = np.array(rows) / np.sum(rows, axis=1, keepdims=True)
    return {"weights": shares, "links": np.eye(shares.shape[1], dtype=int)[shares.argmax(axis=1)]}


def routing(asked: Question) -> Arrays:
    reader, arrays = asked.reader, {}
    for stack, layout in reader.layouts.items():
        if layout.router is None:
            continue
        caught: dict[int, Any] = {}
        for layer, module in enumerate(reader.layers(stack)):
            if any(name == layout.router for name, _ in module.named_modules()):
                module.get_submodule(layout.router).register_forward_hook(
                    partial(_catch, caught, layer)
                )
        reader.read()
        outputs = [
            [tensor] if isinstance(tensor, torch.Tensor) else tensor for tensor in caught.values()
        ]
        logits = [
            output[layout.logits_at].reshape(len(asked.tokens), -1).double() for output in outputs
        ]
        shares = np.stack([each.softmax(dim=-1).numpy() for each in logits])
        n_experts = shares.shape[-1]
        if layout.chosen is None:
            tensors = [
                [tensor for tensor in out if not tensor.is_floating_point()] for out in outputs
            ]
            chosen = np.stack([each[-1].numpy() for each in tensors])
        else:
            chosen = np.stack([each.topk(layout.chosen).indices.numpy() for each in logits])
        load = np.stack([np.bincount(each.ravel(), minlength=n_experts) for each in chosen])
        load = load / load.sum(axis=1, keepdims=True)
        best = [
            each[np.arange(len(each)), np.take_along_axis(share, each, 1).argmax(axis=1)]
            for each, share in zip(chosen, shares, strict=True)
        ]
        mean = shares.mean(axis=1)
        arrays |= {
            f"{stack}.layers": np.array(list(caught)),
            f"{stack}.load": load,
            f"{stack}.mean_probability": mean,
            f"{stack}.load_entropy": entropy(load) / np.log(n_experts),
            f"{stack}.router_entropy": entropy(shares).mean(axis=1) / np.log(n_experts),
            f"{stack}.balance_loss": n_experts * (load * mean).sum(axis=1),
            f"{stack}.agreement": np.array(
                [[adjusted_mutual_info_score(first, second) for second in best] for first in best]
            ),
        }
    if not arrays:
        raise NotOffered
    return arrays


def _catch(caught: dict[int, Any], layer: int, _: object, __: object, output: object) -> None:
    caught[layer] = output


def residual_stream(asked: Question) -> Arrays:
    reader, rows = asked.reader, {}

    def add(name: str, row: np.ndarray) -> None:
        rows.setdefault(name, []).append(row)

    for stack, layer in layers(asked):
        streams = reader.streams(stack, layer)
        for place, stream in streams.items():
            add(f"{stack}.residual_norm.{place}", np.linalg.norm(stream, axis=-1))
        for part, stream in zip(reader.parts(stack), streams.values(), strict=False):
            write = reader.write(stack, layer, part)
            norms = [np.linalg.norm(each, axis=-1) for each in (stream, write)]
            add(f"{stack}.written_norm.{part}", norms[1])
            add(f"{stack}.cosine.{part}", (stream * write).sum(axis=-1) / (norms[0] * norms[1]))
            name = part.replace("self_", "") + "_norm"
            is_post = reader.layouts[stack].middle is not None
            for statistic, row in _statistics(stream + write if is_post else stream).items():
                add(f"{stack}.{statistic}.{name}", row)
    arrays = {name: np.stack(each) for name, each in rows.items()}
    for stack, layout in reader.layouts.items():
        if layout.middle is None:
            last = reader.array(stack, len(reader.layers(stack)) - 1, "after")
            arrays |= {f"{stack}.{name}.norm": row for name, row in _statistics(last).items()}
    return arrays


def _statistics(stream: np.ndarray) -> Arrays:
    return {
        "mean": stream.mean(axis=-1),
        "deviation": stream.std(axis=-1),
        "root_mean_square": np.sqrt((stream**2).mean(axis=-1)),
    }


def direction_of(asked: Question) -> np.ndarray:
    """Return the logit difference's direction in the last stream, the norm's scale held."""
    reader, stack = asked.reader, asked.reader.stack
    norm = reader.module.get_submodule(reader.layouts[stack].norm)
    last = reader.plain.at[stack, len(reader.layers(stack)) - 1, "after"][asked.position].double()
    matrix = reader.module.get_output_embeddings().weight[asked.pair].double()
    with torch.no_grad():
        out = norm(last.float()[None])[0].double()
        is_centred = torch.allclose(norm(last.float()[None] + 1.0)[0].double(), out, atol=1e-4)
        shift = getattr(norm, "bias", None)
        shift = torch.zeros_like(out) if shift is None else shift.double()
    centred = last - last.mean() if is_centred else last
    along = (matrix[0] - matrix[1]) * (out - shift) / centred
    # The factor of the logits, as Cohere has, follows from the logits of the pass.
    bias = getattr(reader.module.get_output_embeddings(), "bias", None)
    bias = torch.zeros(2) if bias is None else bias[asked.pair]
    scaled = (reader.plain.logits[asked.position, asked.pair] - bias).double()
    along *= (scaled / (matrix @ out)).mean()
    return (along - along.mean() if is_centred else along).numpy()


def logit_attribution(asked: Question) -> Arrays:
    reader, stack, at = asked.reader, asked.reader.stack, asked.position
    require_split(asked)
    is_capped = getattr(reader.module.config, "final_logit_softcapping", None)
    if not reader.layouts[stack].is_sum or reader.layouts[stack].middle or is_capped:
        raise NotOffered
    last = direction_of(asked)
    n_layers = len(reader.layers(stack))
    arrays: dict[str, list] = {}
    steps = [(layer, part) for layer in range(n_layers) for part in reader.parts(stack)]
    passed = np.prod([reader.carry(stack, *step) for step in steps], axis=0)
    parts = {"embedding": reader.array(stack, 0, "before")[at] * passed @ last}
    for layer in range(n_layers):
        for part in reader.parts(stack):
            passed = passed / reader.carry(stack, layer, part)
            direction = last * passed
            whole = parts[f"layers.{layer}.{part}"] = (
                reader.write(stack, layer, part)[at] @ direction
            )
            if part == "feed_forward":
                arrays.setdefault(part, []).append(whole)
                continue
            key = (stack, layer, part)
            heads = reader.head_outputs(*key)[:, at] @ direction
            gain = np.broadcast_to(reader.gain(*key), (at + 1, len(direction)))[at]
            keys = reader.weights(*key)[:, at] * (written(asked, key) @ (direction * gain))
            for name, value in (("heads", heads), ("keys", keys), ("rest", whole - heads.sum())):
                arrays.setdefault(f"{part}.{name}", []).append(value)
    difference = asked.difference(reader.plain.logits)
    parts["rest"] = difference - sum(parts.values())
    logits = reader.plain.logits[at, asked.pair].double().numpy()
    named = {f"parts.{name}": np.array(value) for name, value in parts.items()}
    return {"logits": logits, **named, **{name: np.array(rows) for name, rows in arrays.items()}}


def at_position(place: int, value: torch.Tensor | float) -> Callable:
    """Return the edit that puts a vector at one position."""

    def edit(stream: torch.Tensor) -> torch.Tensor:
        stream[place] = value if isinstance(value, float) else value[place]
        return stream

    return edit


def of_head(head: int, n_heads: int, value: Any, place: int | None = None) -> Callable:
    """Return the edit that puts numbers into a head's context, at one position or all."""

    def edit(context: torch.Tensor) -> torch.Tensor:
        split = context.reshape(len(context), n_heads, -1)
        split[slice(None) if place is None else place, head] = value
        return split.flatten(1)

    return edit


def saliency(asked: Question) -> Arrays:
    reader, arrays = asked.reader, {}
    plain = asked.difference(reader.plain.logits)
    leaves: dict[str, torch.Tensor] = {}

    def leaf(stack: str) -> Callable:
        def edit(stream: torch.Tensor) -> torch.Tensor:
            leaves[stack] = stream.detach().requires_grad_()
            return leaves[stack]

        return edit

    edits = {(stack, 0, "before"): leaf(stack) for stack in reader.layouts}
    logits = reader.read(edits, with_gradients=True).logits[asked.position, asked.pair]
    slopes = torch.autograd.grad(logits[0] - logits[1], list(leaves.values()))
    for (stack, entering), slope in zip(leaves.items(), slopes, strict=True):
        product = (entering.detach().double() * slope.double()).sum(dim=-1)
        arrays[f"{stack}.gradient_times_input"] = product.numpy()
        arrays[f"{stack}.erasure"] = np.array(
            [
                plain - asked.edited({(stack, 0, "before"): at_position(place, 0.0)})
                for place in range(len(entering))
            ]
        )
    return arrays


def patching(asked: Question) -> Arrays:
    reader = asked.reader
    other = reader.read(ids=asked.other_ids)
    plain = asked.difference(reader.plain.logits)
    whole = asked.difference(other.logits) - plain
    columns: dict[str, list] = {}
    for stack, layer in layers(asked):
        n_places = len(reader.plain.at[stack, layer, "before"])
        for part in ("before", *reader.parts(stack)):
            key = (stack, layer, reader.entering(stack, part))
            name = f"{stack}.{'residual' if part == 'before' else part}"
            row = [
                asked.edited({key: at_position(place, other.at[key])}) for place in range(n_places)
            ]
            columns.setdefault(name, []).append(row)
            if part not in ("before", "feed_forward") and reader.layouts[stack].is_split:
                site = (stack, layer, f"{part}.context")
                n_heads = len(reader.plain.weights[stack, layer, part])
                split = other.at[site].reshape(n_places, n_heads, -1)
                row = [
                    asked.edited({site: of_head(head, n_heads, split[:, head])})
                    for head in range(n_heads)
                ]
                columns.setdefault(f"{name}.heads", []).append(row)
    shares = {name: (np.array(rows) - plain) / whole for name, rows in columns.items()}
    return {"differences": np.array([plain, plain + whole]), **shares}


def never(asked: Question) -> Arrays:
    """Raise for what only the models of this project can have."""
    raise NotOffered


REFERENCES: dict[str, Callable[[Question], Arrays]] = {
    "next_token": next_token,
    "rollout": rollout,
    "head_labels": head_labels,
    "value_weighted": value_weighted,
    "head_outputs": head_outputs,
    "head_norms": head_norms,
    "logit_lens": logit_lens,
    "residual_stream": residual_stream,
    "routing": routing,
    "reward": never,
    "alignment": alignment,
    "logit_attribution": logit_attribution,
    "patching": patching,
    "saliency": saliency,
    "attention_by_distance": attention_by_distance,
}
