"""Readiness: whether the default model is loaded and warm, and if not, why."""

import logging
import sys

from headlight.errors import Problem
from headlight.inference.crashes import is_crash
from headlight.log_format import TELLS_WHY
from headlight.registry import Registry
from headlight.schemas.traces import TraceRequest
from headlight.serialization.encoder import encode_checked
from headlight.serialization.formats import Form
from headlight.settings import Settings
from headlight.tracing.tracer import Tracer

WARM_UP_TEXT = "Once upon a time there was a little light."

NO_LIMITS = {"max_characters": sys.maxsize, "max_cells": sys.maxsize}

logger = logging.getLogger(__name__)


class Readiness:
    """What `/readyz` tells. Every change is one assignment, so any thread may make or read it.

    Args:
        registry: the models.
        settings: what the server was told.
    """

    def __init__(self, registry: Registry, settings: Settings) -> None:
        self.is_ready = False
        self.why_not = "the default model is being loaded"
        self.has_ended = False
        self._was_ready = False
        self._registry = registry
        # Not held to the limits for clients, which may be lower than a default trace needs.
        self._tracer = Tracer(registry, settings.model_copy(update=NO_LIMITS))

    def prepare(self) -> None:
        """Load the default model and trace once, so that no client waits for what is slow once.

        It blocks, so it belongs on the inference thread. A default model that is missing or damaged
        from the beginning leaves the server alive and not ready: others can be asked.

        Raises:
            BaseException: a crash, or what keeps a model from coming back that was there before.
        """
        self._registry.drop()
        try:
            encode_checked(self._tracer.trace(TraceRequest(text=WARM_UP_TEXT)), Form())
        except Exception as error:
            if self._was_ready or is_crash(error):
                raise
            self.why_not = f"the default model did not start: {_reason(error)}"
        else:
            self.is_ready = self._was_ready = True

    def lose(self, why: str) -> None:
        """Not ready from now on: the inference thread died."""
        self.why_not = f"the inference thread died ({why}); a new one is being prepared"
        self.is_ready = False

    def end(self, why: str) -> None:
        """Not ready for ever: no thread to compute on comes to life."""
        self.why_not = f"no thread to compute on comes to life any more ({why}); the server ends"
        self.is_ready = False
        self.has_ended = True


def _reason(error: Exception) -> str:
    if isinstance(error, Problem):
        logger.error("the default model did not start: %s", error.detail)
        return error.detail
    logger.error("the default model did not start", exc_info=error, extra=TELLS_WHY)
    return "the log says why"
