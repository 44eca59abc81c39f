"""POST /api/v1/tokenize: tokens with their place in the text."""

import threading
from concurrent.futures import ThreadPoolExecutor

TEXT = "The cat 😀 sät."


def tokenize(client, **members):
    return client.post("/api/v1/tokenize", json=members)


def test_tokens_are_those_of_the_model(client, tiny):
    body = tokenize(client, text=TEXT).json()
    assert body["model"] == "tiny"
    expected = tiny.tokenizer.encode(TEXT)
    assert [token["id"] for token in body["tokens"]] == [token.id for token in expected]
    assert body["tokens"][2] == {
        "id": expected[2].id,
        "text": expected[2].text,
        "start": expected[2].start,
        "end": expected[2].end,
        "word": expected[2].word,
        "is_special": False,
    }


def test_offsets_cover_the_text(client):
    tokens = tokenize(client, text=TEXT).json()["tokens"]
    covered = {place for token in tokens for place in range(token["start"], token["end"])}
    assert covered == set(range(len(TEXT)))


def test_a_text_longer_than_the_model_reads_is_still_cut(client):
    assert len(tokenize(client, text="z" * 100).json()["tokens"]) == 101


def test_another_model_can_be_named(client):
    assert tokenize(client, text="a", model="dense").json()["model"] == "dense"


def test_a_mask_is_one_special_token_where_the_model_knows_it(client):
    text = "the [MASK] sat"
    tokens = tokenize(client, text=text, model="filler").json()["tokens"]
    mask = next(token for token in tokens if token["text"] == "[MASK]")
    assert mask["is_special"]
    assert mask["word"] is None
    assert text[mask["start"] : mask["end"]] == " [MASK]"
    assert [token["word"] for token in tokens if not token["is_special"]] == [0, 1]


def test_a_mask_is_text_to_the_other_models(client):
    tokens = tokenize(client, text="the [MASK] sat", model="tiny").json()["tokens"]
    assert [token["text"] for token in tokens if token["is_special"]] == ["<s>"]
    assert "".join(token["text"] for token in tokens[1:]) == "the [MASK] sat"


def test_an_empty_text_is_refused(client, problem):
    problem(tokenize(client, text="  "), 422, "empty-text")


def test_a_long_text_is_refused(client, problem):
    assert problem(tokenize(client, text="a" * 5000), 422, "too-many-characters")["limit"] == 4000


def test_an_unknown_model_is_refused(client, problem):
    problem(tokenize(client, text="a", model="gpt"), 404, "unknown-model")


def test_options_of_a_trace_are_refused(client, problem):
    problem(tokenize(client, text="a", layers=[0]), 422, "invalid-request")


def test_a_long_text_is_cut_like_a_short_one(client):
    text = "the cat sat on the mat. " * 100
    tokens = tokenize(client, text=text).json()["tokens"]
    assert "".join(token["text"] for token in tokens if not token["is_special"]) == text


def test_tokens_do_not_wait_for_a_pass(client):
    engine = client.app.state.services.engine
    gate = threading.Event()
    with ThreadPoolExecutor() as pool:
        held = pool.submit(client.portal.call, engine.run, gate.wait)
        try:
            for text in ("the cat", "the cat sat. " * 100):
                assert tokenize(client, text=text).status_code == 200
        finally:
            gate.set()
        held.result()
