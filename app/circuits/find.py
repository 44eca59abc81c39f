"""Find the circuit that a request asks for, for the server and for the command line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from headlight.model.circuits.circuit import Circuit, Progress, find_circuit, measure, ranked
from headlight.model.circuits.graph import NoGraph, Reader, UnknownEdge, Writer
from headlight.model.circuits.pairs import Pair, PairPasses, UnfitPair
from headlight.model.served import Served
from headlight.model.tracing import read_tokens
from headlight.problems import Problem
from headlight.schemas.circuits import CircuitAnswer, CircuitRequest, PairRequest

MAX_WORK = 40_000_000
"""The edges × tokens that passes of one edge each may read."""
MAX_TOKENS = 2**17
"""The tokens × steps of gradients; a token of a large model takes milliseconds."""
N_RANKED = 400


def compute(
    request: CircuitRequest, model: Served, *, on_progress: Progress = lambda _: None
) -> CircuitAnswer:
    """Find a circuit, or measure the one whose edges are given.

    Raises:
        Problem: 422, a pair does not fit the tokenizer, the model has no exact graph, or it would
            take too much work.
        Cancelled: as `cancellation`.
    """
    try:
        return _compute(request, model, on_progress)
    except NoGraph as error:
        raise Problem(422, "no-graph", str(error)) from error
    except UnknownEdge as error:
        raise Problem(422, "unknown-edge", str(error)) from error
    except ValueError as error:
        raise Problem(422, "invalid-pairs", str(error)) from error


def _compute(request: CircuitRequest, model: Served, on_progress: Progress) -> CircuitAnswer:
    pairs, texts, skipped = pairs_of(request, model)
    if request.by_position:
        pairs, texts, skipped = _of_one_length(pairs, texts, skipped)
    passes = PairPasses(
        model,
        tuple(pairs),
        baseline=request.baseline,
        by_position=request.by_position,
        by_expert=request.by_expert,
    )
    _check_work(request, passes)
    if request.edges is not None:
        edges = [passes.edges.edge(name) for name in request.edges]
        circuit = measure(passes, edges)
    else:
        circuit = find_circuit(
            passes,
            method=request.score,
            steps=request.steps,
            rule=request.rule,
            n_edges=request.n_edges,
            faithfulness=request.faithfulness,
            holds_out=request.holds_out,
            on_progress=on_progress,
        )
    return answer(passes, circuit, request, texts, skipped)


def _of_one_length(
    pairs: list[Pair], texts: list[PairRequest], skipped: list[str]
) -> tuple[list[Pair], list[PairRequest], list[str]]:
    """Return the pairs of the commonest length, and why the others were left out."""
    (shape, _), *_ = Counter(pair.shape for pair in pairs).most_common(1)
    kept = [number for number, pair in enumerate(pairs) if pair.shape == shape]
    left = [
        f"{texts[number].clean!r}: by position all pairs need {shape[0]} tokens, as most have; "
        f"this one has {len(pair.clean)}"
        for number, pair in enumerate(pairs)
        if pair.shape != shape
    ]
    return [pairs[n] for n in kept], [texts[n] for n in kept], [*skipped, *left]


def pairs_of(
    request: CircuitRequest, model: Served
) -> tuple[list[Pair], list[PairRequest], list[str]]:
    """Return the pairs that fit the tokenizer, their texts, and why others were left out.

    Raises:
        ValueError: no pair fits, or there is no such task.
    """
    from headlight.model.circuits.tasks import TextPair, as_request, fitted, task_pairs

    if request.task is not None:
        pairs, listed = task_pairs(model, request.task, request.n_pairs)
        given = [PairRequest.model_validate(row) for row in as_request(listed)]
        return pairs, given, []
    pairs, texts, skipped = [], [], []
    for number, each in enumerate(request.pairs):
        right, wrong = (
            (value,) if isinstance(value, str) else tuple(value)
            for value in (each.right, each.wrong)
        )
        pair = TextPair(
            each.clean, each.corrupted, right, wrong, each.target, each.corrupted_target
        )
        try:
            pairs.append(fitted(model, pair))
            texts.append(each)
        except UnfitPair as error:
            skipped.append(f"pairs.{number}: {error}")
    if not pairs:
        raise UnfitPair(f"no pair fits the tokenizer; {skipped[0]}")
    return pairs, texts, skipped


def _check_work(request: CircuitRequest, passes: PairPasses) -> None:
    n_tokens = sum(pair.n_tokens for pair in passes.pairs)
    is_exact = request.score in ("noising", "denoising", "exact") and request.edges is None
    actual = passes.edges.n_edges * n_tokens if is_exact else request.steps * n_tokens
    limit = MAX_WORK if is_exact else MAX_TOKENS
    if actual > limit:
        what = "edges × tokens" if is_exact else "steps × tokens"
        way_out = "send fewer or shorter pairs" + (", or score by eap_ig" if is_exact else "")
        detail = f"{actual:,} {what} are more than the {limit:,} that are allowed; {way_out}"
        raise Problem(422, "too-much-work", detail, limit=limit, actual=actual)


def answer(
    passes: PairPasses,
    circuit: Circuit,
    request: CircuitRequest,
    texts: list[PairRequest],
    skipped: list[str],
) -> CircuitAnswer:
    """Return a circuit as it is sent."""
    scores, model, edges = circuit.scores, passes.model, passes.edges
    graph, first = edges.graph, passes.pairs[0]
    order = [] if scores is None else ranked(edges, scores, request.rule)[:N_RANKED]

    def edge(number: int, loss: float) -> dict[str, Any]:
        writer, reader = edges.ends(number)
        return {
            "name": edges.name(number),
            "writer": writer.node,
            "reader": reader.node,
            "position": reader.position if request.by_position else None,
            "score": None if scores is None else float(scores[number]),
            "loss": float(loss),
        }

    losses = zip(circuit.edges, circuit.losses, strict=True)
    return CircuitAnswer.model_validate(
        {
            "model": model.id,
            "revision": model.description.revision,
            "request": request.model_dump(exclude={"pairs", "edges"}),
            "n_edges": edges.n_edges,
            "tokens": _tokens(model, texts[0].clean, len(first.clean)),
            "target_tokens": first.target
            and _tokens(model, texts[0].target or "", len(first.target), is_target=True),
            "writers": [
                _node(each, () if each.head is None else (each.head,)) for each in graph.writers
            ],
            "readers": [_node(each, each.heads) for each in graph.readers],
            "reasons": list(graph.reasons),
            "edges": [edge(number, loss) for number, loss in losses],
            "ranking": [edge(number, 0.0) for number in order],
            "chosen": asdict(circuit.chosen),
            "held_out": circuit.held_out and asdict(circuit.held_out),
            "curve": [asdict(point) for point in circuit.curve],
            "complement": circuit.complement,
            "pairs": texts,
            "skipped": skipped,
        }
    )


def _tokens(model: Served, text: str, count: int, *, is_target: bool = False) -> list[str]:
    return [token.text for token in read_tokens(model, text, is_target=is_target)][:count]


def _node(node: Writer | Reader, heads: Sequence[int]) -> dict[str, Any]:
    names = ("name", "kind", "stack", "layer", "path")
    return {**{name: getattr(node, name) for name in names}, "heads": list(heads)}
