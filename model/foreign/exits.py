"""The logit lens of a foreign model: its own exit, run by stepping over its layers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import torch
from jaxtyping import Float

from headlight.model.cancellation import check
from headlight.model.foreign.attention import new_pass
from headlight.model.foreign.installing import stepping_over
from headlight.model.foreign.passes import ForeignPasses


def exits(
    model: ForeignPasses, streams: Iterable[Float[np.ndarray, "query d_model"]]
) -> Iterator[Float[np.ndarray, "query vocab"]]:
    """The logits of each stream, as if it left the last layer of the stack that predicts.

    Every layer returns the stream, so that what follows the layers runs as it is in the model: a
    norm, a projection, a cap on the logits.
    """
    for stream in streams:
        check()
        x = torch.as_tensor(np.ascontiguousarray(stream), device=model.device)
        x = x.to(next(model.module.parameters()).dtype)[None]
        inputs = model.dummy_inputs(x.shape[1])
        with torch.inference_mode(), new_pass(), stepping_over(x):
            logits = model.module(**inputs).logits
        yield logits[0].float().cpu().numpy()
