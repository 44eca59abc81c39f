"""The trained matrices of a foreign model: W_Q, W_K, W_V and W_O by head, and its tables.

Queries, keys and values are found as columns of a module's output. The rows of that module's weight
are W_Q, W_K and W_V if the module multiplies by a matrix and is given the stream.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from headlight.model.foreign.attention_facts import same, tolerance_of
from headlight.model.foreign.probe import Call
from headlight.model.foreign.sites import Matrix, Named, Source, rows_of
from headlight.model.served import Weight
from headlight.model.weights import InputMatrix, NormParts

# --- their modules --------------------------------------------------------------------------------


def find_source(
    tensor: Tensor, inside: Sequence[Call], until: int, factors: Sequence[float]
) -> Source | None:
    """Return the module whose output holds queries, keys or values, before rotation.

    Args:
        tensor: (batch, head, token, d_head).
        inside: the calls of modules to search, the last ones first.
        until: the time before which the module was called.
        factors: rotation may multiply by one of them, as YaRN's does.

    Returns:
        None: there is no such module.
    """
    n_heads, n_tokens, width = tensor.shape[1:]
    for call in reversed(inside):
        if call.start > until or not call.outputs:
            continue
        out = call.outputs[0]
        is_flat = out.ndim in (3, 4) and out.shape[:2] == (len(tensor), n_tokens)
        is_by_head = not is_flat and out.shape == tensor.shape
        if is_by_head:
            out = out.transpose(1, 2)
        elif not is_flat:
            continue
        flat = out.flatten(2)
        if flat.shape[-1] < n_heads * width:
            continue
        for factor in (*factors, width**-0.5):  # some files scale the queries before the product
            columns = _columns(flat[0, 0] * factor, tensor[0, :, 0])
            if columns is None:
                continue
            candidate = flat[..., columns].transpose(1, 2) * factor
            if same(candidate, tensor):
                return Source(call, columns, factor, False, is_by_head)
            if same(candidate.norm(dim=-1), tensor.norm(dim=-1), 10):
                return Source(call, columns, factor, True, is_by_head)
    return None


def _columns(row: Tensor, heads: Tensor) -> Tensor | None:
    """Return the columns (head, d_head) of a row that hold the heads' vectors, or None."""
    width = heads.shape[-1]
    windows, columns = row.unfold(0, width, 1), []
    for head in heads:
        far = (windows - head).abs().amax(dim=-1)
        start = int(far.argmin())
        if float(far[start]) > tolerance_of(row) * float(head.abs().max()) or start in columns:
            return None
        columns.append(start)
    starts = torch.tensor(columns, device=row.device)
    return starts[:, None] + torch.arange(width, device=row.device)


def name_matrix(
    named: Named, name: str, n_heads: int, source: Source | None, inside: Sequence[Call]
) -> None:
    """Name W_Q, W_K or W_V, or leave it out with the reason.

    If a norm is between the projection and the queries, the matrix makes the norm's input.
    """
    is_rotated = source is not None and source.is_rotated
    norms: list[tuple[nn.Module, Tensor]] = []
    while source is not None and _matrix_of(source.call.module) is None and source.call.inputs:
        call, given = source.call, source.call.inputs[0]
        if given.shape != call.outputs[0].shape:
            break
        norms.append((call.module, source.columns))
        given = given.transpose(1, 2) if source.is_by_head else given
        given = given.flatten(2)[..., source.columns].transpose(1, 2)
        source = find_source(given, inside, call.start - 1, (1.0,))
    if source is None:
        named.omitted[name] = "it is not a part of the output of one module"
        return
    weight, (entering, out) = _matrix_of(source.call.module), _ends(source.call)
    if weight is None or entering is None or out is None:
        named.omitted[name] = f"a {type(source.call.module).__name__} is not a matrix"
        return
    if entering.shape[-1] != named.d_model:
        named.omitted[name] = (
            f"it is made from {entering.shape[-1]} numbers and not from the {named.d_model} of the "
            "stream"
        )
        return
    product = entering.flatten(0, -2).float() @ weight.detach().float()
    if (bias := getattr(source.call.module, "bias", None)) is not None:
        product = product + bias.detach().float()
    if not same(product, out.flatten(0, -2).float(), _factor(out)):
        named.omitted[name] = "its module does more than multiply by a matrix"
        return
    sharers = n_heads // len(source.columns)
    columns = source.columns.repeat_interleave(sharers, dim=0)
    factor = 1.0 if is_rotated else source.factor
    behind = tuple((norm, each.repeat_interleave(sharers, dim=0)) for norm, each in norms)
    named.matrices[name] = Matrix(source.call.module, columns, factor, behind)


def _factor(out: Tensor) -> float:
    return 10 if out.dtype == torch.float32 else 2e3  # rounding, against that of float32


def _ends(call: Call) -> tuple[Tensor | None, Tensor | None]:
    return next(iter(call.inputs), None), next(iter(call.outputs), None)


def _matrix_of(module: nn.Module) -> Tensor | None:
    """Return the weight (input, output) of a module that multiplies by it; None: it has none."""
    weight = getattr(module, "weight", None)
    if not isinstance(weight, Tensor) or weight.ndim != 2 or isinstance(module, nn.Embedding):
        return None
    return weight if type(module).__name__ == "Conv1D" else weight.T


def rounded_matrices(model: nn.Module, named: Named) -> dict[str, nn.Parameter]:
    """Return the parameters with two or more axes, named by the part that they are in."""
    by_name: dict[str, nn.Parameter] = {}
    taken: set[int] = set()

    def add(path: str, module: nn.Module) -> None:
        for name, parameter in module.named_parameters():
            if parameter.ndim > 1 and id(parameter) not in taken:
                taken.add(id(parameter))
                by_name[f"{path}.{name}" if path else name] = parameter

    for stack, table in named.embeddings.items():
        add(f"{stack}.embedding.tokens", table)
    for stack, (table, _) in named.tables.items():
        add(f"{stack}.embedding.positions", table)
    for layer in named.layers:
        for kind, attention in layer.attentions.items():
            add(f"{layer.path}.{kind}", attention.call.module)
        experts = f"{layer.path}.experts"
        add(
            experts if experts in named.experts else f"{layer.path}.feed_forward", layer.call.module
        )
    add("", model)
    return by_name


# --- reading them ---------------------------------------------------------------------------------


def output_weights(named: Named, path: str) -> Tensor:
    """Return W_O of an attention (head, d_head, d_model), times the factor of its output.

    Raises:
        KeyError: the model has no such attention, or the context is changed before its projection.
    """
    by_head = _projection(named, path)
    factor = named.factors.get(path)
    return by_head if factor is None else by_head * factor.to(by_head)


def _projection(named: Named, path: str) -> Tensor:
    if path not in named.projections:
        reasons = (named.omitted.get(f"{path}.{part}") for part in ("head_outputs", "output"))
        raise KeyError(next(filter(None, reasons), f"there is no attention {path}"))
    rows = _matrix_of(named.projections[path])
    assert rows is not None
    n_heads = named.points[f"{path}.context"].sizes["head"]
    by_head: Tensor = rows.detach().unflatten(0, (n_heads, -1))
    return by_head


def weights(module: Any, named: Named) -> dict[str, Weight]:
    """As `Served.weights`; ``named.omitted`` has the reason for each that is missing."""
    by_name: dict[str, Weight] = {}
    by_token = ("vocab", "d_model")
    for stack, table in named.embeddings.items():
        by_name[f"{stack}.embedding.W_E"] = Weight.of(by_token, rows_of(table))
    for stack, (table, start) in named.tables.items():
        rows = rows_of(table)[start:]
        by_name[f"{stack}.embedding.W_pos"] = Weight.of(("position", "d_model"), rows)
    for _, points in named.attention_points:
        for letter in "QKV":
            if (matrix := named.matrices.get(f"{points.path}.W_{letter}")) is not None:
                axes, weight = ("head", "d_model", "d_head"), _matrix_of(matrix.module)
                assert weight is not None
                made = partial(_of_heads, matrix)
                by_name[f"{points.path}.W_{letter}"] = Weight.of(axes, weight, made)
                if (bias := _bias_of(matrix)) is not None:
                    by_name[f"{points.path}.b_{letter}"] = Weight.of(("head", "d_head"), bias)
        if points.path in named.projections:
            rows, axes = _projection(named, points.path), ("head", "d_head", "d_model")
            by_name[f"{points.path}.W_O"] = Weight.of(axes, rows)
            if (bias := getattr(named.projections[points.path], "bias", None)) is not None:
                by_name[f"{points.path}.b_O"] = Weight.of(("d_model",), bias)
    unembedding = getattr(module.get_output_embeddings(), "weight", None)
    if unembedding is not None and unembedding.ndim == 2:
        by_name["W_U"] = Weight.of(by_token, unembedding)
    return by_name


def _of_heads(matrix: Matrix, weight: Tensor) -> Tensor:
    columns = weight[:, matrix.columns.to(weight.device)]
    return columns.transpose(0, 1) * matrix.factor


def _bias_of(matrix: Matrix) -> Tensor | None:
    bias = getattr(matrix.module, "bias", None)
    return None if bias is None else bias.detach()[matrix.columns] * matrix.factor


def input_matrix(
    matrix: Matrix, norm_of: Callable[[nn.Module, int], NormParts | None]
) -> InputMatrix | None:
    """Return W_Q, W_K or W_V by head, with its bias and its norm; None: its module has no matrix.

    Args:
        matrix: its place.
        norm_of: returns the formula of a norm of so many numbers.
    """
    if (weight := _matrix_of(matrix.module)) is None:
        return None
    norm = None
    if len(matrix.norms) == 1:
        module, columns = matrix.norms[0]
        scale = getattr(module, "weight", None)
        norm = None if scale is None or scale.ndim != 1 else norm_of(module, len(scale))
        if norm is not None:
            columns = columns.to(norm.scale.device) % len(norm.scale)
            shift = None if norm.shift is None else norm.shift[columns]
            norm = replace(norm, scale=norm.scale[columns], shift=shift)
    return InputMatrix(_of_heads(matrix, weight.detach()), _bias_of(matrix), norm)
