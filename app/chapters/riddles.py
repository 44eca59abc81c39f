"""Three heads to be found in any model: each the clearest of its kind over fifty sentences."""

from __future__ import annotations

from collections.abc import Callable

from headlight.model.profiles.ablation import passes
from headlight.model.profiles.folder import documents_of
from headlight.model.profiles.measure import sentences_of
from headlight.model.profiles.sums import Reader
from headlight.model.served import Served

N_SENTENCES = 50
KINDS: dict[str, tuple[str, Callable[[int], int]]] = {
    "previous": ("reads the token before", lambda query: query - 1),
    "current": ("reads the token itself", lambda query: query),
    "next": ("reads the token after", lambda query: query + 1),
    "first_token": ("rests on the first token", lambda query: 0),
}
"""By the name of a score: what the head does, and the key that it reads at a query."""
NAMES = ("does", "text", "layer", "head", "query", "key", "reads", "read", "mean", "even")


def riddles_in(model: Served) -> dict[str, str]:
    """Return three riddles by name, the clearest first: ``a_…``, ``b_…`` and ``c_…``.

    The head of a kind has the greatest mean weight over fifty sentences; it is to be found in the
    cell of one of them in which that weight is greatest.

    Raises:
        ValueError: the model is a translator, or shows no attention weights.
    """
    reader = Reader(model)
    if model.config.kind == "encoder-decoder" or not reader.facts:
        raise ValueError(f"the riddles are of models with attention over one text, not {model.id}")
    inputs = sentences_of(model, documents_of(model), N_SENTENCES)
    weights = {
        (facts.path, number): batch[at].numpy()
        for numbers in passes(inputs)
        for facts, _, _, batch in reader.read([inputs[number] for number in numbers], numbers)
        for at, number in enumerate(numbers)
    }
    clearest = []
    for name, (does, key_of) in KINDS.items():
        means = [
            (*sums.mean(name, head), does, key_of, path, head)
            for path, sums in reader.sums.items()
            if sums.counts.get(name)
            for head in range(sums.n_heads)
        ]
        clearest += [max(means, key=lambda each: each[0])] if means else []
    clearest.sort(key=lambda each: each[1] - each[0])
    values = {"sentences": str(len(inputs))}
    for letter, (mean, control, does, key_of, path, head) in zip("abc", clearest, strict=False):
        cells = [
            (weights[path, number][head, query, key_of(query)], number, query)
            for number, sentence in enumerate(inputs)
            for query in range(3, len(sentence.tokens) - 2)
        ]
        _, number, query = max(cells)
        text, tokens = inputs[number].text, inputs[number].tokens
        words = [tokens[at].text.strip() for at in (query, key_of(query))]
        places = [path.split(".")[2], str(head), str(query), str(key_of(query))]
        told = zip(
            NAMES, [does, text, *places, *words, f"{mean:.0%}", f"{control:.0%}"], strict=True
        )
        values |= {f"{letter}_{name}": value for name, value in told}
    return values
