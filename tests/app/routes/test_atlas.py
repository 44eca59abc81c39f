"""GET /api/v1/models/{model}/atlas: what heads attend to over a corpus."""

import httpx
import pytest

from headlight.client import Client
from headlight.model.atlas.layout import read_atlas
from headlight.model.atlas.search import Question, search
from headlight.routes import atlas as routes

PATH = "/api/v1/models/tiny/atlas"
ATTENTION = "decoder.layers.1.self_attention"


@pytest.fixture(scope="module")
def asking(settings, atlas_dir):
    from tests.app.conftest import client_of

    with client_of(settings, atlas_dir=atlas_dir) as client:
        yield client


def test_an_atlas_says_what_it_was_made_of(asking, atlas_dir):
    answer = asking.get(PATH).json()
    facts = read_atlas(atlas_dir / "tiny").facts
    assert answer["text"] == ["text.txt"]
    assert (answer["tokens"], answer["edges"]) == (facts["tokens"], facts["edges"])
    assert answer["no_search"] is None
    assert sum(each["n_edges"] for each in answer["attentions"].values()) == answer["edges"]


def test_a_head_has_its_commonest_pairs_and_sentences(asking):
    answer = asking.get(f"{PATH}/head", params={"attention": ATTENTION, "head": 2}).json()
    assert sum(each["count"] for each in answer["distances"]) == answer["edges"]
    counts = [pair["count"] for pair in answer["pairs"]]
    assert counts == sorted(counts, reverse=True)
    assert all("cat" in place["text"] or "light" in place["text"] for place in answer["sentences"])


def test_a_search_is_that_of_python(asking, atlas_dir):
    params = {"from_tag": "noun", "to_tag": "DET", "attention": ATTENTION}
    answer = asking.get(f"{PATH}/search", params=params).json()
    wanted = search(
        read_atlas(atlas_dir / "tiny"), Question(from_tag="NOUN", to_tag="DET", attention=ATTENTION)
    )
    assert [row["count"] for row in answer["heads"]] == [row["count"] for row in wanted["heads"]]
    assert answer["heads"][0]["lift"] == pytest.approx(wanted["heads"][0]["lift"])
    assert [row["text"] for row in answer["sentences"]] == [
        row["text"] for row in wanted["sentences"]
    ]


def test_the_sentences_of_a_head_are_divided_in_tenths(asking):
    params = {"attention": ATTENTION, "head": 2}
    answer = asking.get(f"{PATH}/spread", params=params).json()
    lows = [part["low"] for part in answer["deciles"]]
    assert lows == sorted(lows)
    assert 0 < len(lows) <= 10
    assert answer["sentences"] >= answer["silent"]


@pytest.mark.parametrize(
    ("path", "status", "kind"),
    [
        ("/spread?attention=decoder&head=0", 422, "unknown-head"),
        ("/search?from_tag=thing", 422, "invalid-request"),
        ("/search?n_sentences=1000", 422, "invalid-request"),
        ("/search?sql=SELECT", 422, "invalid-request"),
        (f"/search?from_word={'a' * 101}", 422, "invalid-request"),
        ("/search?head=50", 422, "unknown-head"),
        ("/search?attention=decoder", 422, "unknown-head"),
        (f"/head?attention={ATTENTION}&head=70", 422, "unknown-head"),
        ("/head?attention=x&head=0", 422, "unknown-site"),
        ("/matches?other=nothing", 404, "unknown-model"),
        ("/matches?other=dense", 404, "no-profile"),
        (f"/space?attention={ATTENTION}&head=50&kind=reads", 422, "no-reading"),
        (f"/space?attention={ATTENTION}&head=0&kind=all", 422, "invalid-request"),
    ],
)
def test_a_question_that_cannot_be_answered_is_a_problem(asking, problem, path, status, kind):
    problem(asking.get(PATH + path), status, kind)


def test_a_model_without_an_atlas_says_how_to_make_one(client, problem):
    document = problem(client.get(PATH), 404, "no-atlas")
    assert "headlight atlas build tiny" in document["detail"]


def test_a_model_matches_itself(asking):
    answer = asking.get(f"{PATH}/matches", params={"other": "tiny"}).json()
    assert len(answer["matches"]) == 8
    for pair in answer["matches"]:
        assert (pair["attention"], pair["head"]) == (pair["other_attention"], pair["other_head"])
        assert pair["similarity"] == pytest.approx(1)


def test_a_space_has_a_place_for_each_token_that_is_drawn(asking):
    params = {"attention": ATTENTION, "head": 2, "kind": "reads"}
    answer = asking.get(f"{PATH}/space", params=params).json()
    assert len(answer["sentences"]) >= 50
    assert {point["side"] for point in answer["points"]} == {"query", "key"}
    assert 0 < answer["shares"][1] <= answer["shares"][0] < 1


def test_without_duckdb_summaries_are_shown_and_a_search_says_what_to_install(
    asking, problem, monkeypatch
):
    monkeypatch.setattr(routes, "is_available", lambda: False)
    assert "pip install 'headlight-viz[cluster]'" in asking.get(PATH).json()["no_search"]
    head = asking.get(f"{PATH}/head", params={"attention": ATTENTION, "head": 0})
    assert head.status_code == 200
    document = problem(asking.get(f"{PATH}/search"), 503, "no-search")
    assert "pip install 'headlight-viz[cluster]'" in document["detail"]


def test_an_atlas_of_other_weights_counts_for_nothing(settings, atlas_dir, tmp_path, problem):
    from tests.app.conftest import client_of

    (tmp_path / "dense").symlink_to(atlas_dir / "tiny")
    with client_of(settings, atlas_dir=tmp_path) as client:
        document = problem(client.get(PATH.replace("tiny", "dense")), 404, "no-atlas")
    assert "build it again" in document["detail"]


def test_the_client_asks_the_same(asking):
    def send(request):
        answer = asking.get(str(request.url))
        return httpx.Response(answer.status_code, json=answer.json())

    with Client("http://localhost", transport=httpx.MockTransport(send)) as headlight:
        assert headlight.atlas("tiny").text == ["text.txt"]
        findings = headlight.atlas_search("tiny", from_tag="noun", same_word=False, n_sentences=2)
        assert findings.heads
        assert len(findings.sentences) <= 2
        head = headlight.atlas_head("tiny", attention=ATTENTION, head=1)
        assert head.edges > 0
        assert headlight.atlas_matches("tiny", other="tiny").matches
