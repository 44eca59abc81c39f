"""Messages in requests: their text, roles, bounds and refusals, and the commands for them."""

import base64
import gzip
import json
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from time import monotonic

import numpy as np
import pytest

pytest.importorskip("transformers", reason="the extra hf is not installed")

from headlight.client import read_trace
from headlight.commands.adding import add_model
from headlight.model.foreign import chat
from headlight.settings import Settings
from tests.app.reading import events_of
from tests.app.server.test_disconnects import thread_held
from tests.model.foreign.test_chat import TEMPLATE
from tests.tiny_checkpoints import save_checkpoint

MESSAGES = [
    {"role": "system", "content": "The dog"},
    {"role": "user", "content": "Sat </s> by the door."},
]
BOMB = "{% for a in range(99999) %}" * 3 + "{% endfor %}" * 3


@pytest.fixture(scope="module")
def models_dir(zoo, tmp_path_factory):
    """Return a directory with a model that was added, and with one whose template never ends."""
    path, source = tmp_path_factory.mktemp("models"), tmp_path_factory.mktemp("source")
    save_checkpoint("gpt2", source / "talker")
    (source / "talker" / "chat_template.jinja").write_text(TEMPLATE)
    add_model(str(source / "talker"), Settings(zoo_dir=zoo, models_dir=path), measures_heads=False)
    save_checkpoint("gpt2", path / "bomb")
    (path / "bomb" / "chat_template.jinja").write_text(BOMB)
    return path


@pytest.fixture(scope="module")
def client(settings, models_dir):
    from tests.app.conftest import client_of

    with client_of(settings, models_dir=models_dir) as client:
        yield client


def trace(client, **body):
    return client.post("/api/v1/trace", json={"model": "talker", "capture": ["logits"], **body})


def test_a_trace_of_messages_knows_the_role_of_each_token(client):
    assert "chat" in client.get("/api/v1/models/talker").json()["features"]
    answer = trace(client, messages=MESSAGES).json()
    assert answer["text"] == (
        "<s>system\nThe dog</s>\n<s>user\nSat </s> by the door.</s>\n<s>assistant\n"
    )
    said = {"system": "", "user": "", "template": ""}
    for token in answer["tokens"]:
        said[token["role"]] += answer["text"][token["start"] : token["end"]]
    assert [said["system"], said["user"]] == ["The dog", "Sat </s> by the door."]
    assert sum(token["is_special"] for token in answer["tokens"]) == 5
    cut = client.post("/api/v1/tokenize", json={"model": "talker", "messages": MESSAGES}).json()
    assert cut["tokens"] == answer["tokens"]
    ids = [token["id"] for token in answer["tokens"]]
    np.testing.assert_array_equal(
        answer["tensors"]["logits"]["data"],
        trace(client, ids=ids).json()["tensors"]["logits"]["data"],
    )
    assert trace(client, text="a").json()["tokens"][0]["role"] is None
    assert trace(client, messages=MESSAGES[1:]).json()["id"] != answer["id"]


def test_an_answer_continues_the_messages(client):
    body = {"model": "talker", "messages": MESSAGES, "n_tokens": 2}
    events = events_of(client.post("/api/v1/generate", json=body))
    cut = client.post("/api/v1/tokenize", json={"model": "talker", "messages": MESSAGES}).json()
    assert events[0][1]["tokens"] == cut["tokens"]


def test_the_shares_of_roles_are_sums_of_the_weights(client):
    site = "decoder.layers.1.self_attention"
    answer = trace(
        client, messages=MESSAGES, capture=[f"{site}.weights"], analyses=["role_shares"]
    ).json()
    of_token = np.array([token["role"] for token in answer["tokens"]])
    weights = np.array(answer["tensors"][f"{site}.weights"]["data"])
    shares = answer["analyses"]["role_shares"]
    assert shares["roles"] == ["template", "system", "user"]
    for asks, queries in enumerate(shares["roles"]):
        for answers, keys in enumerate(shares["roles"]):
            expected = [
                head[of_token == queries][:, of_token == keys].sum(1).mean() for head in weights
            ]
            measured = np.array(shares[site]["data"])[:, asks, answers]
            np.testing.assert_allclose(measured, expected, atol=1e-6)
    problem = trace(client, text="The dog", analyses=["role_shares"]).json()
    assert "send messages" in problem["detail"]


REFUSED = {
    "no template": ({"model": "tiny", "messages": MESSAGES}, "no-chat", "send them as a text"),
    "unknown role": ({"messages": [{"role": "robot", "content": ""}]}, None, "'system', 'user'"),
    "both": ({"messages": MESSAGES, "text": "a"}, None, "send only one"),
    "neither": ({}, None, "text, ids or messages"),
    "10,000 turns": ({"messages": MESSAGES * 5_000}, None, "at most 1000"),
    "1,000 turns": ({"messages": MESSAGES[:1] * 500}, "too-many-tokens", "conversation has"),
    "none": ({"messages": []}, None, "at least 1"),
    "too long": ({"messages": [{**MESSAGES[1], "content": "a" * 10**5}]}, None, "or shorter"),
    "no words": ({"messages": [{"role": "user", "content": 1}]}, None, "not a text"),
    "typed, not read": (
        {"model": "tiny", "text": "</s>", "read_special_tokens": True},
        "no-special-tokens",
        "leave the switch off",
    ),
}


@pytest.mark.parametrize(("body", "kind", "why"), REFUSED.values(), ids=REFUSED)
def test_bad_messages_get_one_sentence(client, body, kind, why):
    held = thread_held(client.app.state.services.engine)  # none of them waits for a pass
    began = monotonic()
    with held if "messages" in body else nullcontext():
        answer = trace(client, **body)
        assert monotonic() - began < 30
    assert answer.status_code == 422
    assert why in json.dumps(answer.json())
    assert kind is None or answer.json()["type"].endswith(f":{kind}")


def test_a_bomb_holds_up_nobody(client, monkeypatch):
    monkeypatch.setattr(chat, "MAX_SECONDS", 1)
    trace(client, model="bomb", text="load it")
    with ThreadPoolExecutor() as pool:
        bomb = pool.submit(trace, client, model="bomb", messages=MESSAGES)
        assert trace(client, text="The dog sat twice").status_code == 200
        assert not bomb.done()
        assert "chat_template.jinja" in bomb.result().json()["detail"]


def test_a_typed_special_token_is_one_if_that_is_asked_for(client):
    read, plain = (
        trace(client, text="cat</s>", read_special_tokens=reads).json()["tokens"]
        for reads in (True, False)
    )
    assert [token["is_special"] for token in read][-1]
    assert not any(token["is_special"] for token in plain)


def test_the_command_answers_each_line(headlight, models_dir, monkeypatch):
    lines = iter(["The dog", "The cat"])
    monkeypatch.setattr("builtins.input", lambda _: next(lines, None) or _end())
    result = headlight("chat", "talker", "--n-tokens", "3", "--models-dir", str(models_dir))
    assert result.exit_code == 0, result.output
    assert result.output.count("\n") >= 2
    monkeypatch.setattr("builtins.input", lambda _: "Hello")
    result = headlight("chat", "tiny")
    assert (result.exit_code, "chat template" in result.output) == (2, True)


def _end():
    raise EOFError


def test_a_saved_page_holds_a_conversation_with_its_roles_and_a_plain_text_without(client):
    def archived(**body):
        page = client.post("/api/v1/page", json={"model": "talker", **body})
        assert page.status_code == 200, page.text
        packed = re.search(r'id="answers">([^<]+)<', page.text)[1]
        planes = gzip.decompress(base64.b64decode(packed))
        size = int.from_bytes(planes[:4], "little")
        header, numbers = json.loads(planes[4 : 4 + size]), planes[4 + size :]
        whole = np.frombuffer(numbers, np.uint8).reshape(4, -1).T.tobytes()
        return read_trace(whole[: header["whole"]["end"]])

    trace = archived(messages=MESSAGES)
    assert trace.analyses["role_shares"]["roles"] == ["template", "system", "user"]
    assert {token.role for token in trace.tokens} == {"template", "system", "user"}
    assert "role_shares" not in archived(text="The dog").analyses
