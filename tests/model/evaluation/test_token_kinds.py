"""What kind of token a token is, in a sentence that has them all."""

import torch

from headlight.model.evaluation.token_kinds import KINDS, TokenKinds
from headlight.model.tokenizer import Tokenizer, train_tokenizer


def kinds_in(text: str, tokenizer: Tokenizer) -> list[tuple[str, str]]:
    """Each token of a text with its kind."""
    tokens = tokenizer.encode(text)
    ids = torch.tensor([[token.id for token in tokens]])
    found = TokenKinds.of(tokenizer)(ids[:, :-1], ids[:, 1:])[0].tolist()
    return [(token.text, KINDS[kind]) for token, kind in zip(tokens[1:], found, strict=True)]


def test_kinds_are_told_by_spelling_and_by_the_token_before() -> None:
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


def test_what_follows_letters_without_a_space_is_the_rest_of_a_word(tokenizer: Tokenizer) -> None:
    assert kinds_in("xY's", tokenizer) == [
        ("x", "start_of_word"),
        ("Y", "rest_of_word"),
        ("'", "punctuation"),
        ("s", "start_of_word"),
    ]


def test_any_script_has_words_and_pieces_of_characters_have_no_kind(tokenizer: Tokenizer) -> None:
    shown = kinds_in("é😀", tokenizer)
    assert {kind for _, kind in shown} == {"other"}
    whole = train_tokenizer(["été Été été"] * 50, vocab_size=300)
    assert kinds_in("été Été", whole) == [
        ("été", "start_of_word"),
        (" Été", "capital_inside"),
    ]


def test_special_tokens_are_other(tokenizer: Tokenizer) -> None:
    ids = torch.tensor([[tokenizer.start_id, tokenizer.end_id]])
    kinds = TokenKinds.of(tokenizer)(ids, ids)
    assert [KINDS[kind] for kind in kinds[0].tolist()] == ["other", "other"]
