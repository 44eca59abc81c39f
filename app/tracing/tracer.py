"""What a trace or tokenize request asks of a model: its text checked, its order solved."""

from collections.abc import Sequence

from headlight.errors import Problem, over_limit
from headlight.model.trace import Token
from headlight.registry import Registry
from headlight.schemas.traces import TokenizeRequest, TraceRequest
from headlight.serialization.trace import Answer
from headlight.settings import Settings
from headlight.tracing.batch import Batch
from headlight.tracing.jobs import Order, order_of
from headlight.tracing.refusals import told_as_problems


class Tracer:
    """Answers trace and tokenize requests; every call blocks, so it belongs off the event loop.

    Args:
        registry: the models.
        settings: the limits.
    """

    def __init__(self, registry: Registry, settings: Settings) -> None:
        self.registry = registry
        self.settings = settings

    def tokenize(self, request: TokenizeRequest) -> tuple[str, Sequence[Token]]:
        """The model's id and the text's tokens, however many.

        Raises:
            Problem: the text is empty or too long, or the model is unknown.
        """
        self.check_text(request.text)
        checkpoint = self.registry.checkpoint(request.model)
        return checkpoint.id, checkpoint.tokenizer.encode(request.text)

    def order(self, request: TraceRequest) -> Order:
        """What a request asks for, before anything is computed; its model need not be loaded.

        Raises:
            Problem: the text is empty or too long, or something asked for is unknown.
        """
        self.check_text(request.text)
        if request.target is not None:
            self.check_text(request.target, "target")
        description = self.registry.describe(request.model)
        with told_as_problems():
            return order_of(request, description, self.registry.precision)

    def solve(self, orders: Sequence[Order]) -> list[Answer | Exception]:
        """The traces of orders of one kind, or why there is none.

        Raises:
            Problem: 503 where the model's weights turn out to be damaged.
        """
        checkpoint = self.registry.checkpoint(orders[0].model)
        return Batch(checkpoint, orders, self.settings.max_cells).solve()

    def trace(self, request: TraceRequest) -> Answer:
        """The trace that was asked for, with its analyses.

        Raises:
            Problem: the text or the answer would be too long, or something asked for is unknown.
        """
        (answer,) = self.solve([self.order(request)])
        if isinstance(answer, Exception):
            raise answer
        return answer

    def check_text(self, text: str, what: str = "text") -> None:
        """Refuse a text that is empty or too long, before anything else touches it.

        Args:
            text: what was sent.
            what: what an error calls it.

        Raises:
            Problem: 422.
        """
        limit = self.settings.max_characters
        if len(text) > limit:
            way_out = f"send a shorter {what}"
            raise over_limit("characters", limit=limit, actual=len(text), way_out=way_out)
        if not text.strip():
            raise Problem(422, "empty-text", f"the {what} is empty; send at least one word")
