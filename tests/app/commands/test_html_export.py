"""The offline page: one file, everything in it, nothing that a text could break out of."""

import base64
import gzip
import itertools
import json
import re
from contextlib import ExitStack

import pytest

import headlight
from headlight.client import read_trace
from headlight.saved_page import OF_A_POSITION, Archive, render, whole_requests
from headlight.schemas.traces import TraceRequest

HOSTILE = "<b>the</b> </script><script>alert(1)</script> <!-- {{ text }} & cat"
IMPORTED = re.compile(
    r"""(?:^(?:import|export)(?:\b[^;'"=(]*\bfrom)? |\bawait import\()['"]([^'"]+)['"]""",
    re.MULTILINE,
)


def page_of(client, text, **options):
    headers = {"accept": "application/x-safetensors"}
    asked = {"text": text, "analyses": ["head_labels"]}
    answer = client.post("/api/v1/trace", json=asked, headers=headers).content
    card = client.get("/api/v1/models/tiny").json()
    return answer, render(Archive(card=card, whole=answer), **options)


def unpacked(page, name):
    (content,) = re.findall(
        rf'<script type="text/plain" id="{name}">(.*?)</script>', page, re.DOTALL
    )
    return gzip.decompress(base64.b64decode(content))


def opened(page):
    """Return the header of the archive, and the answers out of their four planes."""
    content = unpacked(page, "answers")
    size = 4 + int.from_bytes(content[:4], "little")
    count = (len(content) - size) // 4
    planes = [content[size + plane * count :][:count] for plane in range(4)]
    return json.loads(content[4:size]), bytes(
        itertools.chain.from_iterable(zip(*planes, strict=True))
    )


def archived(page):
    """Return the header of the archive, and the trace of each answer."""
    header, answers = opened(page)
    return header, [
        read_trace(answers[entry["start"] : entry["end"]])
        for entry in (header["whole"], *header["further"])
        if "positional" not in entry.get("ask", {})
    ]


@pytest.fixture(scope="module")
def hostile(client):
    return page_of(client, HOSTILE)


def test_the_page_holds_the_answer_of_the_api(hostile, client):
    answer, page = hostile
    header, answers = opened(page)
    assert answers[: len(answer)] == answer
    card = client.get("/api/v1/models/tiny").json()
    assert header["card"] == {**card, "analyses": ["head_labels"]}


def test_the_saved_page_explains_every_position_with_the_numbers_of_the_api(client):
    page = client.post("/api/v1/page", json={"text": "the cat sat"}).text
    header, (whole, *further) = archived(page)
    captured = {name.rpartition(".")[2] for name in whole}
    assert {"queries", "keys", "values", "scores", "weights", "context"} <= captured
    explained = {
        entry["ask"]["logit_difference"]["position"]: trace
        for entry, trace in zip(header["further"], further, strict=False)
        if entry["ask"].get("analyses") == ["logit_attribution"]
    }
    assert list(explained) == list(range(len(whole.tokens)))
    asked = {"text": "the cat sat", "analyses": ["logit_attribution"]}
    answer = client.post(
        "/api/v1/trace", json={**asked, "logit_difference": {"position": 1}}
    ).json()
    parts = explained[1].analyses["logit_attribution"]["parts"]
    told = answer["analyses"]["logit_attribution"]["parts"]["data"]
    assert parts.tolist() == pytest.approx(told, rel=1e-6)


def test_one_page_more_than_there_are_places_for_is_refused(client, problem):
    pages = client.app.state.services.pages
    with ExitStack() as stack:
        for _ in range(pages.limit):
            stack.enter_context(pages.place())
        problem(client.post("/api/v1/page", json={"text": "the cat"}), 503, "too-many-pages")


def test_the_saved_page_explains_the_prediction_that_was_looked_at(client):
    chosen = {"position": 2, "token": 5, "against": 9}
    patching = {"text": "the sat cat", "parts": ["residual"]}
    asked = {"text": "the cat sat", "logit_difference": chosen, "patching": patching}
    page = client.post("/api/v1/page", json=asked).text
    header, (_, *further) = archived(page)
    explained = [
        entry["ask"]["analyses"][0]
        for entry in header["further"]
        if entry["ask"].get("logit_difference") == chosen
    ]
    held = [name for name in OF_A_POSITION if name in header["card"]["analyses"]]
    assert explained == [*held, "patching"]
    assert {"logit_attribution", "saliency"} <= set(held)
    answer = further[-1].analyses["patching"]
    assert (answer["token"]["id"], answer["against"]["id"]) == (5, 9)


@pytest.mark.parametrize(("target", "before"), [("le chat.", "e"), ("le chat", "at"), ("...", ".")])
def test_the_saved_page_explains_the_prediction_that_the_page_opens(client, target, before):
    asked = {"model": "translator", "text": "the cat", "target": target}
    header, (whole, *_) = archived(client.post("/api/v1/page", json=asked).text)
    explained = [
        entry["ask"]["logit_difference"]["position"]
        for entry in header["further"]
        if entry["ask"].get("analyses") == ["saliency"]
    ]
    assert [whole.target_tokens[position].text for position in explained] == [before]


def test_the_page_of_maps_holds_nothing_for_every_query_and_key(client):
    page = client.post("/api/v1/page", json={"text": "the cat sat", "resolution": 2}).text
    header, (whole,) = archived(page)
    assert {site.rpartition(".")[2] for site in whole} == {
        *("mean_map", "max_map", "entropy", "first_token", "mean_distance")
    }
    assert len(whole.analyses["next_token"]["following"]) == len(whole.tokens) - 1
    assert header["further"] == []


def test_the_page_without_answers_has_one_place_for_them(client):
    page = client.get("/api/v1/page").text
    assert page.count("[answers]") == 1
    assert '<script type="text/plain" id="answers">[answers]</script>' in page
    whole = client.post("/api/v1/page", json={"text": "the cat"}).text
    assert unpacked(page, "code") == unpacked(whole, "code")


def test_a_text_with_too_many_rows_is_saved_with_only_its_maps(client):
    card = client.get("/api/v1/models/tiny").json()
    request = TraceRequest(text="the cat sat", resolution=2)
    *_, least = whole_requests(request, card)
    assert (least.capture, least.wanted_analyses) == (None, [])


def test_no_text_becomes_markup(hostile):
    _, page = hostile
    assert "alert(1)" not in page.replace("&lt;script&gt;alert(1)&lt;/script&gt;", "")
    assert "<title>&lt;b&gt;the&lt;/b&gt; " in page
    assert "{{" not in page[: page.index('<script type="text/plain"')].replace("{{ text }}", "")


def test_nothing_is_loaded_from_elsewhere(hostile):
    _, page = hostile
    head = page[: page.index('<script type="text/plain"')]
    assert "default-src 'none'; script-src 'unsafe-inline' blob:;" in head
    assert re.findall(r"""(?:src|href)=["'](?!data:|#)""", head) == []
    assert "@import" not in head


def test_the_edits_of_the_pass_are_shown(client):
    _, page = page_of(client, "the cat", edits=[{"kind": "no_scaling"}])
    assert "Changed in this pass: <code>[{&#34;kind&#34;: &#34;no_scaling&#34;}]</code>" in page


def test_a_trace_shows_itself_in_a_notebook(tiny):
    trace = headlight.trace(tiny, "the </iframe> cat")
    page = trace.show(height=600)
    (whole,) = archived(page.html)[1]
    for site in trace:
        assert whole[site].tolist() == trace[site].tolist()
    frame = page._repr_html_()
    assert frame.startswith("<iframe srcdoc=")
    assert "height: 600px" in frame
    assert frame.count("<") == 1 + 1, "the page is text within the attribute"


def test_the_answer_of_a_server_shows_what_it_holds(client, tmp_path):
    headers = {"accept": "application/x-safetensors"}
    asked = {"text": "the cat", "capture": ["*.weights"], "analyses": ["rollout"]}
    trace = read_trace(client.post("/api/v1/trace", json=asked, headers=headers).content)
    page = trace.show()
    header, (whole,) = archived(page.html)
    assert header["card"]["analyses"] == ["head_labels", "rollout"]
    assert (
        whole.analyses["rollout"]["decoder"].tolist()
        == trace.analyses["rollout"]["decoder"].tolist()
    )
    page.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == page.html


def test_a_trace_without_attention_has_nothing_to_show(tiny):
    trace = headlight.trace(tiny, "the cat", capture=["logits"])
    with pytest.raises(ValueError, match="capture"):
        trace.show()
