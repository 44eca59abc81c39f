"""Prove that a foreign model's attention in blocks gives the numbers of whole matrices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from headlight.model.attention.observer import OBSERVED_AXES, Watch, watching
from headlight.model.foreign.passes import ForeignPasses

STREAMED, IN_LOWER_PRECISION = 1e-5, 4e-2
_WATCH: dict[str, Any] = {"resolution": 3, "queries": (0, 5), "block_rows": 4, "block_heads": 3}


@runtime_checkable
class _Found(Protocol):
    """The results of the self-check (`checks.Checked`)."""

    measured: dict[str, float]
    omitted: dict[str, str]


class WholeMatrices(TorchDispatchMode):
    """Records the operations that allocate a tensor of every query and every key."""

    def __init__(self, sizes: set[tuple[int, int]]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # PyTorch's, without annotations
        self.sizes = sizes
        self.found: list[str] = []

    def __torch_dispatch__(
        self, func: Any, types: object, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        for tensor in (result,) if isinstance(result, Tensor) else tree_leaves(result):
            if (
                isinstance(tensor, Tensor)
                and not tensor.is_meta
                and tensor.shape[-2:] in self.sizes
            ):
                is_whole = (
                    tensor.untyped_storage().nbytes() >= tensor.numel() * tensor.element_size()
                )
                if is_whole and not func.is_view:
                    self.found.append(str(func))
        return result


def check_blocks(
    model: ForeignPasses, inputs: dict[str, Any], checked: _Found, rounding: float = 1.0
) -> None:
    """Add the points of rows and maps, and let attention run in blocks if that proves right.

    The formula is tried first, then the model file's own code.

    Args:
        model: the model.
        inputs: of the pass by which its sites were named.
        checked: gets ``streamed`` among what was measured, or the reason among what is left out.
        rounding: the factor by which large scores let weights differ between two kernels.
    """
    sites = observe(model)
    if not sites:
        return
    expected = _read(model, inputs, sites)
    reason = ""
    for has_formula in (True, False):
        for _, points in model.named.attention_points:
            points.has_formula = has_formula and points.has_interface
        model.is_streamed = True
        try:
            with WholeMatrices(_sizes(inputs)) as allocated:
                streamed = _read(model, inputs, sites)
            far = _distance(streamed, expected)
        except Exception as error:  # whatever a model file does with a tensor without memory
            reason = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
            model.is_streamed = False
            continue
        limit = STREAMED * rounding if model.precision == "float32" else IN_LOWER_PRECISION
        if far <= limit and not allocated.found:
            checked.measured["streamed"] = far
            return
        model.is_streamed = False
        reason = f"blocks differ from the whole by {far:.1e}"
        if allocated.found:
            reason = f"its file makes a matrix of every query and key ({allocated.found[0]})"
    checked.omitted["streaming"] = f"long texts cannot be read in blocks: {reason}"


def observe(model: ForeignPasses) -> list[str]:
    """Add the points of rows and maps to each attention whose weights proved right.

    logsumexp is none of them: a file may subtract a row's maximum before its softmax.
    """
    sites = []
    for _, points in model.named.attention_points:
        if f"{points.path}.weights" not in model.named.points:
            continue
        for name, axes in OBSERVED_AXES.items():
            is_cross = points.path.endswith("cross_attention")
            if name == "logsumexp" or (is_cross and name == "mean_distance"):
                continue
            site = f"{points.path}.{name}"
            points.observed[name] = model.named.point(site, axes, head=points.n_heads)
            sites.append(site)
    return sites


def _read(model: ForeignPasses, inputs: dict[str, Any], sites: list[str]) -> Mapping[str, Tensor]:
    """Return the observations of the first text."""
    first = {name: ids[:1] for name, ids in inputs.items() if name.endswith("input_ids")}
    with watching(Watch(**_WATCH)):
        return model.reread(first, (*sites, model.output_site), is_first=True)


def _sizes(inputs: dict[str, Any]) -> set[tuple[int, int]]:
    """Return the queries and keys of the attentions of a pass."""
    n_source = inputs["input_ids"].shape[1]
    n_target = inputs.get("decoder_input_ids", inputs["input_ids"]).shape[1]
    return {(n_source, n_source), (n_target, n_target), (n_target, n_source)}


def _distance(actual: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> float:
    """Return the greatest difference, of the logits and of distances in parts of their scale."""
    far = 0.0
    for site, whole in expected.items():
        if actual[site].shape != whole.shape:
            return float("inf")
        scale = max(1.0, float(whole.abs().max()))
        far = max(far, float((actual[site].double() - whole.double()).abs().max()) / scale)
    return far if far == far else float("inf")
