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
        "role": None,
    }


def test_a_text_longer_than_the_model_reads_is_still_cut(client):
    assert len(tokenize(client, text="z" * 100).json()["tokens"]) == 101


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
