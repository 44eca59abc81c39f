"""The id of a job, which jobs one pass can compute, and the problems of requests."""

from dataclasses import replace

import pytest
import torch

from headlight.model.interventions.expert_ablation import UnknownExpert
from headlight.model.interventions.intervention import ImpossibleIntervention
from headlight.model.interventions.site_edit import UnknownPosition
from headlight.model.quantization.affine import UnknownPart
from headlight.model.served import UnwatchedPass
from headlight.model.sites import UnknownHead, UnknownLayer, UnknownSite
from headlight.model.tracing import EmptyText, NoTarget, TooManyTokens, UnknownToken
from headlight.problems import Problem
from headlight.schemas.traces import TraceRequest
from headlight.tracing.jobs import (
    MOST_MARKS,
    check_text,
    check_texts,
    model_errors_as_problems,
    trace_id,
    trace_job,
    way_to_read_more,
)

NO_SCALING = {"kind": "no_scaling"}
HEADS_OFF = {"kind": "heads_off", "heads": [0]}
REQUEST = TraceRequest(text="a")


def id_of(*, revision="r1", precision="float32", request=REQUEST, sites=("logits",)):
    return trace_id(revision, precision, request, sites)


def test_the_id_does_not_depend_on_the_order_of_analyses_or_on_the_encoding():
    first = TraceRequest(text="a", analyses=["next_token", "next_token"], dtype="uint16")
    second = TraceRequest(text="a", analyses=["next_token"])
    assert id_of(request=first) == id_of(request=second)


def test_the_id_does_not_depend_on_the_order_of_edits():
    first = TraceRequest(text="a", edits=[NO_SCALING, HEADS_OFF])
    second = TraceRequest(text="a", edits=[HEADS_OFF, NO_SCALING | {"layer": None}])
    assert id_of(request=first) == id_of(request=second)
    assert id_of(request=TraceRequest(text="a", edits=[])) == id_of()


def test_the_id_depends_on_the_weights_their_precision_and_the_sites():
    different = [
        id_of(revision="r2"),
        id_of(precision="bfloat16"),
        id_of(request=TraceRequest(text="a", analyses=["rollout", "next_token"])),
        id_of(sites=("logits", "decoder.embedding.positional")),
    ]
    assert len({id_of(), *different}) == 1 + len(different)


def job(tiny, precision=torch.float32, **options):
    return trace_job(TraceRequest(**{"text": "a", **options}), tiny.description, precision)


def test_how_sites_are_spelled_and_how_numbers_are_sent_names_no_other_trace(tiny):
    spelled = job(tiny, capture=["logits", "decoder.layers.1.residual.*"])
    respelled = [
        job(tiny, capture=["decoder.layers.*.residual.*", "logits"], layers=[1]),
        job(tiny, capture=["decoder.layers.1.residual.[abm]*", "log*"]),
        job(tiny, capture=["log*", "*.1.residual.*"], dtype="uint16", triangle=True),
    ]
    assert {each.id for each in respelled} == {spelled.id}


def test_jobs_of_one_batch_key_differ_only_in_their_texts_and_analyses(tiny):
    key = job(tiny).batch_key
    assert key == job(tiny, text="b").batch_key
    same_sites = {"capture": ["logits"], "analyses": ["next_token"]}
    assert job(tiny, **same_sites).batch_key == job(tiny, capture=["logits"]).batch_key
    different = [
        job(tiny, capture=["logits"]),
        job(tiny, heads=[0]),
        job(tiny, layers=[0]),
        job(tiny, edits=[NO_SCALING]),
    ]
    assert len({key, *(each.batch_key for each in different)}) == 5


def test_in_bfloat16_no_job_has_a_batch_key(tiny):
    assert job(tiny, torch.bfloat16).batch_key is None


# --- problems -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (EmptyText, "empty-text"),
        (ImpossibleIntervention, "impossible-edit"),
        (NoTarget, "no-target"),
        (UnknownExpert, "unknown-expert"),
        (UnknownHead, "unknown-head"),
        (UnknownLayer, "unknown-layer"),
        (UnknownPart, "unknown-part"),
        (UnknownPosition, "unknown-position"),
        (UnknownSite, "unknown-site"),
        (UnknownToken, "unknown-token"),
        (UnwatchedPass, "unwatched-pass"),
    ],
)
def test_an_error_of_the_model_about_a_request_is_a_problem_of_its_kind(error, kind):
    with pytest.raises(Problem) as caught, model_errors_as_problems():
        raise error("the reason")
    problem = caught.value
    assert (problem.status_code, problem.kind, problem.detail) == (422, kind, "the reason")


def test_a_text_of_too_many_tokens_is_a_problem_with_limit_and_way_out():
    with pytest.raises(Problem) as caught, model_errors_as_problems(", or the way out"):
        raise TooManyTokens(9, 8)
    problem = caught.value
    assert (problem.status_code, problem.kind) == (422, "too-many-tokens")
    assert problem.members == {"limit": 8, "actual": 9}
    assert problem.detail.endswith(", or the way out")


def test_a_panic_is_a_problem_and_another_error_is_none():
    panic = type("PanicException", (BaseException,), {})
    with pytest.raises(Problem) as caught, model_errors_as_problems():
        raise panic
    assert (caught.value.status_code, caught.value.kind) == (422, "unreadable-text")
    with pytest.raises(ZeroDivisionError), model_errors_as_problems():
        raise ZeroDivisionError


MARK = "\u0301"


@pytest.mark.parametrize(
    ("text", "kind"), [("ab", None), ("abc", "too-many-characters"), ("", "empty-text")]
)
def test_a_text_is_checked_before_anything_reads_it(text, kind):
    if kind is None:
        check_text(text, 2)
        return
    with pytest.raises(Problem) as caught:
        check_text(text, 2)
    assert (caught.value.status_code, caught.value.kind) == (422, kind)


def test_the_texts_that_an_edit_reads_are_checked_as_well():
    mean = {"kind": "corpus_mean", "site": "logits", "texts": ["ab", "abc"]}
    request = TraceRequest(text="a", edits=[mean])
    check_texts(request, 3)
    with pytest.raises(Problem) as caught:
        check_texts(request, 2)
    assert caught.value.kind == "too-many-characters"


def test_too_many_combining_marks_in_a_row_are_rejected():
    check_text("a" + MARK * (MOST_MARKS - 1) + "a" + MARK * 9, 10**4)
    for text in ("a" + MARK * MOST_MARKS, "a" * MOST_MARKS + MARK * MOST_MARKS):
        with pytest.raises(Problem) as caught:
            check_text(text, 10**4)
        assert (caught.value.status_code, caught.value.kind) == (422, "unreadable-text")


def test_a_longer_text_can_be_read_in_parts_if_the_model_reads_more_than_whole(tiny, translator):
    short = replace(tiny.description, longest_text=tiny.config.max_tokens)
    more = replace(tiny.description, longest_text=tiny.config.max_tokens + 1)
    way = way_to_read_more(REQUEST, more)
    assert f"{tiny.config.max_tokens + 1:,} tokens" in way
    assert way_to_read_more(REQUEST, short) == ""
    assert way_to_read_more(TraceRequest(text="a", queries=[0]), more) == ""
    translating = replace(translator.description, longest_text=10**6)
    assert way_to_read_more(REQUEST, translating) == ""
    assert way_to_read_more(TraceRequest(text="a", target="b"), translating)
