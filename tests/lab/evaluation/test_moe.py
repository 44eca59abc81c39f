"""The load of the experts and the tokens that they take, counted one by one."""

from collections import Counter

import pytest
import torch

from headlight.lab.evaluation.moe import KINDS, TokenKinds, count_taken, expert_tokens
from headlight.model.corpus import CorpusError, TokenStream
from headlight.model.distributions import wilson
from headlight.model.tokenizer import train_tokenizer

DOCUMENTS = ["The quick brown fox jumps over the lazy dog, and the cat. " * 8, "A tree.\n"]
LAYER = "decoder.layers.1"
LOGITS = f"{LAYER}.experts.router_logits"


def routed_by_hand(checkpoint):
    """Count how often each token occurs in the rows, and how often each expert takes it."""
    length = checkpoint.config.max_tokens - 1
    ids = TokenStream.encode(DOCUMENTS, checkpoint.tokenizer).ids.tolist()
    rows = [ids[n : n + length] for n in range(0, len(ids) - length + 1, length)]
    seen: Counter[int] = Counter()
    taken = [Counter[int]() for _ in range(4)]
    for row in rows:
        seen.update(row)
        with checkpoint.model.capture([f"{LAYER}.experts.expert_indices"]) as captured:
            checkpoint.model(torch.tensor([[checkpoint.tokenizer.start_id, *row]]))
        (indices,) = captured.values()
        for token, chosen in zip(row, indices[0, 1:].tolist(), strict=True):
            for expert in chosen:
                taken[expert][token] += 1
    return seen, taken


def test_every_expert_takes_what_it_was_counted_to_take(checkpoint):
    seen, taken = routed_by_hand(checkpoint)
    figures = expert_tokens(checkpoint, DOCUMENTS, least_count=2, n_listed=5)
    assert figures["tokens"] == seen.total()
    assert list(figures["layers"]) == [LAYER]
    text_of = checkpoint.tokenizer.text_of
    for mine, expert in zip(taken, figures["layers"][LAYER], strict=True):
        share = mine.total() / seen.total()
        assert expert["share"] == pytest.approx(share, abs=6e-5)
        ranks = {token: wilson(mine[token], n)[0] for token, n in seen.items() if n >= 2}
        best = sorted((token for token in ranks if ranks[token] > share), key=lambda t: -ranks[t])
        told = {token["text"]: (token["share"], token["count"]) for token in expert["tokens"]}
        assert [ranks[token] for token in best[:5]] == pytest.approx(
            [wilson(round(part * n), n)[0] for part, n in told.values()], abs=1e-3
        )
        for token in seen:
            if text_of(token) in told:
                part, count = told[text_of(token)]
                assert count == seen[token]
                assert part == pytest.approx(mine[token] / count, abs=6e-5)
    assert sum(expert["share"] for expert in figures["layers"][LAYER]) == pytest.approx(2, abs=2e-4)


def test_of_each_kind_all_experts_together_take_all(checkpoint):
    figures = expert_tokens(checkpoint, DOCUMENTS)
    assert sum(figures["kinds"].values()) == pytest.approx(1, abs=4e-4)
    assert figures["kinds"]["punctuation"] > 0
    assert "number" not in figures["kinds"]
    experts = figures["layers"][LAYER]
    for kind in figures["kinds"]:
        assert sum(expert["kinds"][kind] for expert in experts) == pytest.approx(2, abs=2e-4)


def test_of_tokens_that_always_go_to_an_expert_the_commoner_is_listed_first(checkpoint):
    tokenizer = checkpoint.tokenizer
    often, seldom = (tokenizer.encode(mark)[1].id for mark in (";", ","))
    assert seldom < often  # so that equal ranks would come in the other order
    documents = [",x,x;x;x;x;x;" + "x" * 40]
    length = checkpoint.config.max_tokens - 1
    row = TokenStream.encode(documents, tokenizer).ids[:length]
    row = torch.cat([torch.tensor([tokenizer.start_id]), row])
    is_mark = ((row == often) | (row == seldom))[None, :, None]
    to_2 = torch.where(is_mark, 100.0, -100.0) * torch.eye(4)[2]
    with checkpoint.model.edit(LOGITS, lambda logits: logits + to_2):
        figures = expert_tokens(checkpoint, documents, n_tokens=length, least_count=1)
    tokens = figures["layers"][LAYER][2]["tokens"]
    assert [(token["text"], token["share"]) for token in tokens] == [(";", 1.0), (",", 1.0)]


def test_rows_are_spread_over_the_whole_text(checkpoint, monkeypatch):
    length = checkpoint.config.max_tokens - 1
    all_rows = TokenStream.encode(DOCUMENTS, checkpoint.tokenizer).ids
    all_rows = all_rows[: len(all_rows) // length * length].view(-1, length)
    routed: list[torch.Tensor] = []

    def record(checkpoint, rows):
        routed.append(rows)
        return count_taken(checkpoint, rows)

    monkeypatch.setattr("headlight.lab.evaluation.moe.count_taken", record)
    figures = expert_tokens(checkpoint, DOCUMENTS, n_tokens=2 * length)
    assert figures["tokens"] == 2 * length
    assert len(all_rows) > 3
    assert routed[0].equal(all_rows[[0, len(all_rows) // 2]])


@pytest.mark.parametrize("changes", [{"moe": None}, {"kind": "encoder-decoder"}])
def test_models_without_experts_or_with_two_texts_are_rejected(make_checkpoint, changes):
    with pytest.raises(ValueError, match=r"^tiny (is dense|reads sentence pairs)"):
        expert_tokens(make_checkpoint(**changes), DOCUMENTS)


def test_a_text_shorter_than_a_context_is_rejected(checkpoint):
    with pytest.raises(CorpusError, match="at least 47"):
        expert_tokens(checkpoint, ["A tree.\n"])


# --- kinds of tokens ------------------------------------------------------------------------------


def kinds_in(text, tokenizer):
    """Each token of a text with its kind."""
    tokens = tokenizer.encode(text)
    ids = torch.tensor([[token.id for token in tokens]])
    indices = TokenKinds.of(tokenizer)(ids[:, :-1], ids[:, 1:])[0].tolist()
    return [(token.text, KINDS[kind]) for token, kind in zip(tokens[1:], indices, strict=True)]


def test_kinds_are_told_by_spelling_and_by_the_token_before():
    text = 'The old man met Ann. He said,\n"Oh 12'
    tokenizer = train_tokenizer([text] * 50, vocab_size=320)
    assert kinds_in(text, tokenizer) == [
        ("The", "capital_at_start"),
        (" old", "start_of_word"),
        (" man", "start_of_word"),
        (" met", "start_of_word"),
        (" Ann", "capital_inside"),
        (".", "punctuation"),
        (" He", "capital_at_start"),
        (" said", "start_of_word"),
        (",", "punctuation"),
        ("\n", "white_space"),
        ('"', "punctuation"),
        ("Oh", "capital_at_start"),
        (" 12", "number"),
    ]


def test_any_script_has_words_and_pieces_of_characters_have_no_kind(tokenizer):
    shown = kinds_in("é😀", tokenizer)
    assert {kind for _, kind in shown} == {"other"}
    whole = train_tokenizer(["été Été été"] * 50, vocab_size=300)
    assert kinds_in("été Été", whole) == [("été", "start_of_word"), (" Été", "capital_inside")]
