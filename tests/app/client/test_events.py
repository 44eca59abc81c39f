"""Server-Sent Events become events with names; a stream that breaks off says so."""

import pytest

from headlight.client import Ended, Unavailable, UnreadableAnswer
from headlight.client.events import events_of

END = ["event: end", 'data: {"reason": "length", "n_tokens": 2, "text": "a b"}', ""]


def test_an_event_may_come_in_pieces_and_comments_are_no_events():
    lines = [": a pulse", "", "event: end", 'data: {"reason": "length",']
    lines += ['data: "n_tokens": 2, "text": "a b"}', "id: 7", ""]
    assert list(events_of(lines)) == [Ended(reason="length", n_tokens=2, text="a b")]


def test_what_a_newer_server_adds_is_left_out():
    lines = [END[0], END[1].replace("}", ', "mood": 1}'), ""]
    assert list(events_of(lines)) == [Ended(reason="length", n_tokens=2, text="a b")]


def test_a_problem_in_the_middle_is_raised():
    problem = '{"type": "urn:headlight:problem:worker-died", "status": 503, "detail": "it died"}'
    with pytest.raises(Unavailable, match="it died"):
        list(events_of(["event: error", f"data: {problem}", ""]))


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([], "the stream broke off"),
        (END[:2], "the stream broke off"),
        (["event: end", "data: {", ""], "holds what is no event"),
        (["event: token", "data: {}", ""], "holds what is no event: 'experts'"),
        (["event: mood", "data: {}", ""], "'mood' is unknown"),
        (["event: end", "data: []", ""], "holds what is no event"),
    ],
)
def test_what_is_no_whole_stream_is_said(lines, reason):
    with pytest.raises(UnreadableAnswer, match=reason):
        list(events_of(lines))
