"""Orders of one kind on their way to answers: each checked, all read together, each analysed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import TypeVar

from headlight.model import tracing
from headlight.model.batching import share_out
from headlight.model.cancellation import check
from headlight.model.checkpoint import Checkpoint
from headlight.model.trace import Trace
from headlight.model.tracing import Plan
from headlight.serialization.trace import Analysis, Answer
from headlight.tracing.analyses import analyse
from headlight.tracing.cells import count_cells, require_cells
from headlight.tracing.jobs import Order
from headlight.tracing.refusals import told_as_problems

Item = TypeVar("Item")
Made = TypeVar("Made")


class Batch:
    """Orders that one pass can compute; what is wrong with one of them hits no other.

    What is on its way is kept by the order's place among the orders.

    Args:
        checkpoint: the model of all of them.
        orders: of one kind.
        max_cells: the most numbers that an answer, or all that a pass captures, may hold.
    """

    def __init__(self, checkpoint: Checkpoint, orders: Sequence[Order], max_cells: int) -> None:
        self.checkpoint = checkpoint
        self.orders = orders
        self.max_cells = max_cells
        self.failures: dict[int, Exception] = {}

    def solve(self) -> list[Answer | Exception]:
        """An answer to each order, or why there is none."""
        drafts = self._each(self._draft, dict(enumerate(self.orders)))
        plans = self._each(self._require_room, self._with_targets(drafts))
        answers = self._each(self._assemble, self._run(plans))
        return [
            self.failures[place] if place in self.failures else answers[place]
            for place in range(len(self.orders))
        ]

    def _each(
        self, step: Callable[[Order, Item], Made], items: Mapping[int, Item]
    ) -> dict[int, Made]:
        """What a step makes of each item; those that fail go no further."""
        made = {}
        for place, item in items.items():
            check()
            try:
                with told_as_problems():
                    made[place] = step(self.orders[place], item)
            except Exception as failure:
                self.failures[place] = failure
        return made

    def _draft(self, order: Order, _: Order) -> Plan:
        """The plan of an order, but for the translation that its decoder may have to read."""
        draft = tracing.draft(
            self.checkpoint,
            order.request.text,
            order.request.target,
            capture=order.captured,
            heads=order.request.heads,
            edits=order.edits,
        )
        if tracing.lacks_target(self.checkpoint, draft):
            # A translation takes time; is there room for the shortest, which is its start token?
            self._require_room(order, replace(draft, target_tokens=draft.tokens[:1]))
        return draft

    def _with_targets(self, drafts: Mapping[int, Plan]) -> dict[int, Plan]:
        complete = tracing.with_targets(self.checkpoint, list(drafts.values()))
        return dict(zip(drafts, complete, strict=True))

    def _require_room(self, order: Order, plan: Plan) -> Plan:
        """The plan, where all that it captures fits into an answer."""
        require_cells(self._count_cells(plan, order), self.max_cells)
        return plan

    def _count_cells(self, plan: Plan, order: Order) -> int:
        return count_cells(self.checkpoint.description, plan, order.captured, order.made)

    def _run(self, plans: Mapping[int, Plan]) -> dict[int, Trace]:
        """The traces; texts of similar lengths share a pass."""
        places = list(plans)
        passes = share_out(
            [plans[place].n_read for place in places],
            [self._count_cells(plans[place], self.orders[place]) for place in places],
            self.max_cells,
        )
        traces: dict[int, Trace] = {}
        for texts in passes:
            read = [places[text] for text in texts]
            made = tracing.run_batch(self.checkpoint, [plans[place] for place in read])
            traces.update(zip(read, made, strict=True))
        return traces

    def _assemble(self, order: Order, trace: Trace) -> Answer:
        began = perf_counter()
        analyses: dict[str, Analysis] = {}
        for name in order.request.wanted_analyses:
            check()
            analyses[name] = analyse(name, trace, self.checkpoint)
        took = 1e3 * (perf_counter() - began)
        tensors = {site: trace.tensors[site] for site in order.sites}
        timings = {**trace.timings, "analyses": took}
        return Answer(
            id=order.id,
            trace=replace(trace, tensors=tensors, timings=timings),
            analyses=analyses,
        )
