"""Every analysis by name, and the types of requests and answers that are made of them."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Mapping
from functools import lru_cache
from inspect import isabstract
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pydantic import create_model

from headlight import analyses
from headlight.analyses.analysis import Analysis, AnalysisOptions
from headlight.forms import Answer, Request, option
from headlight.model.discovery import import_all

if TYPE_CHECKING:
    from headlight.model.description import Description

N_CACHED_GLOBS = 256


def _imported() -> Mapping[str, Analysis]:
    """Import every module of the package, and return the analyses in the order of their names.

    Raises:
        ImportError: a module cannot be imported.
        TypeError: an analysis lacks something, or two have the same name.
    """
    import_all(analyses.__name__, analyses.__path__)
    kinds: dict[str, type[Analysis]] = {}
    for kind in _subclasses(Analysis):
        if isabstract(kind) and "id" not in vars(kind):
            continue
        place = f"{kind.__module__}.{kind.__qualname__}"
        lacking = [name for name in ("id", "needs", "__doc__") if not getattr(kind, name, None)]
        if lacking or isabstract(kind):
            raise TypeError(f"{place} lacks {', '.join(lacking) or 'compute'}")
        if (other := kinds.setdefault(kind.id, kind)) is not kind:
            raise TypeError(f"{place} and {other.__module__} have the same id, {kind.id}")
    return {name: kinds[name]() for name in sorted(kinds)}


def _subclasses(kind: type[Any]) -> Iterator[type[Any]]:
    for each in kind.__subclasses__():
        yield each
        yield from _subclasses(each)


ANALYSES = _imported()

OPTIONS: Mapping[str, type[AnalysisOptions]] = {
    kind.member: kind for analysis in ANALYSES.values() for kind in analysis.options
}
"""The options of all analyses, by the member of a request that holds them."""


def readers_of(kind: type[AnalysisOptions]) -> list[str]:
    """Return the names of the analyses that read options."""
    return [name for name, analysis in ANALYSES.items() if kind in analysis.options]


def _member(kind: type[AnalysisOptions]) -> tuple[Any, Any]:
    """Return the member of a request that holds options: its type, and its field."""
    first, *_ = (kind.__doc__ or "").splitlines()
    return kind | None, option(None, f"{first} Read by {in_words(readers_of(kind), 'and')}.")


def in_words(names: list[str], conjunction: str) -> str:
    """Return names as an enumeration: "a, b or c"."""
    *others, last = names
    return f"{', '.join(others)} {conjunction} {last}" if others else last


if TYPE_CHECKING:
    AnalysisName: TypeAlias = str
    AnalysesAnswer: TypeAlias = Answer

    class OptionsRequest(Request):
        """The options of analyses."""

else:
    AnalysisName = Literal[tuple(ANALYSES)]
    AnalysesAnswer = create_model(
        "AnalysesAnswer",
        __base__=Answer,
        __doc__="The requested analyses.",
        __module__=__name__,
        **{name: (analysis.answer | None, None) for name, analysis in ANALYSES.items()},
    )
    OptionsRequest = create_model(
        "OptionsRequest",
        __base__=Request,
        __doc__="The options of analyses.",
        __module__=__name__,
        **{name: _member(kind) for name, kind in OPTIONS.items()},
    )


def described() -> str:
    """Return the description of the member `analyses` of a request."""
    by_layer = [name for name, analysis in ANALYSES.items() if analysis.is_by_layer]
    return " ".join(
        (
            "Quantities computed from the trace; a model's card lists those it has.",
            *(f"{name}: {analysis.description}." for name, analysis in ANALYSES.items()),
            "Sites that only an analysis reads need not be captured; it reads every layer, except",
            f"{in_words(by_layer, 'and')}, and only the heads in `heads`. If omitted: next_token,",
            "or what the model has in its place, unless capture is given.",
        )
    )


def available(description: Description) -> list[str]:
    """Return the analyses that a model has the sites for."""
    return [
        name
        for name, analysis in ANALYSES.items()
        if all(matching(known_sites(analysis, description), glob) for glob in analysis.needs)
        and analysis.reason_against(description) is None
    ]


def known_sites(analysis: Analysis, description: Description) -> tuple[str, ...]:
    """Return the sites that an analysis may read: all, or those of the stack that predicts."""
    if not analysis.is_of_prediction:
        return description.site_names
    other = "encoder." if description.config.has_decoder else "decoder."
    return tuple(site for site in description.site_names if not site.startswith(other))


@lru_cache(N_CACHED_GLOBS)
def matching(names: tuple[str, ...], glob: str) -> list[str]:
    """Return the names that a glob matches; matching again takes a tenth of a request."""
    return fnmatch.filter(names, glob)
