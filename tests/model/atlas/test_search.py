"""Searches in an atlas, compared with counting all weights of its sentences in plain Python."""

import json
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest

from headlight.model.atlas import search as searching
from headlight.model.atlas.build import build
from headlight.model.atlas.deciles import spread
from headlight.model.atlas.layout import AtlasError, read_atlas
from headlight.model.atlas.search import Question, SearchTooSlow
from headlight.model.atlas.shards import Settings
from headlight.model.cancellation import Cancelled, cancellable
from headlight.model.distributions import wilson

TEXT = (
    "The old king saw him, and the king gave him a house. The cat saw a dog near the red house.\n"
    "She gave the king a cat! Then the lazy dog slept under a tree, and the cat slept too.\n"
) * 2


@pytest.fixture(scope="module")
def make_atlas(make_checkpoint, tmp_path_factory):
    def make(**model):
        folder = tmp_path_factory.mktemp("atlas")
        (folder / "book.txt").write_text(TEXT)
        small = {"max_tokens": 96, "moe": None, **model}
        learn = [[TEXT] * 3] if model.get("kind") == "encoder" else []
        checkpoint = make_checkpoint(*learn, **small)
        settings = Settings(threshold=0.03, n_sample=2)
        build(checkpoint, [folder / "book.txt"], folder / "atlas", settings)
        return read_atlas(folder / "atlas")

    return make


@pytest.fixture(scope="module")
def decoder_atlas(make_atlas):
    return make_atlas()


@pytest.fixture(scope="module")
def encoder_atlas(make_atlas):
    return make_atlas(kind="encoder")


def search(atlas, question):
    """Return an answer whose members are attributes."""
    found = json.dumps(searching.search(atlas, question))
    return json.loads(found, object_hook=lambda members: SimpleNamespace(**members))


def rows(atlas, kind):
    return [row for path in atlas.files(kind) for row in pq.read_table(path).to_pylist()]


def counted(atlas, path, *, query, key):
    """Return weights that fit, weights of such queries, and the share of visible pairs."""
    edges = [
        edge for file in atlas.files("edges", path) for edge in pq.read_table(file).to_pylist()
    ]
    by_head = {}
    for edge in edges:
        q = {"word": edge["query_word"], "tag": edge["query_tag"], "position": edge["query"]}
        k = {"word": edge["key_word"], "tag": edge["key_tag"], "position": edge["key"]}
        if query(q):
            counts = by_head.setdefault(edge["head"], [0, 0])
            counts[0] += key(q, k)
            counts[1] += 1
    hits = visible = 0
    is_causal = atlas.attentions[path]["is_causal"]
    tokens = [token for token in rows(atlas, "tokens") if token["is_typed"]]
    for q in tokens:
        if not query(q):
            continue
        for k in tokens:
            is_seen = k["sentence"] == q["sentence"] and k["position"] > 0
            if is_seen and (k["position"] <= q["position"] or not is_causal):
                visible += 1
                hits += key(q, k)
    return by_head, hits / visible


def apart(q, k):
    return q["position"] - k["position"]


@pytest.mark.parametrize("kind", ["decoder", "encoder"])
@pytest.mark.parametrize(
    ("question", "query", "key"),
    [
        (
            Question(from_word="HIM", to_word="king"),
            lambda q: q["word"] == "him",
            lambda q, k: k["word"] == "king",
        ),
        (
            Question(from_tag="PRON", to_tag="NOUN"),
            lambda q: q["tag"] == "PRON",
            lambda q, k: k["tag"] == "NOUN",
        ),
        (
            Question(same_word=True),
            lambda q: True,
            lambda q, k: q["word"] == k["word"] and apart(q, k) != 0,
        ),
    ],
)
def test_counts_and_base_rates_are_those_of_all_weights(request, kind, question, query, key):
    atlas = request.getfixturevalue(f"{kind}_atlas")
    findings = search(atlas, question)
    assert findings.heads
    wanted = {path: counted(atlas, path, query=query, key=key) for path in atlas.attentions}
    for row in findings.heads:
        by_head, base = wanted[row.attention]
        assert [row.count, row.of] == by_head[row.head]
        assert row.base == pytest.approx(base)
        if row.of >= 20:
            assert row.lift == pytest.approx(row.count / row.of / base)
            assert row.lift_low < row.lift < row.lift_high or row.share == 1
        else:
            assert row.lift is None
    found = {(row.attention, row.head) for row in findings.heads}
    assert found == {
        (path, head)
        for path, (by_head, _) in wanted.items()
        for head, (count, _) in by_head.items()
        if count
    }


def test_heads_are_ranked_by_a_half_of_the_sentences_and_confirmed_by_the_other(decoder_atlas):
    findings = search(decoder_atlas, Question(from_tag="NOUN", to_tag="DET", n_sentences=0))
    ranks = []
    for row in findings.heads:
        fits = [[0, 0], [0, 0]]
        for file in decoder_atlas.files("edges", row.attention):
            for edge in pq.read_table(file).to_pylist():
                if edge["head"] == row.head and edge["query_tag"] == "NOUN":
                    counts = fits[edge["sentence"] % 2]
                    counts[0] += edge["key_tag"] == "DET"
                    counts[1] += 1
        (n, of), (n_held, of_held) = fits
        wanted = n_held / of_held / row.base if of_held >= 20 else None
        assert row.held_out == (None if wanted is None else pytest.approx(wanted))
        ranks.append(wilson(n, of)[0] / row.base if of >= 20 else 0)
    assert ranks == sorted(ranks, reverse=True)
    assert any(row.held_out for row in findings.heads)


def test_sentences_are_divided_by_the_largest_weight_of_a_head(decoder_atlas):
    path, head = "decoder.layers.1.self_attention", 1
    most = {row["sentence"]: (0, "") for row in rows(decoder_atlas, "sentences")}
    texts = {row["sentence"]: row["text"] for row in rows(decoder_atlas, "sentences")}
    for file in decoder_atlas.files("edges", path):
        for edge in pq.read_table(file).to_pylist():
            if edge["head"] == head and edge["weight"] > most[edge["sentence"]][0]:
                most[edge["sentence"]] = edge["weight"], edge["query_word"]
    found = spread(decoder_atlas, path, head)
    assert found["sentences"] == len(most) == len(found["deciles"])
    assert found["silent"] == sum(weight == 0 for weight, _ in most.values())
    wanted = sorted(weight / 65_535 for weight, _ in most.values())
    assert [part["low"] for part in found["deciles"]] == pytest.approx(wanted)
    assert [part["sentence"]["weight"] for part in found["deciles"]] == pytest.approx(wanted)
    for part in found["deciles"]:
        number = next(n for n, text in texts.items() if text == part["sentence"]["text"])
        weight, word = most[number]  # equal sentences have equal weights
        assert part["sentence"]["weight"] == pytest.approx(weight / 65_535)
        assert part["sentence"]["query_word"] == word
        assert bool(weight) == bool(part["sentence"]["query_span"])
    every = pq.read_table(decoder_atlas.files("edges", path)).to_pylist()
    own = [edge for edge in every if edge["head"] == head]
    edges = [edge["key_word"] for edge in own if edge["query"] != edge["key"]]
    tokens = [row for row in rows(decoder_atlas, "tokens") if row["is_typed"]]
    for each in found["keys"]:
        assert each["share"] == pytest.approx(edges.count(each["word"]) / len(edges), abs=0.02)
        of_corpus = sum(row["word"] == each["word"] and row["tag"] == each["tag"] for row in tokens)
        assert each["base"] == pytest.approx(of_corpus / len(tokens))
    assert found["keys"][0]["word"] == max(sorted({*edges}), key=edges.count)
    with pytest.raises(AtlasError, match="heads are 0 to"):
        spread(decoder_atlas, path, 99)


def test_the_sentences_have_the_weights_that_fit(decoder_atlas):
    findings = search(decoder_atlas, Question(from_word="him", to_word="king", n_sentences=5))
    assert 0 < len(findings.sentences) <= 5
    for place in findings.sentences:
        assert (place.query_word, place.key_word) == ("him", "king")
        assert place.text[slice(*place.query_span)].lower() in "him"
        assert place.text[slice(*place.key_span)].lower() in "king"
        assert place.file == "book.txt"
        assert 0 < place.key < place.query
        assert place.query_span[0] > place.key_span[0]
        assert 0.03 <= place.weight <= 1


def test_only_the_head_that_is_asked_for_is_ranked(decoder_atlas):
    path = "decoder.layers.1.self_attention"
    findings = search(decoder_atlas, Question(attention=path, head=1, n_sentences=0))
    assert [(row.attention, row.head) for row in findings.heads] == [(path, 1)]
    assert findings.sentences == []


@pytest.mark.parametrize(
    ("question", "says"),
    [
        (Question(head=99), "its heads are 0 to"),
        (Question(attention="x'; DROP TABLE t"), 'no attention "x\'; DROP TABLE t"'),
    ],
)
def test_an_unknown_head_is_refused(decoder_atlas, question, says):
    with pytest.raises(AtlasError, match=says):
        search(decoder_atlas, question)


def test_hostile_words_are_words(decoder_atlas):
    assert search(decoder_atlas, Question(from_word="' OR 1=1 --", to_word="$files")).heads == []


def test_only_files_of_the_atlas_can_be_read(decoder_atlas, tmp_path):
    secret = tmp_path / "secret.csv"
    secret.write_text("a\n1\n")
    with (
        searching.connected(decoder_atlas, 5) as run,
        pytest.raises(AtlasError, match="cannot be searched"),
    ):
        run("SELECT * FROM read_csv($file)", {"file": str(secret)})


def test_a_search_ends_in_time_and_when_nobody_waits(decoder_atlas):
    endless = "SELECT count(*) FROM range(10000000000) a, range(10000000000) b WHERE a.range > 5"
    with (
        searching.connected(decoder_atlas, 0.1) as run,
        pytest.raises(SearchTooSlow, match=r"0\.1 s"),
    ):
        run(endless, {})
    with (
        cancellable(lambda: True),
        searching.connected(decoder_atlas, 60) as run,
        pytest.raises(Cancelled),
    ):
        run(endless, {})


def test_a_damaged_or_a_foreign_atlas_is_refused(decoder_atlas, tmp_path):
    with pytest.raises(AtlasError, match="holds no atlas"):
        read_atlas(tmp_path)
    (tmp_path / "atlas.json").write_text("{")
    with pytest.raises(AtlasError, match="cannot be read"):
        read_atlas(tmp_path)
    (tmp_path / "atlas.json").write_text('{"shards": ["../../etc"]}')
    with pytest.raises(AtlasError, match="malformed"):
        read_atlas(tmp_path)
    with pytest.raises(AtlasError, match="not of other; build it again"):
        read_atlas(decoder_atlas.folder, "other")


def test_the_interval_is_that_of_wilson():
    # Newcombe 1998, https://doi.org/10.1002/(SICI)1097-0258(19980430)17:8<857::AID-SIM777>3.0.CO;2-E
    assert wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=1e-4)
    assert wilson(0, 20) == pytest.approx((0.0, 0.1611), abs=1e-4)
    assert wilson(29, 29) == pytest.approx((0.8830, 1.0), abs=1e-4)
