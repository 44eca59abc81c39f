"""Attention in blocks gives the numbers of the whole matrix, and never allocates it."""

from contextlib import ExitStack

import pytest
import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from headlight.model.attention.blockwise import blockwise_attention
from headlight.model.attention.observer import (
    BLOCK_ROWS,
    OBSERVED_AXES,
    STATISTICS,
    PooledMap,
    Watch,
    bin_width,
    n_bins,
    observe_whole,
    watching,
)
from headlight.model.cancellation import Cancelled, cancellable
from tests.whole_attention import KINDS, case, context, observed, whole_weights

EVERYTHING = tuple(OBSERVED_AXES)


def stream(sample, watch, names=EVERYTHING, path=None):
    with torch.inference_mode(), watching(watch):
        return blockwise_attention(
            sample.queries, sample.keys, sample.values, sample.terms, names, path=path
        )


@pytest.mark.parametrize("resolution", [2, 4, 7, 150])  # bins wider and narrower than blocks
@pytest.mark.parametrize("kind", KINDS)
def test_blocks_give_the_numbers_of_the_whole_matrix(kind, resolution):
    sample = case(kind, 150)
    queries = (0, 3, 129, 149)
    out, statistics = stream(
        sample, Watch(resolution=resolution, queries=queries, block_rows=128, block_keys=40)
    )
    torch.testing.assert_close(out.double(), context(sample), atol=2e-6, rtol=0)
    for name, expected in observed(sample, queries, resolution).items():
        torch.testing.assert_close(statistics[name].double(), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", ["causal", "sinks", "mask"])
def test_scores_whose_exponential_has_no_float_give_the_numbers_of_the_whole_matrix(kind):
    sample = case(kind, 70, spread=90)
    assert sample.scores[sample.scores.isfinite()].max() > 150
    out, statistics = stream(
        sample, Watch(resolution=2, queries=(69,), block_rows=32, block_keys=20)
    )
    torch.testing.assert_close(out.double(), context(sample), atol=2e-4, rtol=0)
    for name, expected in observed(sample, (69,), 2).items():
        torch.testing.assert_close(statistics[name].double(), expected, atol=2e-3, rtol=1e-5)


def test_the_context_is_that_of_the_fused_kernel():
    sample = case("causal", 300)
    out, statistics = stream(sample, Watch(), ())
    fused = F.scaled_dot_product_attention(
        sample.queries, sample.keys, sample.values, is_causal=True
    )
    torch.testing.assert_close(out, fused, atol=1e-6, rtol=1e-5)
    assert statistics == {}


@pytest.mark.parametrize("kind", ["causal", "cross", "sinks"])
def test_a_whole_matrix_is_observed_as_its_blocks_are(kind):
    sample = case(kind, 70)
    weights, _ = whole_weights(sample)
    with watching(Watch(resolution=9, queries=(5,))):
        statistics = observe_whole(weights, sample.scores, EVERYTHING, sinks=sample.terms.sinks)
    for name, expected in observed(sample, (5,), 9).items():
        torch.testing.assert_close(statistics[name], expected, atol=1e-9, rtol=1e-9)


def test_a_chosen_row_has_all_digits_of_its_queries_and_keys():
    sample = case("alibi", 700, n_heads=2, spread=4)
    _, statistics = stream(sample, Watch(queries=(1, 2, 699)), ("rows",))
    expected = observed(sample, (1, 2, 699), 9)["rows"]
    torch.testing.assert_close(statistics["rows"].double(), expected, atol=3e-8, rtol=0)


def test_only_what_is_named_is_observed():
    _, statistics = stream(case("causal", 20), Watch(), ("max_map", "entropy"))
    assert sorted(statistics) == ["entropy", "max_map"]


def test_bins_are_as_wide_as_the_resolution_needs():
    assert [bin_width(n, 256) for n in (1, 256, 257, 30_000)] == [1, 1, 2, 118]
    assert [n_bins(n, 256) for n in (1, 256, 257, 30_000)] == [1, 256, 129, 255]


def test_a_map_at_full_resolution_is_the_weights():
    sample = case("causal", 40, n_rows=1)
    _, statistics = stream(sample, Watch(resolution=40))
    weights, _ = whole_weights(sample)
    torch.testing.assert_close(statistics["mean_map"].double(), weights, atol=1e-6, rtol=0)
    assert torch.equal(statistics["mean_map"], statistics["max_map"])


def test_a_pooled_map_does_not_depend_on_the_blocks():
    weights = torch.rand(1, 50, 33, dtype=torch.float64)
    maps = []
    for step in (1, 7, 12, 50):
        pooled = PooledMap((1,), 50, 33, 8, weights)
        for start in range(0, 50, step):
            pooled.add((slice(1),), weights[:, start : start + step], start)
        maps.append((pooled.mean, pooled.maxima))
    for mean, maxima in maps[1:]:
        torch.testing.assert_close(mean, maps[0][0])
        assert torch.equal(maxima, maps[0][1])


# --- tiles ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_tile_is_the_part_of_the_map_that_it_names(kind):
    sample = case(kind, 150, n_rows=1) if kind != "padding" else case(kind, 150)
    watch = Watch(keeps=True)
    _, statistics = stream(sample, watch, ("max_map",), path="here")
    assert list(statistics) == ["max_map"]
    weights, _ = whole_weights(sample)
    tile = watch.kept["here"].tile(2, (30, 97), (11, 60), 256)
    expected = weights[0, 2, 30:97, 11:60]
    for name in ("mean_map", "max_map"):
        torch.testing.assert_close(tile[name].double(), expected, atol=1e-6, rtol=1e-5)
    coarse = watch.kept["here"].tile(2, (30, 97), (11, 60), 5)
    first = expected[:14, :10]
    torch.testing.assert_close(coarse["mean_map"][0, 0].double(), first.mean(), atol=1e-6, rtol=0)
    torch.testing.assert_close(coarse["max_map"][0, 0].double(), first.amax(), atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((4, (0, 2), (0, 2), 8), "there is no head 4; the heads are 0 to 3"),
        ((0, (0, 21), (0, 2), 8), "queries 0:21 must be a part of 0:20"),
        ((0, (0, 2), (3, 3), 8), "keys 3:3 is empty; it must be a part of 0:20"),
        ((0, (0, 2), (0, 2), 0), r"resolution \(0\) must be at least 1"),
    ],
)
def test_a_tile_outside_of_the_map_is_an_error(arguments, message):
    watch = Watch(keeps=True)
    stream(case("causal", 20), watch, path="here")
    with pytest.raises(ValueError, match=message):
        watch.kept["here"].tile(*arguments)


# --- memory, cancellation and progress ------------------------------------------------------------


class Allocations(TorchDispatchMode):
    """Records the elements of the largest storage that an operation returns."""

    largest = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor):
                n = tensor.untyped_storage().nbytes() // tensor.element_size()
                self.largest = max(self.largest, n)
        return result


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_as_large_as_the_whole_matrix_is_allocated(kind):
    n = 768
    sample = case(kind, n, n_heads=2, d_head=8, n_rows=2 if kind == "padding" else 1)
    allowed = max(tensor.numel() for tensor in (sample.queries, sample.keys)) + BLOCK_ROWS * n
    with Allocations() as allocations:
        stream(sample, Watch(resolution=64, queries=(0, 500), keeps=True), path="here")
    if kind in ("mask", "relative bias"):  # whose own tables are views of what the case made
        allowed = max(allowed, 2 * BLOCK_ROWS * n)
        assert n * n > allowed
    if kind != "mask":  # its mask is whole before the pass
        assert allocations.largest <= allowed < n * n
    assert allocations.largest > 0


def test_the_watch_of_allocations_sees_a_whole_matrix():
    sample = case("causal", 768, n_heads=2, d_head=8, n_rows=1)
    with Allocations() as allocations:
        torch.softmax(sample.queries @ sample.keys.mT, -1)
    assert allocations.largest >= 768**2


def test_a_cancelled_pass_stops_between_two_blocks():
    answers = iter([False, False, True])
    with cancellable(lambda: next(answers)), pytest.raises(Cancelled):
        stream(case("causal", 1000), Watch())


def test_progress_grows_to_one_over_all_attentions():
    shares = []
    watch = Watch(n_attentions=2, on_progress=shares.append)
    for _ in range(2):
        stream(case("causal", 300), watch, STATISTICS)
    assert shares == sorted(shares)
    assert 0 < shares[0] < 0.5
    assert shares[-1] == 1


def test_weights_that_are_captured_whole_have_tiles_unless_they_are_edited(model):
    ids, site = torch.arange(3, 23)[None], "decoder.layers.1.self_attention"
    for edits in ({}, {f"{site}.weights": lambda weights: weights * 0.5}):
        with (
            torch.inference_mode(),
            ExitStack() as stack,
            watching(Watch(keeps=True)) as watch,
            model.capture_sites([f"{site}.weights", f"{site}.max_map"]) as captured,
        ):
            for name, edit in edits.items():
                stack.enter_context(model.edit(name, edit))
            model(ids)
        assert (site in watch.kept) == (not edits)
        if not edits:
            tile = watch.kept[site].tile(1, (4, 20), (0, 9), 64)["mean_map"]
            whole = captured[f"{site}.weights"][0, 1, 4:20, :9]
            torch.testing.assert_close(tile, whole, atol=1e-6, rtol=1e-5)
