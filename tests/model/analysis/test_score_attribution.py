"""A score is the sum over pairs of parts of the stream, on every model that ships."""

import numpy as np
import pytest
import torch

from headlight.model.analysis.score_attribution import Cell, read_by, read_for, score_parts
from headlight.model.checkpoint.loading import ZOO, load
from headlight.model.circuits.cut import Cut
from headlight.model.interventions.head_ablation import HeadAblation
from headlight.model.tracing import trace

STORY = "The red fox ran. The blue dog sat. The red"
TEXTS = {"translate": "The red fox sat near the old house.", "sums": "37*46="}
INDUCTION = Cell(path="decoder.layers.1.self_attention", head=1, query=12, key=3)


@pytest.fixture(scope="module")
def shipped():
    """Return a model that ships, loaded once."""
    loaded = {}

    def get(name):
        if name not in loaded:
            loaded[name] = load(ZOO / name)
        return loaded[name]

    return get


@pytest.fixture(scope="module")
def story(shipped):
    """Return the trace of the story with every site."""
    return trace(shipped("stories"), STORY, capture=["*"])


def parts_of(model, text, cell, interventions=()):
    bound = tuple(each.with_model(model) for each in interventions)
    read = read_for(model, text, cell.path, cell.query, bound)
    return score_parts(model, read, cell, is_edited=bool(bound))


def shares(parts, side):
    return {part.name: float(share) for part, share in zip(parts, side, strict=True)}


def scale_of(read, path, head, factor):
    """Return the largest score that queries and keys of these lengths can have."""
    queries, keys = (
        read.tensors.get(f"{path}.rotated_{name}", read.tensors[f"{path}.{name}"]).data[head]
        for name in ("queries", "keys")
    )
    lengths = (float(np.linalg.norm(each, axis=-1).max()) for each in (queries, keys))
    return factor * next(lengths) * next(lengths)


def cells_of(read, path, n_heads, query):
    for head in range(n_heads):
        weights = read[f"{path}.rows"][head, 0]
        visible = np.flatnonzero(weights > 1e-30)
        if len(visible) < 2:
            continue
        key = int(weights.argmax())
        rival = int(visible[visible != key][-1])
        for other in (None, rival):
            yield Cell(path=path, head=head, query=query, key=key, rival=other)


@pytest.mark.parametrize("name", sorted(each.parent.name for each in ZOO.glob("*/config.json")))
def test_the_table_of_every_attention_that_ships_sums_to_its_score(name, shipped):
    model = shipped(name)
    text = trace(model, TEXTS.get(name.partition("-")[0], STORY), capture=["logits"])
    for facts in model.description.attentions:
        tokens = text.tokens
        if text.target_tokens is not None and not facts.path.startswith("encoder"):
            tokens = text.target_tokens
        query = len(tokens) - 1
        read = read_for(model, text, facts.path, query)
        for cell in cells_of(read, facts.path, facts.n_heads, query):
            made = score_parts(model, read, cell)
            scale = scale_of(read, facts.path, cell.head, facts.scale)
            assert abs(made.remainder) < 1e-5 * scale
            assert made.table.sum() == pytest.approx(made.score, abs=1e-5 * scale)
            assert made.table.shape == (len(made.query_parts), len(made.key_parts))


def test_the_induction_head_of_a_story_reads_what_the_head_before_wrote(shipped, story):
    made = parts_of(shipped("stories"), story, INDUCTION)
    assert story.tokens[3].text == " fox"
    key, query = shares(made.key_parts, made.key_side), shares(made.query_parts, made.query_side)
    assert max(key, key=key.get) == "0.1"
    assert max(query, key=query.get) == "token"
    assert key["0.1"] > 0.5 * made.score
    assert made.weights[0] == pytest.approx(
        story["decoder.layers.1.self_attention.weights"][1, 12, 3]
    )


def test_a_key_that_is_seen_counts_however_small_its_weight(shipped):
    path, query = "decoder.layers.0.self_attention", 18
    text = trace(shipped("stories"), "🎉 party 🎉 at 5 🎈", capture=[f"{path}.*"])
    assert text[f"{path}.weights"][0, query, : query + 1].min() < 1e-37
    key = int(text[f"{path}.weights"][0, query].argmax())
    made = parts_of(shipped("stories"), text, Cell(path=path, head=0, query=query, key=key))
    scores = text[f"{path}.scores"][0, query, : query + 1]
    assert made.n_visible == query + 1
    assert made.score == pytest.approx(scores[key] - scores.mean(), rel=1e-4)
    assert made.table.sum() == pytest.approx(made.score, rel=1e-4)


def test_the_table_is_that_of_a_plain_computation(shipped, story):
    """One step after another, from the definition: parts, norm, matrices, products."""
    model, layer = shipped("stories"), "decoder.layers.1"
    weights = {name: weight.read().astype(np.float64) for name, weight in model.weights().items()}
    parts = {
        "token": story["decoder.embedding.tokens"],
        "position": story["decoder.embedding.positional"],
        "0.ff": story["decoder.layers.0.experts.output"]
        if "decoder.layers.0.experts.output" in story
        else story["decoder.layers.0.feed_forward.output"],
    }
    first = "decoder.layers.0.self_attention"
    for head, context in enumerate(story[f"{first}.context"]):
        parts[f"0.{head}"] = context @ weights[f"{first}.W_O"][head]
    stream = story[f"{layer}.residual.before"].astype(np.float64)
    parts["constant"] = stream - sum(parts.values())
    norm = f"{layer}.self_attention.norm"
    is_centred = f"{norm}_shift" in weights

    def centred(x):
        return x - x.mean(axis=-1, keepdims=True) if is_centred else x

    size = np.sqrt(np.square(centred(stream)).mean(-1, keepdims=True) + model.config.norm_epsilon)
    sides = {}
    for letter in "QK":
        matrix = weights[f"{layer}.self_attention.W_{letter}"][1]
        made = {
            name: centred(part) / size * weights[f"{norm}_scale"] @ matrix
            for name, part in parts.items()
        }
        if is_centred:
            made["constant"] = made["constant"] + weights[f"{norm}_shift"] @ matrix
        if (bias := weights.get(f"{layer}.self_attention.b_{letter}")) is not None:
            made["constant"] = made["constant"] + bias[1]
        sides[letter] = made
    made = parts_of(shipped("stories"), story, INDUCTION)
    for row, query in enumerate(made.query_parts):
        for column, key in enumerate(made.key_parts):
            keys = sides["K"][key.name]
            contrast = keys[3] - keys[:13].mean(axis=0)
            expected = sides["Q"][query.name][12] @ contrast / np.sqrt(32)
            assert made.table[row, column] == pytest.approx(expected, abs=2e-5), (query, key)


def test_the_key_side_is_the_gradient_of_the_score_along_each_part(shipped, story):
    """With frozen norms a score is linear in what the keys read: its derivative is the share."""
    model, layer = shipped("stories"), "decoder.layers.1"
    block = model.model.get_submodule(layer)
    x = torch.from_numpy(story[f"{layer}.residual.before"].copy()).double()
    attention, norm = block.self_attention.double(), block.attention_norm.double()
    try:
        stream = x.clone().requires_grad_()
        centred = stream - stream.mean(-1, keepdim=True) if hasattr(norm, "shift") else stream
        held = (centred.detach().square().mean(-1, keepdim=True) + norm.epsilon).sqrt()
        normed = centred / held * norm.scale + getattr(norm, "shift", 0.0)
        query = attention.query_projection(normed.detach())[12, 32:64]
        keys = attention.key_projection(normed)[:, 32:64]
        score = (keys @ query / 32**0.5)[:13]
        (gradient,) = torch.autograd.grad(score[3] - score.mean(), stream)
    finally:
        block.float()
    output = model.weights()["decoder.layers.0.self_attention.W_O"].read()[1]
    written = torch.from_numpy(story["decoder.layers.0.self_attention.context"][1] @ output)
    made = parts_of(model, story, INDUCTION)
    share = shares(made.key_parts, made.key_side)["0.1"]
    assert share == pytest.approx(float((gradient * written.double()).sum()), rel=1e-4)


@pytest.mark.parametrize("side", ["query", "key"])
def test_the_share_of_a_head_is_split_by_the_tokens_that_it_read(side, shipped, story):
    model = shipped("stories")
    cell = INDUCTION
    read = read_for(model, story, cell.path, cell.query)
    made = score_parts(model, read, cell)
    split = read_by(model, read, cell, made, "0.1")
    assert story.tokens[int(split["key"].argmax())].text == " red"
    if side == "query":
        share = shares(made.query_parts, made.query_side)["0.1"]
        assert split["query"].sum() == pytest.approx(share, abs=1e-4)
        return
    rival = Cell(path=cell.path, head=cell.head, query=cell.query, key=cell.key, rival=8)
    other = Cell(path=cell.path, head=cell.head, query=cell.query, key=8, rival=3)
    ends = []
    for each in (rival, other):
        parts = score_parts(model, read, each)
        sums = read_by(model, read, each, parts, "0.1")["key"].sum()
        ends.append((sums, shares(parts.key_parts, parts.key_side)["0.1"]))
    (of_key, share), (of_rival, opposite) = ends
    assert of_key - of_rival == pytest.approx(share, abs=1e-4)
    assert share == pytest.approx(-opposite, abs=1e-6)


def test_the_parts_are_those_of_the_edited_pass(shipped, story):
    model = shipped("stories")
    off = HeadAblation(heads=(1,), layer=0)
    made = parts_of(model, story, INDUCTION, [off])
    key = shares(made.key_parts, made.key_side)
    assert key["0.1"] == 0
    assert abs(made.remainder) < 1e-4
    assert made.weights[0] < 0.5


def test_what_an_edit_changes_behind_the_stream_is_the_remainder(shipped, story):
    model = shipped("stories")
    whole = parts_of(model, story, INDUCTION)
    cut = parts_of(model, story, INDUCTION, [Cut(edges=("0.1→1.1.k",))])
    assert cut.weights[0] < 0.1 < whole.weights[0]
    assert abs(cut.remainder) > 1


def test_one_cell_of_a_long_text_keeps_no_matrix_of_every_query_and_key(shipped):
    model = shipped("stories")
    text = trace(model, "The red fox ran. " * 40, capture=["logits"])
    n_tokens = len(text.tokens)
    read = read_for(model, text, INDUCTION.path, n_tokens - 1)
    largest = max(array.data.size for array in read.tensors.values())
    assert largest < n_tokens**2
    made = score_parts(model, read, Cell(path=INDUCTION.path, head=1, query=n_tokens - 1, key=3))
    assert abs(made.remainder) < 1e-4


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"path": "decoder.layers.9.self_attention"}, "there is no attention"),
        ({"head": 6}, "there is no head 6; the heads are 0 to 5"),
        ({"query": 13}, "there is no query 13; the last is 12"),
        ({"key": 13}, "there is no key 13; the last is 12"),
        ({"query": 2, "key": 3}, "the query at 2 does not see the key at 3"),
        ({"rival": 3}, "key and rival are both 3"),
        ({"query": 0, "key": 0}, "sees one key only"),
    ],
)
def test_a_cell_that_cannot_be_split_is_refused_with_the_reason(changes, sentence, shipped, story):
    cell = Cell(**{**vars(INDUCTION), **changes})
    with pytest.raises(ValueError, match=sentence):
        parts_of(shipped("stories"), story, cell)


def test_a_split_names_a_head_before_the_cell(shipped, story):
    model = shipped("stories")
    read = read_for(model, story, INDUCTION.path, 12)
    made = score_parts(model, read, INDUCTION)
    with pytest.raises(ValueError, match=r"no head '2\.0' writes .* they are 0\.0 to 0\.5"):
        read_by(model, read, INDUCTION, made, "2.0")
    with pytest.raises(ValueError, match=r"network 0\.ff cannot be split: its activation"):
        read_by(model, read, INDUCTION, made, "0.ff")
