"""The reward of a text, and the share of each of its tokens.

A reward model rates the text up to each token. The contribution of a token is the change of the
reward when the model has read it. All contributions, the start token's included, therefore sum to
the reward of the text. The model is trained on whole answers; the rewards before the last
token are its ratings of unfinished ones.
"""

from __future__ import annotations

import numpy as np

from headlight.model.trace import NamedArray, Trace


def reward(trace: Trace) -> dict[str, NamedArray]:
    """Return the reward after each token, and the change that each token makes.

    Args:
        trace: of a reward model, with the site ``reward`` (query).

    Returns:
        ``rewards`` and ``contributions`` (query), float32, in units of log odds: an answer is
        preferred to another with probability σ of the difference of their rewards.

    Raises:
        KeyError: the trace has no reward.
    """
    rewards = trace.tensors["reward"].data.astype(np.float64)
    return {
        "rewards": NamedArray(("query",), rewards.astype(np.float32)),
        "contributions": NamedArray(("query",), np.diff(rewards, prepend=0.0).astype(np.float32)),
    }
