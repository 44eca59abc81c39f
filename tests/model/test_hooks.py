"""Capturing and editing tensors at hook points."""

import re
import threading
from contextlib import ExitStack

import pytest
import torch
from torch import Tensor

from headlight.model.hooks import HookedModule, HookPoint
from headlight.model.sites import UnknownHead, UnknownLayer, UnknownSite

WEIGHTS = "decoder.layers.0.self_attention.weights"
SCORES = "decoder.layers.0.self_attention.scores"
CONTEXT = "decoder.layers.0.self_attention.context"


def exactly(message):
    """Return a pattern for the whole of an error message."""
    return f"^{re.escape(message)}$"


# --- capture --------------------------------------------------------------------------------------


def test_only_what_was_asked_for_is_kept(model, ids):
    with model.capture([WEIGHTS, "logits"]) as captured:
        model(ids)
    assert list(captured) == [WEIGHTS, "logits"]
    assert len(captured) == 2
    assert "decoder.embedding.tokens" not in captured
    with pytest.raises(KeyError):
        captured[SCORES]


def test_layers_narrow_the_sites_that_lie_in_a_layer(model, ids):
    with model.capture(["*.weights", "logits"], layers=[1]) as captured:
        model(ids)
    assert list(captured) == ["decoder.layers.1.self_attention.weights", "logits"]


@pytest.mark.parametrize("heads", [[2], [3, 0], [0, 1, 2, 3], [3, 2, 1, 0]])
def test_heads_are_kept_in_the_order_asked_for(model, ids, heads):
    with model.capture(["*"]) as whole:
        model(ids)
    with model.capture(["*"], heads=heads) as captured:
        model(ids)
    axes = {site.name: site.axes for site in model.sites}
    assert list(captured) == list(whole)
    for site, tensor in captured.items():
        expected = whole[site][:, heads] if "head" in axes[site] else whole[site]
        torch.testing.assert_close(tensor, expected, rtol=0, atol=1e-5, msg=site)


def test_nested_captures_each_get_their_own(model, ids):
    with model.capture([WEIGHTS]) as whole:
        model(ids)
    with (
        model.capture([WEIGHTS, "logits"], heads=[3, 1]) as outer,
        model.capture([WEIGHTS], heads=[0]) as inner,
    ):
        model(ids)
    assert list(outer) == [WEIGHTS, "logits"]
    assert list(inner) == [WEIGHTS]
    torch.testing.assert_close(outer[WEIGHTS], whole[WEIGHTS][:, [3, 1]])
    torch.testing.assert_close(inner[WEIGHTS], whole[WEIGHTS][:, [0]])


def test_a_capture_ends_when_its_block_raises(model, ids):
    with pytest.raises(RuntimeError, match="on purpose"), model.capture(["logits"]) as captured:
        raise RuntimeError("on purpose")
    model(ids)
    assert len(captured) == 0


def test_captured_tensors_carry_gradients(model, ids):
    with model.capture([WEIGHTS]) as captured:
        logits = model(ids).logits
    (gradient,) = torch.autograd.grad(logits.square().sum(), captured[WEIGHTS])
    assert gradient.abs().sum() > 0


# --- a pass changes nothing -----------------------------------------------------------------------


def stored(model):
    """Everything that the modules of a model hold, by identity where it is an object."""

    def entries(name, module):
        for key, value in vars(module).items():
            inner = value if isinstance(value, dict) else {"": value}
            for part, each in inner.items():
                is_plain = isinstance(each, int | float | str | bool | tuple | type(None))
                yield f"{name}/{key}/{part}", each if is_plain else id(each)

    return {
        key: value for name, module in model.named_modules() for key, value in entries(name, module)
    }


def test_nothing_is_stored_on_a_module_by_a_pass(model, ids):
    assert model.hook_points  # cached on first use, which is not part of a pass
    before = stored(model)
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    model(ids)
    with model.edit(WEIGHTS, lambda weights: weights * 1), model.capture(["*"], heads=[1]):
        model(ids, cache=model.new_cache())
        assert stored(model) == before
    assert stored(model) == before
    torch.testing.assert_close(dict(model.state_dict()), state, rtol=0, atol=0)


def test_an_idle_hook_point_returns_its_tensor():
    point = HookPoint("batch query")
    tensor = torch.zeros(2, 3)
    assert point(tensor) is tensor


def test_capturing_hands_on_the_very_tensor(model, ids):
    unwatched = model(ids).logits
    with model.capture(["*.residual.*", "*.experts.*", "logits"]):
        assert model(ids).logits.equal(unwatched)


# --- threads --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_four_threads_capture_50_passes_each_and_none_is_mixed(make_model):
    model = make_model(n_layers=1, moe=None)
    n_threads, n_passes = 4, 50
    start = threading.Barrier(n_threads)
    failures: list[str] = []

    def read(thread):
        generator = torch.Generator().manual_seed(thread)
        length = 4 + thread
        text = torch.randint(300, (1, length), generator=generator)
        head = [thread]
        with torch.inference_mode():
            with model.capture(["*"], heads=head) as expected:
                model(text)
            start.wait()
            for number in range(n_passes):
                with model.capture([WEIGHTS, "logits"], heads=head) as captured:
                    model(text)
                if list(captured) != [WEIGHTS, "logits"] or not all(
                    tensor.shape == expected[site].shape
                    and torch.allclose(tensor, expected[site], atol=1e-5)
                    for site, tensor in captured.items()
                ):
                    failures.append(f"thread {thread}, pass {number}")

    threads = [threading.Thread(target=read, args=(number,)) for number in range(n_threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_an_edit_in_one_thread_is_not_seen_in_another(model, ids):
    before = model(ids).logits
    seen: list[Tensor] = []
    with model.edit("logits", torch.zeros_like):
        thread = threading.Thread(target=lambda: seen.append(model(ids).logits))
        thread.start()
        thread.join()
        assert (model(ids).logits == 0).all()
    # A thread may use more cores than the first, and so other kernels.
    torch.testing.assert_close(seen[0], before, rtol=1e-5, atol=1e-5)


# --- edit -----------------------------------------------------------------------------------------


def test_an_edit_reaches_all_heads_though_one_is_captured(model, ids):
    def uniform(weights):
        assert weights.shape[1] == 4
        return torch.full_like(weights, 1 / 11)

    with model.edit(WEIGHTS, uniform), model.capture([WEIGHTS, CONTEXT]) as whole:
        model(ids)
    with model.capture([WEIGHTS, CONTEXT], heads=[3]) as captured, model.edit(WEIGHTS, uniform):
        model(ids)
    assert (captured[WEIGHTS] == 1 / 11).all()
    assert captured[WEIGHTS].shape[1] == 1
    torch.testing.assert_close(captured[CONTEXT], whole[CONTEXT][:, [3]])


@pytest.mark.parametrize("edit_first", [True, False])
def test_a_capture_sees_the_edited_tensor_whichever_is_entered_first(model, ids, edit_first):
    with ExitStack() as stack:
        if edit_first:
            stack.enter_context(model.edit("logits", torch.zeros_like))
        captured = stack.enter_context(model.capture(["logits"]))
        if not edit_first:
            stack.enter_context(model.edit("logits", torch.zeros_like))
        logits = model(ids).logits
    assert (logits == 0).all()
    assert captured["logits"] is logits


def test_edits_of_one_site_run_in_the_order_they_were_entered(model, ids):
    before = model(ids).logits
    with model.edit("logits", lambda x: x + 1), model.edit("logits", lambda x: x * 2):
        after = model(ids).logits
    torch.testing.assert_close(after, (before + 1) * 2)


def test_an_edit_ends_with_its_block(model, ids):
    before = model(ids).logits
    with pytest.raises(RuntimeError, match="on purpose"), model.edit("logits", torch.zeros_like):
        raise RuntimeError("on purpose")
    assert model(ids).logits.equal(before)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (
            lambda x: x[:, :1],
            "an edit turned shape (2, 11, 300) into (2, 1, 300); an edit keeps the shape",
        ),
        (
            lambda _: None,
            "an edit returned NoneType, not a tensor; return the tensor, changed or not",
        ),
    ],
    ids=["another shape", "nothing"],
)
def test_an_edit_returns_a_tensor_of_the_same_shape(model, ids, edit, message):
    with model.edit("logits", edit), pytest.raises(ValueError, match=exactly(message)):
        model(ids)


# --- declared axes --------------------------------------------------------------------------------


class Passage(HookedModule):
    """A model that is nothing but a hook point."""

    def __init__(self):
        super().__init__()
        self.place = HookPoint("batch head query", head=3)

    def forward(self, tensor):
        return self.place(tensor)


@pytest.mark.parametrize("shape", [(2, 4, 5), (2, 3), (1, 2, 3, 5)])
def test_a_shape_that_breaks_the_declared_axes_is_an_error(shape):
    passage = Passage()
    message = exactly(
        f"a tensor of shape {shape} passed a hook point with axes (batch=any, head=3, query=any)"
    )
    with passage.capture(["place"]), pytest.raises(ValueError, match=message):
        passage(torch.zeros(shape))
    with passage.edit("place", lambda tensor: tensor), pytest.raises(ValueError, match=message):
        passage(torch.zeros(shape))


# --- unknown names --------------------------------------------------------------------------------


def test_what_the_model_does_not_have_can_be_neither_captured_nor_edited(model):
    site = r"^no site matches 'logit'; did you mean 'logits'\?$"
    with pytest.raises(UnknownSite, match=site), model.capture(["*", "logit"]):
        pass
    with pytest.raises(UnknownSite, match=site), model.edit("logit", torch.zeros_like):
        pass
    layer = r"^there is no layer 2; the layers are 0 to 1$"
    with pytest.raises(UnknownLayer, match=layer), model.capture(["*"], layers=[0, 2]):
        pass
    head = r"^there is no head 4; the heads are 0 to 3$"
    with pytest.raises(UnknownHead, match=head), model.capture(["*"], heads=[0, 4]):
        pass
