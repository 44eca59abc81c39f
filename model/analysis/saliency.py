"""Input saliency: the share of each token of the text in a logit difference.

Gradient × input (Simonyan et al. 2013, https://arxiv.org/abs/1312.6034; Shrikumar et al. 2016,
https://arxiv.org/abs/1605.01713) extrapolates along a tangent from the pass as it is; erasure (Li
et al. 2016, https://arxiv.org/abs/1612.08220) runs the model without the token. They agree only as
far as the model is linear.
"""

from __future__ import annotations

import numpy as np

from headlight.model.analysis.edited_passes import EditedPasses
from headlight.model.analysis.layers import STACKS, tokens_of
from headlight.model.analysis.logit_attribution import LogitDifference
from headlight.model.interventions.site_edit import SiteEdit
from headlight.model.trace import NamedArray

SITE = "layers.0.residual.before"


def saliency(passes: EditedPasses, difference: LogitDifference) -> dict[str, NamedArray]:
    """Gradient × input and erasure of the vector with which each token enters the first layer.

    Args:
        passes: over the text of a trace with the logits and the sites `SITE`.
        difference: the prediction to explain.

    Returns:
        By stack, (position), float32, in logits: ``decoder.gradient_times_input``, Σ x·∂D/∂x over
        d_model, D the logit difference and x the token's vector with its position; and
        ``decoder.erasure``, by how much D falls if x is set to 0.

    Raises:
        KeyError: the trace lacks the vectors.
        TooManyPasses, Cancelled: as `EditedPasses.predict`.
    """
    trace = passes.trace
    stacks = [stack for stack in STACKS if f"{stack}.{SITE}" in trace]
    if not stacks:
        raise KeyError(f"the trace holds no '*.{SITE}'; capture it")
    gradients = passes.checkpoint.gradients(
        [token.id for token in trace.tokens],
        [token.id for token in trace.target_tokens] if trace.target_tokens else None,
        sites=[f"{stack}.{SITE}" for stack in stacks],
        position=difference.position,
        tokens=(difference.token, difference.against),
        interventions=passes.interventions,
    )
    unedited = difference.in_trace(trace)
    arrays: dict[str, NamedArray] = {}
    for stack in stacks:
        site = f"{stack}.{SITE}"
        vectors = trace[site].astype(np.float64)
        slopes = gradients[site][0].double().cpu().numpy()
        rows = [
            [SiteEdit(kind="set", site=site, value=0.0, positions=(at,))]
            for at in range(len(tokens_of(trace, stack)))
        ]
        erased = unedited - passes.predict(rows, difference).differences
        for name, data in (
            ("gradient_times_input", (vectors * slopes).sum(axis=-1)),
            ("erasure", erased),
        ):
            arrays[f"{stack}.{name}"] = NamedArray(("position",), data.astype(np.float32))
    return arrays
