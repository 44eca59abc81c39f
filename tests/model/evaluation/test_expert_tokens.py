"""Which tokens each expert takes: counted one by one, and ranked as by hand."""

import json
import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import torch

from headlight.model.checkpoint import Checkpoint
from headlight.model.config import ExpertsConfig
from headlight.model.evaluation.expert_tokens import expert_tokens, lower_end
from headlight.model.training.corpus import CorpusError, TokenStream

DOCUMENTS = ["The quick brown fox jumps over the lazy dog, and the cat. " * 8, "A tree.\n"]
LAYER = "decoder.layers.1"
LOGITS = f"{LAYER}.experts.router_logits"


def routed_by_hand(checkpoint: Checkpoint) -> tuple[Counter[int], list[Counter[int]]]:
    """How often each token occurs in the rows, and how often each expert takes it."""
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


def wilson(part: int, whole: int) -> float:
    """The lower end of the interval at 95 %, as textbooks have it."""
    z, p = 1.959964, part / whole
    middle = p + z * z / (2 * whole)
    spread = z * math.sqrt(p * (1 - p) / whole + z * z / (4 * whole * whole))
    return (middle - spread) / (1 + z * z / whole)


def test_every_expert_takes_what_it_was_counted_to_take(checkpoint: Checkpoint) -> None:
    seen, taken = routed_by_hand(checkpoint)
    found = expert_tokens(checkpoint, DOCUMENTS, least_count=2, n_listed=5)
    assert found["tokens"] == seen.total()
    assert list(found["layers"]) == [LAYER]
    text_of = checkpoint.tokenizer.text_of
    for mine, expert in zip(taken, found["layers"][LAYER], strict=True):
        share = mine.total() / seen.total()
        assert expert["share"] == pytest.approx(share, abs=6e-5)
        ranks = {token: wilson(mine[token], n) for token, n in seen.items() if n >= 2}
        best = sorted((token for token in ranks if ranks[token] > share), key=lambda t: -ranks[t])
        told = {token["text"]: (token["share"], token["count"]) for token in expert["tokens"]}
        assert [ranks[token] for token in best[:5]] == pytest.approx(
            [wilson(round(part * n), n) for part, n in told.values()], abs=1e-3
        )
        for token in seen:
            if text_of(token) in told:
                part, count = told[text_of(token)]
                assert count == seen[token]
                assert part == pytest.approx(mine[token] / count, abs=6e-5)
    assert sum(expert["share"] for expert in found["layers"][LAYER]) == pytest.approx(2, abs=2e-4)


def test_of_each_kind_all_experts_together_take_all(checkpoint: Checkpoint) -> None:
    found = expert_tokens(checkpoint, DOCUMENTS)
    assert sum(found["kinds"].values()) == pytest.approx(1, abs=4e-4)
    assert found["kinds"]["punctuation"] > 0
    assert "number" not in found["kinds"]
    experts = found["layers"][LAYER]
    for kind in found["kinds"]:
        assert sum(expert["kinds"][kind] for expert in experts) == pytest.approx(2, abs=2e-4)


def test_an_expert_that_takes_all_of_a_token_and_little_else_is_known_by_it(
    checkpoint: Checkpoint,
) -> None:
    tokenizer = checkpoint.tokenizer
    comma = tokenizer.encode(",")[1].id
    stream = TokenStream.encode(DOCUMENTS, tokenizer).ids
    length = checkpoint.config.max_tokens - 1
    row = torch.cat([torch.tensor([tokenizer.start_id]), stream[:length]])

    def steer(logits: torch.Tensor) -> torch.Tensor:
        is_comma = (row == comma)[None, :, None]
        to_2, away_from_2 = 100 * torch.eye(4)[2], -100 * torch.eye(4)[2]
        return logits + torch.where(is_comma, to_2, away_from_2)

    with checkpoint.model.edit(LOGITS, steer):
        found = expert_tokens(checkpoint, DOCUMENTS, n_tokens=length, least_count=1)
    expert = found["layers"][LAYER][2]
    assert [(token["text"], token["share"]) for token in expert["tokens"]] == [(",", 1.0)]
    assert expert["kinds"]["start_of_word"] == 0


def test_of_tokens_that_always_go_to_an_expert_the_commoner_is_listed_first(
    checkpoint: Checkpoint,
) -> None:
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
        found = expert_tokens(checkpoint, documents, n_tokens=length, least_count=1)
    tokens = found["layers"][LAYER][2]["tokens"]
    assert [(token["text"], token["share"]) for token in tokens] == [(";", 1.0), (",", 1.0)]


def test_the_lower_end_puts_a_habit_before_luck() -> None:
    habit, luck, half, nothing = lower_end(
        torch.tensor([990, 2, 50, 0]), torch.tensor([1000, 2, 100, 0])
    ).tolist()
    assert habit == pytest.approx(wilson(990, 1000))
    assert luck == pytest.approx(wilson(2, 2))
    assert half == pytest.approx(0.4038, abs=1e-4)
    assert habit > half > luck > nothing == 0


def test_rows_are_spread_over_the_whole_text(
    checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    length = checkpoint.config.max_tokens - 1
    all_rows = TokenStream.encode(DOCUMENTS, checkpoint.tokenizer).ids
    all_rows = all_rows[: len(all_rows) // length * length].view(-1, length)
    read: list[torch.Tensor] = []

    def record(logits: torch.Tensor) -> torch.Tensor:
        read.append(logits)
        return logits

    with checkpoint.model.edit(LOGITS, record):
        found = expert_tokens(checkpoint, DOCUMENTS, n_tokens=2 * length)
    assert len(all_rows) > 3
    assert found["tokens"] == 2 * length
    assert sum(len(batch) for batch in read) == 2


def test_what_is_found_is_plain_data(checkpoint: Checkpoint) -> None:
    found = expert_tokens(checkpoint, DOCUMENTS, least_count=3)
    assert json.loads(json.dumps(found)) == found
    assert found["least_count"] == 3

    def counts(experts: list[dict[str, Any]]) -> list[int]:
        return [token["count"] for expert in experts for token in expert["tokens"]]

    assert min(counts(found["layers"][LAYER])) >= 3


def test_every_routed_layer_is_counted(make_checkpoint: Callable[..., Checkpoint]) -> None:
    moe = ExpertsConfig(n_experts=4, top_k=1, layers=(2, 0))
    found = expert_tokens(make_checkpoint(n_layers=3, moe=moe), DOCUMENTS)
    assert list(found["layers"]) == ["decoder.layers.0", "decoder.layers.2"]
    for experts in found["layers"].values():
        assert sum(expert["share"] for expert in experts) == pytest.approx(1, abs=2e-4)


@pytest.mark.parametrize(
    ("changes", "documents", "message"),
    [
        ({"moe": None}, DOCUMENTS, "tiny is dense: it has no experts; leave the corpus out"),
        (
            {"kind": "encoder-decoder"},
            DOCUMENTS,
            "tiny reads pairs; its experts cannot be counted over a text",
        ),
    ],
)
def test_models_without_experts_or_with_two_texts_are_refused(
    make_checkpoint: Callable[..., Checkpoint],
    changes: dict,
    documents: list[str],
    message: str,
) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        expert_tokens(make_checkpoint(**changes), documents)


def test_a_text_shorter_than_a_context_is_refused(checkpoint: Checkpoint) -> None:
    message = r"^the corpus has \d+ tokens; counting needs at least 47$"
    with pytest.raises(CorpusError, match=message):
        expert_tokens(checkpoint, ["A tree.\n"])
