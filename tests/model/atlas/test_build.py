"""An atlas of a text, compared with passes over its sentences and with the profile of the heads."""

import os
from pathlib import Path

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headlight.model.atlas import build as building
from headlight.model.atlas import ranges
from headlight.model.atlas.build import build
from headlight.model.atlas.layout import AtlasError, read_atlas
from headlight.model.atlas.ranges import plan, sentences_in
from headlight.model.atlas.shards import Settings
from headlight.model.checkpoint.card import fits
from headlight.model.checkpoint.loading import load
from headlight.model.checkpoint.profile import SHAPE
from headlight.model.controlled_sentences import antecedent_sentences, subject_sentences
from headlight.model.corpus import CorpusError, SentencePair, read_documents
from headlight.model.profiles.measure import profile_heads, sentences_of
from headlight.model.tracing import trace

LINES = (
    'The cat saw a dog, and the dog saw the cat. "It was very tired," said the old fox to me.',
    "The mouse crossed the street! Then the lazy dog slept under a tree, and the cat slept too.",
    "<|endofbook|>",
    "A small light reads the words aloud. The king gave him a house, and he was glad of it.",
)
SETTINGS = Settings(threshold=0.05)


@pytest.fixture(autouse=True, scope="module")
def quick():
    """Two controlled sentences of each set, and ranges of 200 bytes."""
    sets = {"subject": subject_sentences(), "antecedent": antecedent_sentences()}
    with pytest.MonkeyPatch.context() as patch:
        for name, sentences in sets.items():
            chosen = sorted(sentences, key=lambda sentence: len(sentence.text))[:2]
            heads = "headlight.model.profiles.measure"
            patch.setattr(f"{heads}.{name}_sentences", lambda chosen=chosen: chosen)
        patch.setattr(ranges, "LEAST_RANGE", 200)
        patch.setattr(ranges, "MOST_RANGE", 200)
        yield


@pytest.fixture(scope="module")
def decoder(make_folder):
    return load(make_folder(max_tokens=96, n_heads=2))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("corpus") / "book.txt"
    path.write_text("\n".join(LINES * 3))
    return path


@pytest.fixture(scope="module")
def built(decoder, corpus, quick, tmp_path_factory):
    out = tmp_path_factory.mktemp("atlas") / "atlas"
    build(decoder, [corpus], out, SETTINGS)
    return out


def assert_close(actual, wanted):
    """Compare plain data; numbers to 1e-6."""
    if isinstance(wanted, dict):
        assert actual.keys() == wanted.keys()
        for name in wanted:
            assert_close(actual[name], wanted[name])
    elif isinstance(wanted, list):
        assert len(actual) == len(wanted)
        for pair in zip(actual, wanted, strict=True):
            assert_close(*pair)
    elif isinstance(wanted, float):
        assert actual == pytest.approx(wanted, abs=1e-6)
    else:
        assert actual == wanted


def edges_of(folder, kind="edges"):
    return pa.concat_tables(
        pq.read_table(path) for path in sorted(folder.glob(f"{kind}/**/*.parquet"))
    ).to_pylist()


def test_the_profile_is_that_of_evaluate_heads(decoder, corpus, built):
    assert len(list((built / "shards").glob("*.json"))) > 3
    atlas = orjson.loads((built / "heads.json").read_bytes())
    assert atlas.pop("text") == ["book.txt"]
    assert fits({"text": ["a"], **atlas}, SHAPE)
    wanted = profile_heads(decoder, read_documents([corpus]), n_sentences=10_000)
    for of_path in (*atlas["attentions"].values(), *wanted["attentions"].values()):
        for head in of_path:  # equal weights of repeated sentences may change places
            head["strongest"] = [round(place["weight"], 4) for place in head["strongest"]]
    atlas.pop("examples"), wanted.pop("examples")
    assert_close(atlas, wanted)


def test_the_edges_are_all_strong_weights_off_the_first_token(decoder, corpus, built):
    stored = {}
    for path in built.glob("edges/*/*.parquet"):
        for edge in pq.read_table(path).to_pylist():
            place = edge["sentence"], edge["head"], edge["query"], edge["key"]
            stored[path.parent.name, *place] = edge
    numbers = [row["sentence"] for row in edges_of(built, "sentences")]
    wanted = {}
    inputs = sentences_of(decoder, read_documents([corpus]), 10_000)
    for number, model_input in zip(numbers, inputs, strict=True):
        traced = trace(decoder, model_input.text, capture=["*.weights"])
        for layer in range(2):
            path = f"decoder.layers.{layer}.self_attention"
            weights = traced[f"{path}.weights"]
            for head, query, key in np.argwhere(weights >= SETTINGS.threshold):
                if key > 0:
                    wanted[path, number, head, query, key] = weights[head, query, key]
    rounded = {place for place, w in wanted.items() if abs(w - SETTINGS.threshold) > 1e-5}
    assert rounded <= stored.keys()
    assert stored.keys() <= wanted.keys()
    for place in rounded:
        assert stored[place]["weight"] / 65_535 == pytest.approx(wanted[place], abs=2e-5)


def test_an_edge_names_the_words_and_tags_of_its_tokens(decoder, built):
    texts = {row["sentence"]: row["text"] for row in edges_of(built, "sentences")}
    for edge in edges_of(built)[::50]:
        tokens = decoder.tokenizer.encode(texts[edge["sentence"]])
        for side in ("query", "key"):
            token = tokens[edge[side]]
            assert edge[f"{side}_id"] == token.id
            assert token.text.strip().lower() in edge[f"{side}_word"]
    tags = {edge["key_word"]: edge["key_tag"] for edge in edges_of(built)}
    assert (tags["cat"], tags["him"], tags["old"], tags[","]) == ("NOUN", "PRON", "ADJ", "PUNCT")


def test_a_build_that_was_interrupted_goes_on_and_counts_nothing_twice(
    decoder, corpus, built, tmp_path, monkeypatch
):
    n_read = 0
    real = building.write_shard

    def stops(*arguments):
        nonlocal n_read
        n_read += 1
        if n_read == 3:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(building, "write_shard", stops)
    out = tmp_path / "atlas"
    with pytest.raises(KeyboardInterrupt):
        build(decoder, [corpus], out, SETTINGS)
    with pytest.raises(AtlasError, match="not complete; run its 'headlight atlas build' again"):
        read_atlas(out)
    n_shards = len(plan([corpus]))
    build(decoder, [corpus], out, SETTINGS)
    assert n_read == 3 + n_shards - 2, "two shards were done"
    for name in ("heads.json", "summary.json", "atlas.json"):
        assert (out / name).read_bytes() == (built / name).read_bytes()


def test_the_order_in_which_shards_are_read_does_not_matter(decoder, corpus, built, tmp_path):
    def backwards(parts):
        for part in reversed(parts):
            yield building.write_shard(decoder, part, SETTINGS, tmp_path / "atlas")

    build(decoder, [corpus], tmp_path / "atlas", SETTINGS, read_shards=backwards)
    for name in ("heads.json", "summary.json", "atlas.json"):
        assert (tmp_path / "atlas" / name).read_bytes() == (built / name).read_bytes()


def test_a_folder_with_another_atlas_or_other_files_is_refused(decoder, corpus, built, tmp_path):
    with pytest.raises(AtlasError, match=r"another model, text or settings; .*--force"):
        build(decoder, [corpus], built, Settings(threshold=0.3))
    (tmp_path / "mine.txt").write_text("a diary")
    with pytest.raises(AtlasError, match="holds other files; name a new folder"):
        build(decoder, [corpus], tmp_path, SETTINGS, is_forced=True)
    assert (tmp_path / "mine.txt").exists()
    with pytest.raises(AtlasError, match="is a file"):
        build(decoder, [corpus], tmp_path / "mine.txt", SETTINGS)


def test_a_file_that_cannot_be_written_is_named(decoder, corpus, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq, "write_table", full)
    with pytest.raises(OSError, match="No space left") as raised:
        build(decoder, [corpus], tmp_path / "atlas", SETTINGS)
    assert Path(raised.value.filename).name.endswith(".parquet")
    assert not list((tmp_path / "atlas" / "shards").glob("*"))


@pytest.mark.parametrize("kind", ["encoder", "encoder-decoder"])
def test_encoders_and_translators_have_an_atlas_too(make_checkpoint, kind, tmp_path):
    checkpoint = make_checkpoint(kind=kind, moe=None, max_tokens=96, n_layers=1)
    if kind == "encoder":
        checkpoint = make_checkpoint(list(LINES) * 3, kind=kind, moe=None, max_tokens=96)
        path = tmp_path / "book.txt"
        path.write_text("\n".join(LINES))
        documents = read_documents([path])
    else:
        path = tmp_path / "pairs.tsv"
        documents = [SentencePair("The lazy dog slept.", "Le chien dormait.")] * 3
        path.write_text("".join(f"{pair.source}\t{pair.target}\n" for pair in documents))
    build(checkpoint, [path], tmp_path / "atlas", Settings(threshold=0.05))
    atlas = orjson.loads((tmp_path / "atlas" / "heads.json").read_bytes())
    wanted = profile_heads(checkpoint, documents, n_sentences=1000)
    for of_path, of_wanted in zip(
        atlas["attentions"].values(), wanted["attentions"].values(), strict=True
    ):
        for head, of_head in zip(of_path, of_wanted, strict=True):
            assert_close(head["scores"], of_head["scores"])
            assert_close(head["cost"], of_head["cost"])
    read_atlas(tmp_path / "atlas").summary()


# --- ranges ---------------------------------------------------------------------------------------


def test_every_line_is_in_exactly_one_range(corpus):
    parts = plan([corpus])
    assert len(parts) > 3
    texts = [sentence.source for part in parts for sentence in sentences_in(part, is_paired=False)]
    (whole,) = plan_whole(corpus)
    assert texts == [sentence.source for sentence in sentences_in(whole, is_paired=False)]


def plan_whole(path):
    (first, *_) = plan([path])
    return [ranges.Range(0, 0, first.path, 0, first.size, first.size, first.changed)]


def test_json_lines_and_parquet_give_the_sentences_of_text(tmp_path):
    texts = [line for line in LINES if not line.startswith("<")]
    (tmp_path / "a.txt").write_text("\n".join(texts))
    (tmp_path / "a.jsonl").write_bytes(b"\n".join(orjson.dumps({"text": t}) for t in texts))
    pq.write_table(pa.table({"text": texts}), tmp_path / "a.parquet", row_group_size=2)
    read = {
        path.suffix: [
            sentence.source
            for part in plan([path])
            for sentence in sentences_in(part, is_paired=False)
        ]
        for path in tmp_path.iterdir()
    }
    assert read[".txt"] == read[".jsonl"] == read[".parquet"]
    assert len(plan([tmp_path / "a.parquet"])) == 2, "a row group is a range"


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.txt", b"Fine.\nBad \xff here.\n", "a.txt is not UTF-8: byte 10 is 0xff"),
        ("a.txt", b"Fine.\nBad \0 here.\n", "a.txt is binary: the line at byte 6 holds a zero"),
        ("a.txt", b"", "a.txt is empty"),
        ("a.jsonl", b'{"words": 1}\n', "a.jsonl, the line at byte 0 has no member 'text'"),
        ("a.parquet", b"PAR1 it says", "a.parquet is not a Parquet file"),
    ],
)
def test_a_damaged_file_is_named(name, content, says, tmp_path):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(CorpusError, match=says):
        [list(sentences_in(part, is_paired=False)) for part in plan([path])]


def test_a_missing_column_a_missing_file_and_a_changed_file_are_named(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"words": ["a"]}), path)
    (part,) = plan([path])
    with pytest.raises(CorpusError, match="no column 'text'; it has words"):
        list(sentences_in(part, is_paired=False))
    with pytest.raises(CorpusError, match=r"b\.txt cannot be read: there is no such file"):
        plan([tmp_path / "b.txt"])
    os.utime(path, ns=(1, 1))
    with pytest.raises(CorpusError, match="changed while it was read"):
        list(sentences_in(part, is_paired=False))


def test_a_translator_refuses_text_of_one_language(tmp_path):
    (tmp_path / "a.txt").write_text("Only English.\n")
    (part,) = plan([tmp_path / "a.txt"])
    with pytest.raises(CorpusError, match="not a file of pairs"):
        list(sentences_in(part, is_paired=True))
