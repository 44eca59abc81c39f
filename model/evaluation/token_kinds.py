"""What kind of token a token is, told by how it is written and by the token before it.

No list of words and no knowledge of a language: letters, case, spaces and the ends of sentences.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from headlight.model.tokenizer import Tokenizer

KINDS = (
    "start_of_word",
    "rest_of_word",
    "capital_at_start",
    "capital_inside",
    "number",
    "punctuation",
    "white_space",
    "other",
)
ENDS_OF_SENTENCES = frozenset(".!?:;\"'“”‘’«»\n")
BROKEN = "\ufffd"  # what a piece of a character decodes to


@dataclass(frozen=True)
class TokenKinds:
    """How the tokens of a vocabulary are written, and so of what kind they are in a text.

    ``start_of_word`` and ``rest_of_word``: letters that begin or continue a word, in small
    letters where they begin one. ``capital_at_start``: a word with a capital letter after the end
    of a sentence, an opening quotation mark or a line break; ``capital_inside``: one elsewhere,
    a name as a rule. ``number``, ``punctuation`` and ``white_space`` are what they say;
    ``other``: special tokens, and pieces of a character.
    """

    is_word: Bool[Tensor, " token"]
    is_capital: Bool[Tensor, " token"]
    has_space: Bool[Tensor, " token"]
    ends_word: Bool[Tensor, " token"]
    ends_sentence: Bool[Tensor, " token"]
    unlike_words: Int[Tensor, " token"]

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> TokenKinds:
        """Look at every token of a vocabulary."""
        texts = [tokenizer.decode([token]) for token in range(tokenizer.vocab_size)]
        bare = [text.strip() for text in texts]
        unlike = [KINDS.index(_kind_unlike_words(text)) for text in texts]
        return cls(
            is_word=torch.tensor(unlike) == KINDS.index("start_of_word"),
            is_capital=torch.tensor([text[:1].isupper() for text in bare]),
            has_space=torch.tensor([text[:1].isspace() for text in texts]),
            ends_word=torch.tensor([text[-1:].isalpha() for text in texts]),
            ends_sentence=torch.tensor(
                [not text or text[-1] in ENDS_OF_SENTENCES for text in texts]
            ),
            unlike_words=torch.tensor(unlike),
        )

    def __call__(
        self, before: Int[Tensor, "row token"], ids: Int[Tensor, "row token"]
    ) -> Int[Tensor, "row token"]:
        """The kind of each token, as an index into `KINDS`.

        Args:
            before: for each token the one before it.
            ids: the tokens.
        """
        is_rest = self.ends_word[before] & ~self.has_space[ids]
        is_start = self.ends_sentence[before]
        of_capitals = torch.where(
            is_start, KINDS.index("capital_at_start"), KINDS.index("capital_inside")
        )
        of_words = torch.where(self.is_capital[ids], of_capitals, KINDS.index("start_of_word"))
        of_words = torch.where(is_rest, KINDS.index("rest_of_word"), of_words)
        return torch.where(self.is_word[ids], of_words, self.unlike_words[ids])


def _kind_unlike_words(text: str) -> str:
    """The kind of what has no letters; what has some is given as the start of a word."""
    if not text or BROKEN in text:
        return "other"
    if any(letter.isalpha() for letter in text):
        return "start_of_word"
    if text.isspace():
        return "white_space"
    return "number" if any(letter.isdigit() for letter in text) else "punctuation"
