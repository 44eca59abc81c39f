"""The earlier heads that feed a head: whose writes its queries, keys and values are made of.

Over the strongest cells of a profile, the share of an earlier head is the sum of its parts of the
score's lead over the mean of the visible keys (`score_attribution`), over the sum of all leads; of
the values, its part of the context along the context. The control gives every head of a layer the
context of its neighbour, through its own columns of W_O.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from headlight.model.analysis.score_attribution import (
    LEAST_WEIGHT,
    ONE,
    Cell,
    Side,
    contrast,
    facts_of,
    sites_for,
)
from headlight.model.analysis.stream_parts import steps_to
from headlight.model.served import Served
from headlight.model.trace import Trace
from headlight.model.tracing import PassSpec, run_batch, tokenize

SIDES = ("queries", "keys", "values")
LEAST_SHARE, ABOVE_CONTROL, MOST_NAMED = 0.05, 2.0, 3
Shares = dict[tuple[str, int, str], dict[str, float]]
"""Sums by attention, head and side: of each part, and of the whole under an empty name."""


def measure_feeders(checkpoint: Served, profile: Mapping[str, Any]) -> dict[str, Any]:
    """Return the heads that feed each head of a profile, in the cells of its ``strongest``.

    Attentions whose scores have no parts are left out.
    """
    sites: dict[str, tuple[str, ...]] = {}
    for path in profile["attentions"]:
        try:
            sites[path] = sites_for(checkpoint, facts_of(checkpoint, path))
        except ValueError:  # its reason is told where it is asked for
            continue
    sums: Shares = {}
    controls: Shares = {}
    for number, example in enumerate(profile["examples"]):
        cells = [*_cells(profile, number, sites)]
        if not cells:
            continue
        wanted = {site for path in sites for site in sites[path] if not site.endswith(".rows")}
        wanted |= {f"{path}.{part}" for path in sites for part in ("weights", "values")}
        known = [site for site in checkpoint.description.site_names if site in wanted]
        text = tokenize(checkpoint, example["text"], example["target"] or None)
        (trace,) = run_batch(checkpoint, PassSpec((*known,)), [text])
        for cell in cells:
            _add(checkpoint, trace, cell, (sums, controls))
    return {
        path: [
            {side: _named(sums, controls, (path, head, side)) for side in SIDES}
            for head in range(len(profile["attentions"][path]))
        ]
        for path in sites
    }


def _cells(profile: Mapping[str, Any], sentence: int, paths: Mapping[str, Any]) -> Iterator[Cell]:
    """Yield the strongest cells of all heads in a sentence."""
    for path in paths:
        for head, of_head in enumerate(profile["attentions"][path]):
            for each in of_head["strongest"]:
                if each["sentence"] == sentence:
                    yield Cell(path=path, head=head, query=each["query"], key=each["key"])


def _add(model: Served, trace: Trace, cell: Cell, sums: tuple[Shares, Shares]) -> None:
    """Add the shares of a cell, and those of the shuffled heads."""
    weights = trace[f"{cell.path}.weights"][cell.head, cell.query]
    try:
        at, factors = contrast(weights > LEAST_WEIGHT, cell)
    except ValueError:  # only one key is visible
        return
    places = {
        "queries": (torch.tensor([cell.query]), ONE),
        "keys": (at, factors),
        "values": (torch.arange(len(weights)), torch.from_numpy(weights).double()),
    }
    sides = {
        side: Side(model, trace, cell, side, *place)
        for side, place in places.items()
        if side != "values" or f"{cell.path}.values" in trace
    }
    read = {side: each.coefficients @ each.final for side, each in sides.items()}
    along = {"queries": read["keys"], "keys": read["queries"], "values": read.get("values")}
    for side, each in sides.items():
        direction = along[side]
        assert direction is not None
        key = (cell.path, cell.head, side)
        counted = [total.setdefault(key, defaultdict(float)) for total in sums]
        for total in counted:
            total[""] += float(read[side] @ direction)
        unit = torch.eye(len(direction), dtype=torch.float64)[:, None]
        turned = each.turned(unit.expand(-1, len(each.at), -1)) @ direction * each.coefficients
        for begin, path, reader in _readers(each, turned):
            contexts = torch.from_numpy(trace[f"{path}.context"])[:, each.at]
            for total, written in zip(counted, (contexts, contexts.roll(1, dims=0)), strict=True):
                shares = torch.einsum("hnd,hdn->h", written, reader)
                for head, share in enumerate(shares.tolist()):
                    total[f"{begin}{head}"] += share


def _readers(side: Side, along: Tensor) -> Iterator[tuple[str, str, Tensor]]:
    """Yield how names of an attention's heads begin, its path, and what reads its contexts.

    ``along`` (d_head, position) is a direction of what the side's matrix reads.
    """
    reader, matrix, factor = side.reader, side.matrix, side.factor
    for step in reversed(steps_to(list(reader.trace), reader.site)):
        if reader.config.norm_place == "post":
            _, (matrix, factor), _ = reader.through_norm(step, matrix, factor)
        for path in step.attentions:
            read = (matrix @ along) * factor
            if f"{path}.gain" in reader.trace:
                read = read * reader.wide(f"{path}.gain").T
            output = reader.weights.outputs(path)
            assert output is not None
            by_head = output.float() @ read.to(output.device, torch.float32)
            yield f"{reader.begin_of(path)}{step.layer}.", path, by_head.cpu()
        carry = reader.carry_of(step)
        matrix = matrix if carry is None else carry[:, None] * matrix


def _named(sums: Shares, controls: Shares, key: tuple[str, int, str]) -> list[dict[str, Any]]:
    """Return the heads whose share counts, the strongest first."""
    of_side, of_control = sums.get(key, {}), controls.get(key, {})
    whole = of_side.get("") or 1.0
    shares = {name: (of_side[name] / whole, of_control[name] / whole) for name in of_side if name}
    return [
        {"name": name, "share": share, "control": control}
        for name, (share, control) in sorted(shares.items(), key=lambda each: -each[1][0])
        if share >= max(LEAST_SHARE, ABOVE_CONTROL * abs(control))
    ][:MOST_NAMED]
