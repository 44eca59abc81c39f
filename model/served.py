"""The protocol of a model that can be traced, generated from and analysed.

`Served` is implemented by `checkpoint.Checkpoint`, a model of this project, and by
`foreign.ForeignModel`, a checkpoint of another library. Tracing, generation, analyses and the
application know no more of a model than this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from headlight.model import notebook
from headlight.model.config import Architecture
from headlight.model.description import Description
from headlight.model.hooks import Edit
from headlight.model.interventions.intervention import Intervention
from headlight.model.trace import Message, NamedArray, Token

if TYPE_CHECKING:
    from headlight.model.weights import Weights

PADDING_ID = 0


class UnwatchedPass(ValueError):
    """A pass went another way through a foreign model than the passes of its self-check."""


@runtime_checkable
class TextTokenizer(Protocol):
    """Cuts a text into the tokens that a model reads, and back."""

    @property
    def end_id(self) -> int | None:
        """The token after which a text ends; None: there is none."""

    @property
    def mask_id(self) -> int | None:
        """The token that replaces a hidden one; None: there is none."""

    @property
    def vocab_size(self) -> int:
        """The number of tokens, special ones included."""

    def encode(self, text: str) -> list[Token]:
        """Return the tokens of a text with the special tokens that the model expects around it.

        Raises:
            ValueError: the text cannot be encoded.
        """

    def encode_read(self, text: str) -> list[Token]:
        """Return the tokens of a text in which a typed special token is that token.

        Raises:
            NoSpecialTokens: the model has none to type.
        """

    def encode_messages(self, messages: Sequence[Message]) -> tuple[str, list[Token]]:
        """Return the text that the model's chat template makes of messages, and its tokens.

        Raises:
            NoChat: there is no template, or it rejects the messages.
        """

    def encode_pair(self, text: str, pair: str) -> tuple[str, list[Token]]:
        """Return two texts on two lines, and their tokens, whose roles say which text is theirs.

        Raises:
            NoPair: the model reads one text.
        """

    def encode_target(self, text: str) -> list[Token]:
        """Return the tokens that an encoder–decoder's decoder reads for a target."""

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of the tokens; special tokens have none."""

    def text_of(self, token: int) -> str:
        """Return the text of one token."""

    def is_special(self, token: int) -> bool:
        """Return True if a token is special."""


class RowCapture(NamedTuple):
    """The captures of one row of a decoding step: globs, and the layers and heads to keep."""

    sites: Sequence[str]
    layers: Sequence[int] | None = None
    heads: Sequence[int] | None = None


@runtime_checkable
class Writer(Protocol):
    """Decodes texts token by token, with a cache of the tokens read so far."""

    @property
    def config(self) -> Architecture:
        """The architecture."""

    def new_cache(self) -> Any:
        """Return an empty cache of one text."""

    def n_cached(self, cache: Any) -> int:
        """Return the number of tokens in a cache."""

    def extend(self, cache: Any, ids: Sequence[int]) -> None:
        """Read tokens into a cache."""

    def step(
        self, caches: Sequence[Any], ids: Sequence[int], captures: Sequence[RowCapture]
    ) -> tuple[Float[Tensor, "row vocab"], list[dict[str, Tensor]]]:
        """Read one more token of each text, all in one pass.

        Args:
            caches: of the tokens before, which are extended.
            ids: the token of each text.
            captures: of each text.

        Returns:
            The logits after each token on the CPU, and for each text its captured tensors by site,
            without batch and query axes.

        Raises:
            UnknownSite, UnknownLayer, UnknownHead: the model has no such site, layer or head.
        """


class Weight(NamedTuple):
    """A trained matrix: the names and sizes of its axes, and a function that reads it."""

    axes: tuple[str, ...]
    shape: tuple[int, ...]
    read: Callable[[], Float[np.ndarray, "*axes"]]

    @classmethod
    def of(
        cls,
        axes: tuple[str, ...],
        tensor: Tensor,
        make: Callable[[Tensor], Tensor] = lambda matrix: matrix,
    ) -> Weight:
        """Return a matrix that is made of a parameter when it is read."""
        shape = make(torch.empty(tensor.shape, device="meta")).shape
        return cls(
            axes, tuple(shape), lambda: make(tensor.detach()).float().cpu().contiguous().numpy()
        )


class LinearExit(NamedTuple):
    """The logits of some tokens as a linear function of a stream: x·directionsᵀ + offsets.

    ``reach`` (d_model) has the factors by which the stream holds what a part at that path, or the
    embedding at ``{stack}.embedding``, wrote to it; 1 where it is missing. ``is_frozen``: a head
    with a curve is taken with its slope at this stream, so that a remainder is left.
    """

    directions: Float[np.ndarray, "token d_model"]
    offsets: Float[np.ndarray, " token"]
    reach: Mapping[str, Float[np.ndarray, " d_model"]] = {}
    is_frozen: bool = False


@runtime_checkable
class Served(Protocol):
    """A loaded model: its description, its tokenizer, and its passes."""

    @property
    def description(self) -> Description:
        """The metadata."""

    @property
    def tokenizer(self) -> TextTokenizer:
        """The tokenizer."""

    @property
    def id(self) -> str:
        """The name of the model."""

    @property
    def config(self) -> Architecture:
        """The architecture."""

    @property
    def device(self) -> torch.device:
        """The device of the weights."""

    @property
    def precision(self) -> str:
        """The dtype of the weights and of the pass: float32 or bfloat16."""

    def read(
        self,
        texts: Sequence[Sequence[int]],
        targets: Sequence[Sequence[int]] | None,
        *,
        sites: Sequence[str],
        heads: tuple[int, ...] | None = None,
        interventions: Sequence[Intervention] = (),
    ) -> Mapping[str, Tensor]:
        """Run one pass in which every text is a row, and keep the tensors of some sites.

        Args:
            texts: token ids; at least one text, of any lengths.
            targets: token ids that the decoder of an encoder–decoder reads, one for each text.
            sites: names of sites, validated.
            heads: of tensors with a head axis, only these; None: all.
            interventions: the changes to the pass, validated.

        Returns:
            By site, a tensor with the site's axes; shorter rows are padded at their end.

        Raises:
            Cancelled: the pass was cancelled between two layers (`cancellation`).
            ImpossibleIntervention: an intervention that shows only in the pass to be impossible.
            UnwatchedPass: a foreign model computes a text of this length in another way.
        """

    @property
    def layers(self) -> Mapping[str, nn.Module]:
        """The module of each layer by its path, in the order of a pass."""

    @property
    def end_ids(self) -> frozenset[int]:
        """The tokens after which a text that the model writes ends."""

    def translate(self, sources: Sequence[Sequence[int]]) -> list[list[int]]:
        """Return the ids that an encoder–decoder writes for each source, without specials.

        Raises:
            ValueError: the model is not an encoder–decoder.
        """

    def with_weights_of(
        self, interventions: Sequence[Intervention]
    ) -> AbstractContextManager[None]:
        """Make this thread compute with the weights that the interventions leave, inside the block.

        Needed by what reads weights outside a pass: `exits`, `output_weights` and `weights`.
        """

    def writer(self, interventions: Sequence[Intervention] = ()) -> Writer:
        """Return a writer of the model.

        Args:
            interventions: act in every pass of the writer, validated.

        Raises:
            ValueError: the model cannot generate, or not with interventions.
        """

    def exits(
        self, stack: str, streams: Iterable[Float[np.ndarray, "query d_model"]]
    ) -> Iterator[Float[np.ndarray, "query vocab"]]:
        """Return the logits of each stream of a stack, as if it left the last layer.

        Raises:
            ValueError: the model's exit cannot be run by itself.
        """

    def linear_exit(
        self, stack: str, stream: Float[np.ndarray, " d_model"], tokens: Sequence[int]
    ) -> LinearExit:
        """Return the logits of some tokens, with the scale of the final norm frozen at this stream.

        The function gives the model's logits at this stream, and is linear around it.

        Args:
            stack: the stack that predicts.
            stream: the residual stream that leaves its last layer at one position.
            tokens: ids.

        Raises:
            ValueError: the end of the model is not a norm and a matrix.
        """

    def gradients(
        self,
        text: Sequence[int],
        target: Sequence[int] | None,
        *,
        sites: Sequence[str],
        position: int,
        tokens: tuple[int, int],
        interventions: Sequence[Intervention],
    ) -> Mapping[str, Tensor]:
        """Return the gradient of a logit difference with respect to the tensors at some sites.

        Args:
            text: token ids.
            target: token ids that the decoder of an encoder–decoder reads.
            sites: names of sites, none of which lies before another in the pass.
            position: of the prediction.
            tokens: the ids whose logits are subtracted, the first minus the second.
            interventions: the changes to the pass, validated.

        Returns:
            By site, a tensor with the site's axes and a batch of 1.
        """

    def run(
        self,
        texts: Sequence[Sequence[int]],
        targets: Sequence[Sequence[int]] | None,
        *,
        edits: Iterable[tuple[str, Edit]],
        interventions: Sequence[Intervention] = (),
    ) -> Float[Tensor, "row query vocab"]:
        """Return the logits of a pass with functions at sites, in the caller's gradient mode.

        Args:
            texts: token ids, all of one length.
            targets: token ids that the decoder of an encoder–decoder reads, all of one length.
            edits: functions of the tensors at sites, which act after the interventions.
            interventions: the changes to the pass, validated.
        """

    def graph_weights(self) -> Weights:
        """Return the norms and matrices of the graph (`headlight.model.weights`)."""

    def output_weights(self, path: str) -> NamedArray:
        """Return W_O of the attention at a path, by head: (head, d_head, d_model), float32.

        Times the factor, if there is one, by which the model multiplies what it adds to the stream.

        Raises:
            KeyError: the model has no such attention, or its output is not a product by heads.
        """

    def weights(self) -> Mapping[str, Weight]:
        """Return the trained matrices by name; of attention, by head.

        ``{attention}.W_Q``, ``.W_K``, ``.W_V`` (head, d_model, d_head), ``.W_O`` (head, d_head,
        d_model), their biases ``.b_Q`` …, ``.b_O``, and ``.norm_scale``, ``.norm_shift`` (d_model)
        of the norm at the attention; ``{stack}.norm_scale``, ``.norm_shift`` of a stack's final
        norm; ``{stack}.embedding.W_E`` (vocab, d_model), ``.W_pos`` (position, d_model); ``W_U``
        (vocab, d_model). Shared keys and values are repeated for each head. A foreign model has no
        norms.

        Raises:
            ValueError: the model cannot offer them; the message gives the reason.
        """

    def positions(self, n: int) -> dict[str, NamedArray]:
        """Return the encoding of the positions 0 … n−1, named as in `headlight.model.positions`.

        Raises:
            ValueError: the model encodes no positions, or fewer.
        """


class Explained:
    """A loaded model that says why."""

    def why(self, text: str, target: str | None = None, **choices: Any) -> Any:
        """Say which head spoke for the next word, and why it looked where it did, step by step.

            headlight.load("stories").why("The red fox ran. The blue dog sat. The red")

        Args:
            text: the text.
            target: of an encoder–decoder.
            choices: ``position`` of the prediction, the last if omitted; ``token`` and ``against``,
                ids or texts: the word to explain, and its rival.

        Returns:
            A `headlight.client.thread.Why`: its `repr` are the lines, `show()` is the page.

        Raises:
            ValueError: a token is none, or the model's heads are not known to speak for words.
        """
        return notebook.why(self, text, target, **choices)


class PaddedBatch(NamedTuple):
    """Token ids (row, token), padded at the end; ``is_token`` None: no row is padded."""

    ids: Int[Tensor, "row token"]
    is_token: Bool[Tensor, "row token"] | None


def pad(
    texts: Sequence[Sequence[int]], device: torch.device | None = None, padding_id: int = PADDING_ID
) -> PaddedBatch:
    """Pad texts to rows as long as the longest.

    A padded row gives the numbers of a pass by itself: no token of a causal row sees what comes
    after it, ``is_token`` hides the padding from everything else that attends, and experts route
    each token by itself.

    Args:
        texts: the ids of each; at least one text.
        device: of the result.
        padding_id: the token to pad with.
    """
    lengths = [len(text) for text in texts]
    longest = max(lengths)
    ids = [[*text, *[padding_id] * (longest - len(text))] for text in texts]
    rows = torch.tensor(ids, device=device)
    if min(lengths) == longest:
        return PaddedBatch(rows, None)
    ends = torch.tensor(lengths, device=device)[:, None]
    return PaddedBatch(rows, torch.arange(longest, device=device) < ends)
