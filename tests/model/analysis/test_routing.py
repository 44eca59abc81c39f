"""Where the routers send a text's tokens."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from headlight.model.analysis.routing import likeliest_choice, routing
from headlight.model.config import ExpertsConfig
from headlight.model.moe import load_balance_loss
from headlight.model.trace import Trace
from headlight.model.transformer import Transformer

MakeTrace = Callable[..., Trace]
PROBS, INDICES = "{}.layers.{}.experts.router_probs", "{}.layers.{}.experts.expert_indices"


@pytest.fixture
def by_hand(make_trace: MakeTrace) -> Trace:
    """Four tokens, two experts; layer 3 does as layer 1 does, but its experts are swapped."""
    probs = np.array([[0.8, 0.2], [0.6, 0.4], [0.9, 0.1], [0.3, 0.7]])
    indices = np.array([[0], [0], [0], [1]])
    return make_trace(
        {
            PROBS.format("decoder", 1): probs,
            INDICES.format("decoder", 1): indices,
            PROBS.format("decoder", 3): probs[:, ::-1],
            INDICES.format("decoder", 3): 1 - indices,
        }
    )


def test_one_layer_by_hand(by_hand: Trace) -> None:
    found = routing(by_hand)
    assert found["decoder.layers"].data.tolist() == [1, 3]
    expected = {
        "load": [0.75, 0.25],
        "mean_probability": [0.65, 0.35],
        # In bits, since log₂ is ln/ln 2: h(¼), and the mean of h(.8), h(.6), h(.9) and h(.3).
        "load_entropy": 0.811278,
        "router_entropy": (0.721928 + 0.970951 + 0.468996 + 0.881291) / 4,
        "balance_loss": 2 * (0.75 * 0.65 + 0.25 * 0.35),
    }
    for name, value in expected.items():
        np.testing.assert_allclose(found[f"decoder.{name}"].data[0], value, rtol=1e-5)


def test_layers_whose_experts_only_have_other_numbers_agree(by_hand: Trace) -> None:
    assert routing(by_hand)["decoder.agreement"].data.tolist() == [[1, 1], [1, 1]]


def test_the_axes_are_named(by_hand: Trace) -> None:
    axes = {name: array.axes for name, array in routing(by_hand).items()}
    assert axes == {
        "decoder.layers": ("layer",),
        "decoder.load": ("layer", "expert"),
        "decoder.mean_probability": ("layer", "expert"),
        "decoder.load_entropy": ("layer",),
        "decoder.router_entropy": ("layer",),
        "decoder.balance_loss": ("layer",),
        "decoder.agreement": ("layer", "other"),
    }


def test_layers_agree_by_the_likeliest_of_several_experts(make_trace: MakeTrace) -> None:
    # Each token goes to two of three experts; listed in either order, the likelier one counts.
    probs = np.array([[0.5, 0.4, 0.1], [0.5, 0.4, 0.1], [0.4, 0.5, 0.1], [0.1, 0.4, 0.5]])
    indices = np.array([[0, 1], [1, 0], [0, 1], [1, 2]])
    swapped = {"probs": probs[:, [1, 0, 2]], "indices": np.array([[1, 0], [1, 0], [0, 1], [2, 0]])}
    trace = make_trace(
        {
            PROBS.format("encoder", 0): probs,
            INDICES.format("encoder", 0): indices,
            PROBS.format("encoder", 1): swapped["probs"],
            INDICES.format("encoder", 1): swapped["indices"],
        }
    )
    found = routing(trace)
    np.testing.assert_allclose(found["encoder.agreement"].data, 1)
    np.testing.assert_allclose(found["encoder.load"].data[0], [3 / 8, 4 / 8, 1 / 8])


def test_the_likeliest_choice_is_found_wherever_it_is_listed() -> None:
    probs = np.array([[[0.5, 0.4, 0.1], [0.5, 0.4, 0.1], [0.4, 0.5, 0.1], [0.6, 0.3, 0.1]]])
    # The last token was kept from its likeliest expert, 0.
    indices = np.array([[[0, 1], [1, 0], [0, 1], [2, 1]]])
    assert likeliest_choice(probs, indices).tolist() == [[0, 0, 1, 1]]


def test_the_balance_loss_is_that_of_training_on_one_block(
    make_model: Callable[..., Transformer], read: Callable[..., Trace]
) -> None:
    model = make_model(moe=ExpertsConfig(n_experts=4, top_k=2, layers=(0, 1)))
    trace = read(model, [5, 6, 7, 8, 9])
    found = routing(trace)
    for layer in (0, 1):
        probs = torch.tensor(trace.tensors[PROBS.format("decoder", layer)].data)
        indices = torch.tensor(trace.tensors[INDICES.format("decoder", layer)].data)
        loss = load_balance_loss(probs, indices).item()
        assert found["decoder.balance_loss"].data[layer] == pytest.approx(loss, rel=1e-5)


def test_renumbering_a_layers_experts_changes_nothing_but_their_order(
    make_trace: MakeTrace,
) -> None:
    drawn = np.random.default_rng(0)
    probs = drawn.dirichlet(np.ones(4), size=(2, 30))
    indices = np.argsort(-probs, axis=-1)[..., :2]
    order = np.array([2, 0, 3, 1])  # the expert that number e comes from
    renumbered = [probs[1][:, order], np.argsort(order)[indices[1]]]
    plain, other = (
        routing(
            make_trace(
                {
                    PROBS.format("decoder", 0): probs[0],
                    INDICES.format("decoder", 0): indices[0],
                    PROBS.format("decoder", 1): second_probs,
                    INDICES.format("decoder", 1): second_indices,
                }
            )
        )
        for second_probs, second_indices in ([probs[1], indices[1]], renumbered)
    )
    for name in ("load_entropy", "router_entropy", "balance_loss", "agreement"):
        np.testing.assert_allclose(
            plain[f"decoder.{name}"].data, other[f"decoder.{name}"].data, rtol=1e-5
        )
    np.testing.assert_allclose(
        plain["decoder.load"].data[1][order], other["decoder.load"].data[1], rtol=1e-6
    )


def test_an_even_load_is_1_and_a_single_expert_n_experts(make_trace: MakeTrace) -> None:
    even, one = np.full((4, 4), 0.25), np.tile([1.0, 0, 0, 0], (4, 1))
    trace = make_trace(
        {
            PROBS.format("decoder", 0): even,
            INDICES.format("decoder", 0): np.arange(4)[:, None],
            PROBS.format("decoder", 1): one,
            INDICES.format("decoder", 1): np.zeros((4, 1), dtype=int),
        }
    )
    found = routing(trace)
    assert found["decoder.balance_loss"].data.tolist() == [1, 4]
    np.testing.assert_allclose(found["decoder.load_entropy"].data, [1, 0], atol=1e-6)
    np.testing.assert_allclose(found["decoder.router_entropy"].data, [1, 0], atol=1e-6)


def test_both_stacks_are_summarised_by_themselves(make_trace: MakeTrace) -> None:
    arrays = {}
    for stack, n_tokens in (("encoder", 3), ("decoder", 2)):
        arrays[PROBS.format(stack, 0)] = np.full((n_tokens, 2), 0.5)
        arrays[INDICES.format(stack, 0)] = np.zeros((n_tokens, 1), dtype=int)
    found = routing(make_trace(arrays))
    assert {name.partition(".")[0] for name in found} == {"encoder", "decoder"}


def test_a_dense_model_is_refused(make_trace: MakeTrace) -> None:
    with pytest.raises(KeyError, match=r"experts\.expert_indices'; capture it"):
        routing(make_trace({"logits": [[0.0]]}))


def test_missing_choices_are_refused(make_trace: MakeTrace) -> None:
    trace = make_trace(
        {
            PROBS.format("decoder", 0): [[0.5, 0.5]],
            PROBS.format("decoder", 1): [[0.5, 0.5]],
            INDICES.format("decoder", 0): [[1]],
        }
    )
    with pytest.raises(ValueError, match=r"lacks decoder\.layers\.1\.experts\.expert_indices"):
        routing(trace)
