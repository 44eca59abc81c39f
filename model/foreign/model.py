"""`ForeignModel`: a checkpoint of Transformers that is served as the models of this project are."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from threading import Event, Thread
from typing import Any, Self

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from headlight.model import cancellation
from headlight.model.checkpoint.card import ModelCard
from headlight.model.checkpoint.files import CheckpointError
from headlight.model.checkpoint.steps import id_of
from headlight.model.config import RoutedExperts
from headlight.model.description import NO_LIMIT, Description, Pooling
from headlight.model.foreign import attention as attention_file
from headlight.model.foreign import logit_lens, matrices
from headlight.model.foreign.checks import Checked, check, restore
from headlight.model.foreign.decoding import Decoding, decoding_of, read_decoding
from headlight.model.foreign.folder import (
    ForeignFolder,
    Progress,
    no_progress,
    read_folder,
    read_weights,
    revision_of,
)
from headlight.model.foreign.generation import ForeignWriter
from headlight.model.foreign.graph import graph_weights
from headlight.model.foreign.installing import attention_mask, install
from headlight.model.foreign.loading import (
    build,
    class_of,
    config_of,
    import_alone,
    quiet,
    reason,
    set_attention,
    transformers_library,
    without_collection,
)
from headlight.model.foreign.naming import name_sites
from headlight.model.foreign.outputs import inputs_for, labels_of, predicts_of, task_in
from headlight.model.foreign.passes import Facts, ForeignPasses
from headlight.model.foreign.points import new_pass
from headlight.model.foreign.pooling import read_pooling
from headlight.model.foreign.positions import encoding_of, positional_of
from headlight.model.foreign.probe import Recorder, probe_inputs, probe_lengths, record
from headlight.model.foreign.readme import readme_card
from headlight.model.foreign.rotations import make_stateless
from headlight.model.foreign.routers import install_routers
from headlight.model.foreign.segments import TYPES
from headlight.model.foreign.sites import Named, rows_of
from headlight.model.foreign.tokenizer import read_tokenizer
from headlight.model.foreign.writes import reach_of
from headlight.model.hooks import Edit, gradient_leaves
from headlight.model.interventions.intervention import Intervention
from headlight.model.served import Explained, LinearExit, TextTokenizer, Weight
from headlight.model.trace import NamedArray
from headlight.model.weights import Weights

_READ, _BUILT = 0.6, 0.8
"""The shares of a load that are done when the weights are read, and the model is built."""


class ForeignModel(ForeignPasses, Explained):
    """A loaded checkpoint of Transformers; see `Served`.

    Made by `load_foreign`. ``module`` is the model of Transformers, ``points`` its hook points,
    ``checked`` what its self-check found, ``seconds`` how long a model in memory took
    to be served. A `with` block closes it.

    Args:
        passes: of the model.
        description: its metadata.
        tokenizer: of its texts; None: the model is asked by token ids only.
        checked: by its self-check.
        decoding: the settings of decoding of its folder.
    """

    def __init__(
        self,
        passes: ForeignPasses,
        description: Description,
        tokenizer: TextTokenizer | None,
        checked: Checked,
        decoding: Decoding,
    ) -> None:
        super().__init__(passes.module, passes.task, passes.named, passes.config, passes.avoided)
        self.batches, self.is_streamed = passes.batches, passes.is_streamed
        self.segments = passes.segments
        self._description, self._tokenizer = description, tokenizer
        self.checked, self.decoding, self.seconds = checked, decoding, 0.0

    def __repr__(self) -> str:
        checked = f", checked in {self.seconds:.1f} s" if self.seconds else ""
        size = f"{self.description.n_parameters / 1e6:.1f} M parameters"
        kind = f"{self.config.kind}, {size}{checked}"
        named = " ".join(dict.fromkeys([self.description.architecture, self.id]))
        return f"<{named}: {kind}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the weights; the model cannot be used any more."""
        self.__dict__.clear()

    def __getattr__(self, name: str) -> Any:
        """Refuse what a closed model lacks.

        Raises:
            ValueError: the model is closed.
            AttributeError: there is no such name.
        """
        if name.startswith("__") or "named" in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        raise ValueError("the model is closed; load it again")

    @property
    def id(self) -> str:
        """The name of the model, which is the name of its folder."""
        return self.description.id

    @property
    def description(self) -> Description:
        """The metadata."""
        return self._description

    @property
    def tokenizer(self) -> TextTokenizer:
        """The tokenizer.

        Raises:
            ValueError: the model was loaded without one.
        """
        if self._tokenizer is None:
            raise ValueError(f"the model '{self.id}' was loaded without a tokenizer")
        return self._tokenizer

    @property
    def layers(self) -> dict[str, nn.Module]:
        """As `Served.layers`."""
        return {layer.path: layer.call.module for layer in self.named.layers}

    @property
    def end_ids(self) -> frozenset[int]:
        """As `Served.end_ids`, by the settings of decoding of the folder."""
        return self.decoding.end_ids

    def translate(self, sources: Sequence[Sequence[int]]) -> list[list[int]]:
        """As `Served.translate`, greedily, each source by itself.

        The tokens are those of `generate(num_beams=1, do_sample=False)`.

        Raises:
            ValueError: the model is not an encoder–decoder, or its folder names no token that a
                target begins with.
            Cancelled: the translation was cancelled between two tokens (`cancellation`).
        """
        if self.task != "seq2seq":
            raise ValueError(f"a model of kind {self.config.kind!r} cannot translate")
        if reason := self.description.omitted.get("translate"):
            raise ValueError(reason)
        translations = []
        for source in sources:
            ids = torch.tensor([list(source)], device=self.device)
            with torch.inference_mode(), new_pass(), quiet():
                out = self.module.generate(
                    input_ids=ids,
                    attention_mask=torch.ones_like(ids),
                    streamer=_Checks(),
                    max_new_tokens=self.decoding.longest(len(source), self.config.max_tokens),
                    num_beams=1,
                    do_sample=False,
                )
            translations.append(self.decoding.written(out[0].tolist()))
        return translations

    def writer(self, interventions: Sequence[Intervention] = ()) -> ForeignWriter:
        """As `Served.writer`.

        Raises:
            ValueError: the model cannot generate.
        """
        if "generate" not in self.description.features:
            reason = self.description.omitted.get("generate", "it is not a decoder")
            raise ValueError(f"the model '{self.id}' cannot generate: {reason}")
        use_cache = "cache" not in self.description.omitted
        return ForeignWriter(self, use_cache=use_cache, interventions=interventions)

    # --- parts -----------------------------------------------------------------------------------

    def exits(
        self, stack: str, streams: Iterable[Float[np.ndarray, "query d_model"]]
    ) -> Iterator[Float[np.ndarray, "query vocab"]]:
        """As `Served.exits`."""
        if reason := self.description.omitted.get("logit_lens"):
            raise ValueError(reason)
        return logit_lens.exits(self, streams)

    def linear_exit(
        self, stack: str, stream: Float[np.ndarray, " d_model"], tokens: Sequence[int]
    ) -> LinearExit:
        """As `Served.linear_exit`.

        Raises:
            ValueError: the end of the model is not a norm and a matrix, or cannot be run by itself.
        """
        if reason := self.description.omitted.get("logit_lens"):
            raise ValueError(reason)
        linear = logit_lens.linear_exit(self, stream, tokens)
        reach = {path: factor.numpy() for path, factor in reach_of(self.named, stack).items()}
        return linear._replace(reach=reach)

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
        """As `Served.gradients`."""
        with (
            torch.inference_mode(False),
            torch.enable_grad(),
            gradient_leaves(self.points, sites) as leaves,
            self.passing(1, interventions),
        ):
            inputs = self.inputs_of([text], [target] if target else None)
            logits = self.output(inputs)[0, position].float()
            difference = logits[tokens[0]] - logits[tokens[1]]
            by_leaf = torch.autograd.grad(difference, list(leaves.values()))
        return dict(zip(leaves, by_leaf, strict=True))

    def run(
        self,
        texts: Sequence[Sequence[int]],
        targets: Sequence[Sequence[int]] | None,
        *,
        edits: Iterable[tuple[str, Edit]],
        interventions: Sequence[Intervention] = (),
    ) -> Float[Tensor, "row query vocab"]:
        """As `Served.run`."""
        with ExitStack() as stack:
            stack.enter_context(self.passing(len(texts), interventions))
            for site, edit in edits:
                stack.enter_context(self.points.edit(site, edit))
            return self.output(self.inputs_of(texts, targets))

    def graph_weights(self) -> Weights:
        """As `Served.graph_weights`."""
        return graph_weights(self)

    def output_weights(self, path: str) -> NamedArray:
        """As `Served.output_weights`."""
        by_head = matrices.output_weights(self.named, path)
        return NamedArray(("head", "d_head", "d_model"), by_head.float().cpu().numpy())

    def weights(self) -> dict[str, Weight]:
        """As `Served.weights`."""
        return matrices.weights(self.module, self.named)

    def positions(self, n: int) -> dict[str, NamedArray]:
        """As `Served.positions`."""
        return encoding_of(self, n, self.description.rotation)


class _Checks:
    """Ends `generate` between two tokens if it was cancelled."""

    def put(self, _: Tensor) -> None:
        cancellation.check()

    def end(self) -> None:
        pass


# --- loading --------------------------------------------------------------------------------------


def load_foreign(
    folder: Path | str,
    *,
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float32,
    on_progress: Progress = no_progress,
    kept: tuple[str, Checked] | None = None,
    recall: Callable[[str], Checked | None] = lambda _: None,
    is_alone: bool = False,
) -> ForeignModel:
    """Load a checkpoint of Transformers, name its sites, and check them.

    Args:
        folder: with config.json, safetensors files and tokenizer.json.
        device: of the weights.
        dtype: float32 or bfloat16.
        on_progress: called with the share of the work that is done.
        kept: the revision of the same files and what a self-check of them found; the numbers are
            then not checked again. None: they are, unless `recall` knows their revision.
        recall: returns what a self-check of files of this revision found; None: there was none.
        is_alone: this process runs a server and nothing else; see `import_alone`.

    Raises:
        MissingExtra: Transformers is not installed.
        CheckpointError: a file is missing, damaged or refused, or the model has no attention
            that could be named and checked; the message names the file and the reason.
    """
    files = read_folder(folder)
    known, checked = kept or (None, None)
    with without_collection(), _reading(files, dtype, on_progress, known) as (weights, revision):
        if is_alone:
            import_alone()
        config = config_of(files)  # imports Transformers
        task, kind = class_of(files, config)
        decoding = read_decoding(files, config, task)
        tokenizer = read_tokenizer(files, config, decoding.start_ids)
        module = build(files, kind, config, dtype, weights).to(device)
        on_progress(_BUILT)
        return serve_module(
            module,
            task,
            id_of(files.path.resolve()),
            tokenizer,
            card=readme_card(files.path),
            revision=revision(),
            checked=checked or recall(revision()),
            decoding=decoding,
            pooling=read_pooling(files.path, config) if task == "vector" else None,
        )


@contextmanager
def _reading(
    folder: ForeignFolder, dtype: torch.dtype, on_progress: Progress, known: str | None
) -> Iterator[tuple[Callable[[], dict[str, Tensor]], Callable[[], str]]]:
    """Read the weights and hash the files in a thread while Transformers is imported.

    Files of a known revision are mapped into memory and not read here.
    """
    if known is not None:
        yield partial(read_weights, folder, dtype, is_finite=True), lambda: known
        return
    is_given_up = Event()

    def progress(share: float) -> None:
        if is_given_up.is_set():
            raise CheckpointError(f"{folder.path}: given up")
        on_progress(share * _READ)

    weights: Future[dict[str, Tensor]] = Future()
    revision: Future[str] = Future()

    def work() -> None:
        try:
            weights.set_result(read_weights(folder, dtype, progress))
            revision.set_result(revision_of(folder))
        except BaseException as error:
            (revision if weights.done() else weights).set_exception(error)

    # A daemon: a process that ends does not wait for a stranger's files, as it does for executors.
    Thread(target=work, name="weights", daemon=True).start()
    try:
        yield weights.result, revision.result
    finally:
        is_given_up.set()


def serve_module(
    module: Any,
    task: str,
    name: str,
    tokenizer: TextTokenizer | None = None,
    *,
    card: ModelCard | None = None,
    revision: str = "",
    checked: Checked | None = None,
    decoding: Decoding | None = None,
    pooling: tuple[Pooling | None, str] | None = None,
) -> ForeignModel:
    """Serve a model of Transformers that is in memory: name its sites and check them.

    Args:
        module: in eval mode.
        task: one of `loading.TASKS`.
        name: its id.
        tokenizer: of its texts; None: the model is asked by token ids only.
        card: of the model; None: a card without prose.
        revision: of the weights.
        checked: by an earlier self-check of the same files; None: they are checked now.
        decoding: the settings of decoding of its folder; None: those of the module.
        pooling: of a model of vectors, or why there is none; None: the mean.

    Raises:
        CheckpointError: it has no attention that could be named and checked.
    """
    _register()
    task = task_in(task, module.config)
    labels = labels_of(module.config, task, name)
    module.requires_grad_(requires_grad=False)
    make_stateless(module)
    avoided = special_ids(module.config)
    text = module.config.get_text_config()
    decoding = _set_decoding(module, task, name, decoding)
    inputs = probe_inputs(task, text.vocab_size, avoided, next(module.parameters()).device)
    try:
        recorded = _recorded(module, inputs, task)
        named = name_sites(module, task, recorded)
    except Exception as error:  # whatever a model file does
        kind = type(module).__name__
        raise CheckpointError(
            f"{name}: the first pass of a {kind} fails, so it cannot be watched: {reason(error)}"
        ) from error
    install(named)
    install_routers(named)
    config = _facts(named, text, positional_of(named, recorded))
    passes = ForeignPasses(module, task, named, config, avoided)
    try:
        if checked is not None and restore(passes, checked):
            result = checked
        else:
            result = check(passes, name, recorded, inputs)
    except CheckpointError:
        raise
    except Exception as error:
        raise CheckpointError(
            f"{name}: the self-check of a {type(module).__name__} fails: {reason(error)}"
        ) from error
    for hook in named.hooks:  # the recorded tensors are not needed any more
        hook.call.inputs, hook.call.outputs = [], []
    named.attention_points = [(None, points) for _, points in named.attention_points]
    lacking = _lacking(task, tokenizer, config, decoding)
    pool, why = pooling or (Pooling() if task == "vector" else None, "")
    if why:
        lacking["vector"] = why
    description = Description(
        id=name,
        config=config,
        card=card or ModelCard(title=name, licence="unknown"),
        revision=revision,
        n_parameters=sum(parameter.numel() for parameter in module.parameters()),
        sites=passes.points.sites,
        attentions=named.facts,
        rotation=result.rotation,
        architecture=type(module).__name__,
        features=_features(passes, tokenizer, result) - lacking.keys(),
        omitted=result.omitted | lacking,
        checks=result.measured,
        matrices=tuple(passes.matrices),
        is_streamed=passes.is_streamed,
        predicts=predicts_of(task),
        labels=labels,
        pooling=pool,
    )
    return ForeignModel(passes, description, tokenizer, result, decoding)


def _features(passes: ForeignPasses, tokenizer: Any, result: Checked) -> frozenset[str]:
    """Return what a model can do; let one that reads pairs embed the types of their tokens."""
    features = set(result.features)
    if tokenizer is not None and tokenizer.mask_id is None:
        features.discard("fill")
    if passes.task == "causal" and getattr(tokenizer, "chat", None):
        features.add("chat")
    segments = getattr(tokenizer, "segments", None)
    if segments is not None and passes.task not in ("causal", "seq2seq"):
        features.add("pairs")
        if TYPES in inspect.signature(passes.module.forward).parameters:
            passes.segments = segments
    return frozenset(features)


def _lacking(
    task: str, tokenizer: TextTokenizer | None, config: Any, decoding: Decoding
) -> dict[str, str]:
    """Return why the files of a model leave something out, by its name."""
    lacking = {}
    if tokenizer is not None and tokenizer.vocab_size > config.vocab_size:
        lacking["tokenizer"] = (
            f"it has {tokenizer.vocab_size:,} tokens, the model {config.vocab_size:,}: a text with "
            "one of the others cannot be read"
        )
    if task == "seq2seq" and not decoding.start_ids:
        lacking["translate"] = "the folder names no token that a target begins with"
    if decoding.note:
        lacking["generation_config"] = decoding.note
    return lacking


def _set_decoding(module: Any, task: str, name: str, decoding: Decoding | None) -> Decoding:
    """Let `generate` of a module follow the settings of its folder, and return them."""
    if decoding is None:
        config = getattr(module, "generation_config", None)
        decoding = decoding_of(config.to_dict() if config else {}, module.config, task, name)
    if task == "seq2seq":
        library = transformers_library()
        start = dict(zip(("decoder_start_token_id",), decoding.start_ids, strict=False))
        module.generation_config = library.GenerationConfig(**{**decoding.settings, **start})
    return decoding


def special_ids(config: Any) -> frozenset[int]:
    """Return the ids of a config that may change how a text is read, as that of padding does."""
    ids: set[int] = set()
    for name, value in config.get_text_config().to_dict().items():
        if name.endswith("token_id"):
            values = value if isinstance(value, list) else [value]
            ids |= {token for token in values if type(token) is int}
    return frozenset(ids)


def _register() -> None:
    library = transformers_library()
    masks = import_module("transformers.masking_utils")
    library.AttentionInterface.register(attention_file.NAME, attention_file.attend)
    for name in (attention_file.NAME, "eager"):  # older files make theirs by that name
        masks.AttentionMaskInterface.register(name, partial(attention_mask, masks.eager_mask))


def _recorded(module: Any, inputs: dict[str, Any], task: str) -> Recorder:
    """Return a pass by the attention interface or, if the file does not call it, without."""
    if module._can_set_attn_implementation():
        set_attention(module, attention_file.NAME)
        recorded = record(module, inputs_for(task, inputs), probe_lengths(task))
        if any(attention.has_interface for attention in recorded.attentions):
            return recorded
    set_attention(module, "eager")
    return record(module, inputs_for(task, inputs), probe_lengths(task))


def _facts(named: Named, config: Any, positional: str) -> Facts:
    heads = [facts.n_heads for facts in named.facts]
    moe = None
    if named.experts:
        moe = RoutedExperts(
            n_experts=max(count for count, _ in named.experts.values()),
            top_k=max(chosen for _, chosen in named.experts.values()),
            layers=tuple(sorted({int(path.split(".")[2]) for path in named.experts})),
        )
    widths = [
        point.sizes["d_head"] for name, point in named.points.items() if name.endswith("queries")
    ]
    return Facts(
        kind=named.kind,
        n_layers=named.n_layers,
        n_heads=min(heads),
        n_groups=named.facts[0].n_groups,
        d_model=named.d_model,
        d_head=widths[0] if widths else named.d_model // min(heads),
        d_ff=named.d_ff,
        vocab_size=config.vocab_size,
        max_tokens=_max_tokens(named, config),
        positional=positional,
        norm=named.norm,
        norm_place=named.norm_place,
        activation=named.activation,
        moe=moe,
    )


def _max_tokens(named: Named, config: Any) -> int:
    tables = [len(rows_of(table)) - start for table, start in named.tables.values()]
    if tables:
        return min(tables)
    for name in ("max_position_embeddings", "n_positions", "max_seq_len", "max_sequence_length"):
        length = getattr(config, name, None)
        if (
            isinstance(length, int)
            and length > 0
            and not (name == "n_positions" and named.has_bias)
        ):
            return length
    return NO_LIMIT
