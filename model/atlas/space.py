"""The vectors of one head over many sentences, on the two axes along which they differ most.

The axes are the principal components, exact by the singular values of the centred vectors; queries
and keys are centred each, as a vector that all keys share moves no weight. An axis has its share of
the variance, and as a control the share that it has if every coordinate is shuffled over the tokens
(Horn 1965, https://doi.org/10.1007/BF02289447). The first token of a text, where heads rest, and
tokens that are not typed are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from torch import Tensor

from headlight.model.atlas.layout import AtlasError
from headlight.model.atlas.shards import words_and_tags
from headlight.model.atlas.tags import english, french
from headlight.model.cancellation import check
from headlight.model.hooks import reducing
from headlight.model.profiles.ablation import passes
from headlight.model.profiles.folder import documents_of, multiplies
from headlight.model.profiles.measure import sentences_of
from headlight.model.served import Served
from headlight.model.tracing import ModelInput

SITES: Mapping[str, Mapping[str, str]] = {
    "reads": {"queries": "query", "keys": "key"},
    "values": {"values": "key"},
    "outputs": {"context": "query"},
}
"""The sites whose vectors are drawn, with the side of each: queries and keys before a rotation,
values times W_O, and the output, which is the context times W_O, without a bias."""
Vectors = Float[np.ndarray, "token d"]
LEAST_SENTENCES, MOST_SENTENCES, MOST_POINTS = 50, 120, 1200
PASS_TOKENS = 512


def space(checkpoint: Served, attention: str, head: int, kind: str) -> dict[str, Any]:
    """Return the space of a head; ``kind`` is one of `SITES`.

    Returns:
        ``n_vectors`` tokens of ``sentences`` and ``targets`` make the axes; ``shares`` and
        ``controls`` are of the variance on each. ``by_tag``: the share of the places' variance that
        is between the means of the parts of speech; ``by_tag_control``: with those shuffled.
        ``points``, of evenly chosen sentences: ``sentence``, ``token``, ``side``, ``word``,
        ``tag``, ``x``, ``y``; of a query the key of its highest ``score`` as ``read``, the
        ``distance`` of their vectors about the means, and the ``mean_score`` and ``mean_distance``
        of all that it could read.

    Raises:
        AtlasError: there is no such head, the model shows no such vectors, or reads too few texts.
        Cancelled: as `headlight.model.cancellation`.
    """
    description, sides = checkpoint.description, SITES[kind]
    heads = {facts.path: facts.n_heads for facts in description.attentions}
    if head >= heads.get(attention, 0):
        raise AtlasError(f"there is no head {head} in an attention {attention[:60]!r}")
    sites = [f"{attention}.{site}" for site in (*sides, *(["scores"] if len(sides) > 1 else []))]
    if lacking := [site for site in sites if site not in description.site_names]:
        raise AtlasError(f"the model does not show {lacking[0]}")
    inputs = texts_of(checkpoint)
    found: dict[str, list[tuple[Any, dict[str, Any]]]] = {side: [] for side in sides.values()}
    for number, arrays in captured(checkpoint, inputs, sites):
        of_head = [arrays[site][head] for site in sites]
        for vector, point in _points(inputs[number], attention, sides, of_head):
            found[point["side"]].append((vector, {"sentence": number, **point}))
    stacked = [np.stack([vector for vector, _ in of_side]) for of_side in found.values()]
    vectors: Vectors = np.concatenate([side - side.mean(axis=0) for side in stacked])
    points = [point for side in found.values() for _, point in side]
    if kind == "reads":
        _add_distances(vectors, points)
    else:
        try:
            written = checkpoint.output_weights(attention).data[head].astype(np.float64)
        except KeyError as error:
            raise AtlasError(str(error.args[0])) from error
        _, triangle = np.linalg.qr(written.T)
        vectors = vectors @ triangle.T  # times W_O, in an orthonormal basis of its rows
    return _space(inputs, vectors, points)


def texts_of(checkpoint: Served) -> list[ModelInput]:
    """Return sentences of the project's own texts.

    Raises:
        AtlasError: the model multiplies, or reads fewer than fifty of them.
    """
    if multiplies(checkpoint):
        raise AtlasError(f"{checkpoint.id} reads problems, and the texts for this are sentences")
    inputs = sentences_of(checkpoint, documents_of(checkpoint), MOST_SENTENCES)
    if len(inputs) < LEAST_SENTENCES:
        raise AtlasError(
            f"{checkpoint.id} can read {len(inputs)} of the sentences, and fewer than "
            f"{LEAST_SENTENCES} tell nothing"
        )
    return inputs


class _AllRead(Exception):
    """The pass has come as far as the last site that is wanted."""


def captured(
    checkpoint: Served, inputs: Sequence[ModelInput], sites: Sequence[str]
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number of each sentence with the arrays at some sites, padded as in its pass.

    A pass ends behind the last of the sites.
    """
    held: dict[str, Tensor] = {}

    def stop(tensors: Mapping[str, Tensor], _: str) -> None:
        if all(site in tensors for site in sites):
            held.update(tensors)
            raise _AllRead

    for numbers in passes(inputs, PASS_TOKENS):
        check()
        some = [inputs[number] for number in numbers]
        sources = [[token.id for token in each.tokens] for each in some]
        targets = [[token.id for token in each.target_tokens or ()] for each in some]
        try:
            with reducing(stop):
                held.update(
                    checkpoint.read(sources, targets if any(targets) else None, sites=sites)
                )
        except _AllRead:
            pass
        for row, number in enumerate(numbers):
            yield number, {site: held[site][row].double().cpu().numpy() for site in sites}


def _points(
    model_input: ModelInput, attention: str, sides: Mapping[str, str], arrays: Sequence[Any]
) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield the vectors of the typed tokens but the first, and what is said of each."""
    source = (model_input.text, model_input.tokens, english)
    target = (model_input.target or "", model_input.target_tokens or (), french)
    of_query = target if attention.startswith("decoder") and model_input.target else source
    of_key = source if attention.endswith("cross_attention") else of_query
    is_causal = attention.startswith("decoder") and of_key is of_query
    for side, vectors in zip(sides.values(), arrays, strict=False):
        text, tokens, tagger = of_query if side == "query" else of_key
        _, tags = words_and_tags(text, tokens, tagger)
        for place in _shown(tokens):
            point = {"side": side, "token": place, "word": tokens[place].text, "tag": tags[place]}
            if len(sides) > 1 and side == "query":
                seen = [key for key in _shown(of_key[1]) if not is_causal or key <= place]
                scores = arrays[-1][place, seen]
                best = int(np.argmax(scores))
                point |= {"read": of_key[1][seen[best]].text, "seen": (seen, best)}
                point["score"], point["mean_score"] = float(scores.max()), float(scores.mean())
            yield vectors[place], point


def _add_distances(vectors: Vectors, points: Sequence[dict[str, Any]]) -> None:
    """Replace the keys that each query could read by how far they are from it."""
    rows = {(of["sentence"], of["token"]): row for row, of in enumerate(points) if "seen" not in of}
    for vector, point in zip(vectors, points, strict=True):
        if "seen" in point:
            seen, best = point.pop("seen")
            keys = vectors[[rows[point["sentence"], key] for key in seen]]
            far = np.linalg.norm(keys - vector, axis=1)
            point["distance"], point["mean_distance"] = float(far[best]), float(far.mean())


def _shown(tokens: Sequence[Any]) -> list[int]:
    return [place for place, token in enumerate(tokens) if token.is_typed and place > 0]


def _space(
    inputs: Sequence[ModelInput], vectors: Vectors, points: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    shares, places = principal(vectors)
    generator = np.random.default_rng(0)
    controls, _ = principal(generator.permuted(vectors, axis=0))
    tags = np.array([point["tag"] for point in points])
    step = -(-len(points) // MOST_POINTS)
    return {
        "sentences": [each.text for each in inputs],
        "targets": [each.target or "" for each in inputs],
        "n_vectors": len(points),
        "shares": shares,
        "controls": controls,
        "by_tag": between(places, tags),
        "by_tag_control": between(places, generator.permutation(tags)),
        "points": [
            {**point, "x": round(float(x), 4), "y": round(float(y), 4)}
            for (x, y), point in zip(places, points, strict=True)
            if point["sentence"] % step == 0
        ],
    }


def principal(vectors: Vectors) -> tuple[list[float], Float[np.ndarray, "token 2"]]:
    """Return the shares of the variance on the first two axes, and the places on them."""
    left, sizes, _ = np.linalg.svd(vectors - vectors.mean(axis=0), full_matrices=False)
    shares = sizes**2 / max(float((sizes**2).sum()), np.finfo(float).tiny)
    return shares[:2].tolist(), left[:, :2] * sizes[:2]


def between(places: Float[np.ndarray, "token 2"], names: np.ndarray[Any, Any]) -> float:
    """Return the share of the variance of places that is between the means of their groups."""
    groups = [places[names == name] for name in np.unique(names)]
    inside = sum(float(((of - of.mean(axis=0)) ** 2).sum()) for of in groups)
    whole = float(((places - places.mean(axis=0)) ** 2).sum())
    return 1 - inside / max(whole, np.finfo(float).tiny)
