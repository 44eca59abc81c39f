"""Fixtures for comparisons with the models of Hugging Face.

A reference is built from its config, its weights are redrawn so that each of them matters, and they
are copied into a model of this package. Then both read the same ids.
"""

import re

import pytest
import torch

ATOL = 1e-5
VOCAB_SIZE = 60


@pytest.fixture(scope="session")
def redraw():
    """Draw all weights large enough that attention is far from even, and switch dropout off."""

    def draw(reference):
        generator = torch.Generator().manual_seed(5)
        with torch.no_grad():
            for parameter in reference.parameters():
                if parameter.ndim == 1:
                    parameter += 0.3 * torch.randn(parameter.shape, generator=generator)
                elif parameter.requires_grad:
                    parameter.normal_(0.0, 0.25, generator=generator)
        reference.eval()

    return draw


@pytest.fixture(scope="session")
def rename():
    """Weights by our names, which a table of patterns makes of theirs, read from top to bottom."""

    def apply(weights, names):
        renamed = {}
        for name, tensor in weights.items():
            for theirs, ours in names.items():
                name = re.sub(theirs, ours, name)
            name = re.sub(r"norm\.weight$", "norm.scale", name)
            renamed[re.sub(r"norm\.bias$", "norm.shift", name)] = tensor.clone()
        return renamed

    return apply


@pytest.fixture(scope="session")
def assert_agrees():
    """Compare what was captured, site by site, with what the reference gives there."""

    def compare(captured, expected):
        for site, tensor in expected.items():
            torch.testing.assert_close(
                captured[site], tensor, rtol=0, atol=ATOL, msg=lambda text, at=site: f"{at}: {text}"
            )

    return compare


@pytest.fixture(scope="session")
def by_layer():
    """One tensor a layer, by site: ``by_layer(x, "decoder", "residual.before")``."""

    def name(tensors, stack, site):
        return {f"{stack}.layers.{layer}.{site}": tensor for layer, tensor in enumerate(tensors)}

    return name


@pytest.fixture
def ids():
    """Three rows of eleven tokens, without token 0, which is padding."""
    return torch.randint(1, VOCAB_SIZE, (3, 11), generator=torch.Generator().manual_seed(7))


@pytest.fixture
def is_token():
    """Rows of 11, 7 and 1 tokens; what follows is padding."""
    return torch.arange(11) < torch.tensor([11, 7, 1])[:, None]
