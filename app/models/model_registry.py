"""The registry of models: an allow-list of folders, read without their weights.

A model's id is its folder's name, in the zoo that ships or in `HEADLIGHT_MODELS_DIR`; nothing a
client sends becomes a path. Weights are loaded when a model is first used, and stay within a budget
of memory. A damaged folder is reported with its reason and does not affect the others.
"""

import gc
import logging
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import copy_context
from dataclasses import replace
from pathlib import Path
from threading import Lock, Thread
from typing import NamedTuple, TypeVar

import torch

from headlight.model.cancellation import Cancelled
from headlight.model.checkpoint.files import CONFIG, CheckpointError
from headlight.model.checkpoint.loading import describe, load, way_to_the_zoo
from headlight.model.checkpoint.profile import HEADS, read_profile
from headlight.model.checkpoint.steps import AT, read_states, steps_in
from headlight.model.description import Description
from headlight.model.device import choose_device, choose_precision, is_out_of_memory
from headlight.model.foreign.folder import is_foreign
from headlight.model.served import Served
from headlight.models.memory import ModelMemory, NoRoom, budget_of, pass_bytes_of
from headlight.models.staging import remove_leftovers
from headlight.problems import Problem, echo, service_unavailable
from headlight.schemas.traces import MAX_MODEL_ID_CHARACTERS
from headlight.serving.engine import is_fatal
from headlight.settings import Settings

logger = logging.getLogger(__name__)

CHECKS = ".checks"
"""The directory of the results of self-checks, in the user's models directory."""
MODEL_NAME = re.compile(r"\w[\w .+-]*")
MAX_REASON_CHARACTERS = 300
DESCRIBE_SECONDS = 10.0
"""How long the small files of one folder may take to be read: usually milliseconds."""

Result = TypeVar("Result")


class ModelStatus(NamedTuple):
    """The state of a model: ``loaded``, ``loading`` or ``not_loaded``.

    ``progress`` is the share of loading that is done, in 0 … 1; ``memory_bytes`` is the memory of
    the weights. ``is_checked``: the sites of the description are those of a self-check.
    """

    state: str
    progress: float
    memory_bytes: int
    is_checked: bool


class Registry:
    """Models by id: the sub-folders of `parents`; of two equal names the first counts.

    Args:
        parents: directories of models; those that are missing are skipped.
        default: the id of the model for requests that name none.
        device: of the weights.
        precision: of the weights.
        memory: of the loaded models.
        pass_bytes: the bytes of a model's largest pass; None: they are not counted.
        checks: the directory that keeps the results of self-checks; None: they are not kept.
        is_lazy: read each folder when its model, or the list of all, is asked for.

    ``is_alone`` is set by a process that runs a server and nothing else (`load_foreign`).
    """

    def __init__(
        self,
        parents: Iterable[Path],
        *,
        default: str,
        device: torch.device,
        precision: torch.dtype = torch.float32,
        memory: ModelMemory | None = None,
        pass_bytes: Callable[[Description], int] | None = None,
        checks: Path | None = None,
        is_lazy: bool = False,
    ) -> None:
        self.default = default
        self.is_alone = False
        self.device = device
        self.precision = precision
        self.memory = memory or ModelMemory()
        self._pass_bytes = pass_bytes or (lambda _: 0)
        self.descriptions: dict[str, Description] = {}
        self.unavailable: dict[str, str] = {}
        self._checks = checks
        self._parents = tuple(parents)
        self._folders: dict[str, Path] = {}
        self._wholes: dict[str, Path] = {}
        self._foreign: set[str] = set()
        self._unchecked: set[str] = set()
        self._profiled: dict[str, list[int]] = {}
        self._loading: dict[str, float] = {}
        self._load_locks: defaultdict[str, Lock] = defaultdict(Lock)
        self._lock = Lock()
        self._refreshing = Lock()
        self._adopted = ExitStack()
        self._seen: list[int] | None = None  # nothing was read yet
        if not is_lazy:
            self.refresh()

    @property
    def ids(self) -> frozenset[str]:
        """The ids of all models, including damaged ones."""
        return frozenset(self._folders) | self._found().keys()

    @property
    def listed(self) -> list[Description]:
        """The descriptions of all models, without the states of their trainings."""
        if self._seen is None:
            self.refresh()
        return [each for model, each in self.descriptions.items() if AT not in model]

    def _found(self, level: int = logging.DEBUG) -> dict[str, Path]:
        """Return the folders in the directories by name, of two equal names the first."""
        found: dict[str, Path] = {}
        for parent in self._parents:
            try:
                folders = [path for path in sorted(parent.iterdir()) if path.is_dir()]
            except OSError as error:
                if not isinstance(error, FileNotFoundError):
                    why = error.strerror
                    logger.log(level, "%s cannot be searched for models: %s", parent, why)
                continue
            for folder in folders:
                if folder.name.startswith((".", "_")):
                    continue
                if found.setdefault(folder.name, folder) is not folder:
                    name = _shown(str(folder))
                    logger.log(level, "%s is left out: there is a model of that name", name)
        return found

    def add(self, folder: Path) -> None:
        """Add the model in a folder; it replaces a model of the same id.

        A folder that holds nothing but states of a training, as those of Pythia, is its last one.
        """
        if folder.name in self._folders:
            self._remove(folder.name)
        self._add(folder)

    def _add(self, folder: Path) -> None:
        steps = {} if (folder / CONFIG).exists() else steps_in(folder)
        self._describe(folder.name, [folder, *steps.values()][-1], folder)

    def adopt(self, served: Served) -> None:
        """Add a model that is in memory, in place of one of its id; it is the default and stays."""
        model = self.default = served.description.id
        with self._lock:
            self.memory.drop(model)
            self._folders.setdefault(model, Path(model))
            self.descriptions = {**self.descriptions, model: served.description}
            self.memory.reserve(model, 0)
            self.memory.put(model, served)
        self._adopted.enter_context(self.memory.using(model))

    def _add_step(self, model: str) -> None:
        """Add a state of a model's training, once it is asked for, if there is one."""
        whole, _, step = model.rpartition(AT)
        folder = self._wholes.get(whole)
        if folder and step.isdecimal() and (found := steps_in(folder).get(int(step))):
            self._describe(model, found)

    def has_changed(self) -> bool:
        """Return True if folders were added to or removed from the directories since `refresh`."""
        return self._seen != _changes(self._parents) or any(
            _changes([folder / HEADS]) != self._profiled.get(model)
            for model, folder in list(self._folders.items())
        )

    def refresh(self) -> None:
        """Add the models whose folders are new, drop those that are gone, remove half-made ones."""
        with self._refreshing:
            for parent in self._parents:
                remove_leftovers(parent)
            seen = _changes(self._parents)
            folders = self._found(logging.WARNING if self._seen is None else logging.DEBUG)
            for name, folder in folders.items():
                if name not in self._folders:
                    self.add(folder)
            for name, folder in list(self._folders.items()):
                if self._wholes.get(name, folder).parent in self._parents and name not in folders:
                    self._remove(name)
                elif _changes([folder / HEADS]) != self._profiled.get(name):
                    self.renew_profile(name)
            order = [*folders, *self._folders]
            known = sorted(self.descriptions.items(), key=lambda each: order.index(each[0]))
            self.descriptions, self._seen = dict(known), seen

    def folder(self, model: str) -> Path:
        """Return the folder of a model that is described."""
        return self._folders[model]

    def renew_profile(self, model: str) -> None:
        """Read the profile of a model's heads again: it was measured since."""
        folder = self._folders[model]
        self._profiled[model] = _changes([folder / HEADS])
        if (known := self.descriptions.get(model)) is None:
            return
        try:
            heads = read_profile(folder, known.revision)
        except CheckpointError as error:
            self._give_up(model, error)
            return
        self.descriptions = {**self.descriptions, model: replace(known, heads=heads)}

    def describe(self, model: str | None = None) -> Description:
        """Return the description of a model, from its folder; of the default one for None.

        Raises:
            Problem: 404, there is no such model; 503, its folder is damaged.
        """
        model = self.default if model is None else model
        whole = model.partition(AT)[0]
        is_unread = self._seen is None and whole not in self.descriptions | self.unavailable
        if is_unread and (folder := self._found().get(whole)):
            self._add(folder)
        if reason := self.unavailable.get(model):
            raise Problem(503, "model-unavailable", f"the model '{model}' cannot be used: {reason}")
        if AT in model and model not in self._folders:
            self._add_step(model)
            return self.describe(model) if model in self._folders else self._no_step(model)
        if model not in self.descriptions:
            raise _unknown_model(model, [each.id for each in self.listed])
        return self.descriptions[model]

    def _no_step(self, model: str) -> Description:
        whole, _, step = model.rpartition(AT)
        available = [str(each["step"]) for each in self.describe(whole).steps]
        steps = f"its steps are {', '.join(available)}" if available else "it has no steps"
        detail = f"the model {echo(whole)} has no step {echo(step)}; {steps}"
        raise Problem(404, "unknown-model", detail, available=available)

    @property
    def max_tokens(self) -> dict[str, int]:
        """The longest text that each model reads, by id."""
        return {description.id: description.config.max_tokens for description in self.listed}

    def checkpoint(self, model: str | None = None) -> Served:
        """Return the model itself, loaded on first use; the default one for None.

        Raises:
            Problem: as `describe`; 503, the weights cannot be loaded or do not fit into the memory.
        """
        model = self.describe(model).id
        if (loaded := self.memory.get(model)) is not None:
            return loaded
        with self._lock:
            lock = self._load_locks[model]
        with lock:
            if self._load_locks.get(model) is lock:
                return self.memory.get(model) or self._load(model, lock)
        return self.checkpoint(model)  # the load was given up, and the reason is raised

    def give_up(self, model: str, reason: str) -> None:
        """Stop waiting for a model that is being loaded, and list it with the reason.

        What its thread still does has no effect, and nothing waits for it.
        """
        with self._lock:
            self._load_locks.pop(model, None)
            if model not in self._folders:
                return
            self._loading.pop(model, None)
            self.memory.drop(model)
            self._give_up(model, CheckpointError(reason))
        gc.enable()  # a load pauses it

    def _check_wanted(self, model: str, lock: Lock) -> None:
        """Raise `Cancelled` if the load that holds a lock was given up."""
        if self._load_locks.get(model) is not lock:
            raise Cancelled

    @contextmanager
    def using(self, model: str | None) -> Iterator[str]:
        """Keep a model in memory for the block, from when it is loaded; the value is its id.

        Raises:
            Problem: as `describe`.
        """
        model = self.describe(model).id
        with self.memory.using(model):
            yield model

    def is_loaded(self, model: str) -> bool:
        """Return True if the model is in memory, so that `checkpoint` need not load it."""
        return model in self.memory

    def own_folder(self, model: str) -> Path | None:
        """Return the folder of a model of Headlight; None for another library's model."""
        return None if model in self._foreign else self._folders.get(model)

    def is_foreign(self, model: str) -> bool:
        """Return True for another library's model, which takes seconds to load and to check."""
        return model in self._foreign

    def status(self, model: str) -> ModelStatus:
        """Return the state of a model that is described."""
        progress = self._loading.get(model)
        state = "not_loaded" if progress is None else "loading"
        if model in self.memory:
            state, progress = "loaded", 1.0
        n_bytes = self._bytes_of(self.descriptions[model])
        return ModelStatus(state, progress or 0.0, n_bytes, model not in self._unchecked)

    def _bytes_of(self, description: Description) -> int:
        return description.n_parameters * self.precision.itemsize

    def _describe(self, model: str, folder: Path, whole: Path | None = None) -> None:
        """Read the description of a model from its folder, and its steps from that of the whole."""
        self._folders[model] = folder
        self._profiled[model] = _changes([folder / HEADS])
        try:
            description, is_other, is_checked = within(DESCRIBE_SECONDS, _described, folder)
            if whole is not None:
                self._wholes[model] = whole
                card = description.card
                if card.title == folder.name:  # a state without a card is named by its folder
                    card = replace(card, title=whole.name)
                description = replace(description, id=model, steps=read_states(whole), card=card)
            elif known := self.descriptions.get(model.rpartition(AT)[0]):
                card = replace(known.card, metrics={}, training=description.card.training)
                description = replace(description, card=card, steps=known.steps)
            if is_other:
                self._foreign.add(model)
            if not is_checked:
                self._unchecked.add(model)
            self.descriptions = {**self.descriptions, model: description}
        except Exception as error:  # whatever is wrong with one folder, the others go on
            is_default = model == self.default  # its error is raised where it is asked for
            self._give_up(model, error, logging.DEBUG if is_default else logging.WARNING)

    def _load(self, model: str, lock: Lock) -> Served:
        folder, known = self._folders[model], self.descriptions[model]
        try:
            self.memory.reserve(model, self._bytes_of(known), self._pass_bytes(known))
        except NoRoom as error:
            raise _no_room(model, error) from error
        self._loading[model] = 0.0
        try:
            served = self._read(model, folder, lock)
            description = served.description
            if model in self._foreign:
                heads = read_profile(folder, description.revision)
                # The self-check makes no card, and a profile may be of other weights.
                steps = known.steps
                description = replace(
                    description, id=model, card=known.card, heads=heads, steps=steps
                )
            with self._lock:
                self._check_wanted(model, lock)
                if model in self._foreign:
                    self.descriptions = {**self.descriptions, model: description}
                    self._unchecked.discard(model)
                self.memory.put(model, served)
        except BaseException as error:  # memory may be short, or the device may lack a dtype
            self._check_wanted(model, lock)
            self.memory.drop(model)
            is_other = is_fatal(error) and not is_out_of_memory(error)
            if is_other or not isinstance(error, Exception):
                raise  # it says nothing of this folder
            self._give_up(model, error)
            self.describe(model)  # raises
            raise
        finally:
            if self._load_locks.get(model) is lock:
                self._loading.pop(model, None)
        return served

    def _read(self, model: str, folder: Path, lock: Lock) -> Served:
        def progress(share: float) -> None:
            self._check_wanted(model, lock)
            self._loading[model] = share

        if model not in self._foreign:
            return load(folder, device=self.device, dtype=self.precision)
        from headlight.models.foreign import load_checked

        return load_checked(
            folder,
            self._checks,
            device=self.device,
            dtype=self.precision,
            on_progress=progress,
            is_alone=self.is_alone,
        )

    def _remove(self, model: str) -> None:
        for step in [each for each in self._folders if each.startswith(f"{model}{AT}")]:
            self._remove(step)
        del self._folders[model]
        self._wholes.pop(model, None)
        self._profiled.pop(model, None)
        self._foreign.discard(model)
        self._unchecked.discard(model)
        self.unavailable = {name: why for name, why in self.unavailable.items() if name != model}
        self.descriptions = {
            name: description for name, description in self.descriptions.items() if name != model
        }
        self.memory.drop(model)

    def _give_up(self, model: str, error: Exception, level: int = logging.WARNING) -> None:
        # Clients learn which file is wrong, not its path on this machine.
        folder, name = self._folders[model], _shown(model, MAX_MODEL_ID_CHARACTERS)
        reason = _shown(str(error).replace(str(folder), name), MAX_REASON_CHARACTERS)
        logger.log(level, "the model in %s cannot be used: %s", _shown(str(folder)), reason)
        # New maps, because another thread may be reading the old ones.
        self.unavailable = {**self.unavailable, name: reason}
        self.descriptions = {
            each: description for each, description in self.descriptions.items() if each != model
        }


def _described(folder: Path) -> tuple[Description, bool, bool]:
    """Return the description of the model in a folder, and two flags.

    The first: it is foreign. The second: a self-check made the description.
    """
    _require_own(folder)
    if not is_foreign(folder):
        return describe(folder), False, True
    from headlight.models.foreign import read_description

    description, is_checked = read_description(folder)
    return description, True, is_checked


def within(seconds: float, read: Callable[[Path], Result], folder: Path) -> Result:
    """Read a folder on a daemon thread, which is left to itself if it takes too long.

    Raises:
        CheckpointError: it does.
        Exception: that of `read`.
    """
    done: list[Result] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            done.append(read(folder))
        except BaseException as error:
            errors.append(error)

    thread = Thread(target=copy_context().run, args=(work,), name="describe", daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not done:
        raise CheckpointError(f"{folder}: its files cannot be read within {seconds:g} s")
    return done[0]


def registry_of(settings: Settings) -> Registry:
    """Return the registry of the models, with the device and the threads of the settings.

    Raises:
        ValueError: the device does not exist.
    """
    for parent in filter(None, (settings.zoo_dir, settings.models_dir)):
        if not parent.is_dir():
            logger.warning("there is no directory %s to look for models in", parent)
    device = choose_device(settings.device)
    if settings.threads:
        torch.set_num_threads(settings.threads)
    budget = budget_of(device, limit=settings.memory_bytes, workers=settings.workers)
    precision = choose_precision(settings.precision, device)

    def pass_bytes(description: Description) -> int:
        n_tokens = min(description.config.max_tokens, settings.max_characters)
        limits = settings.max_cells, settings.max_held
        return pass_bytes_of(description.config, n_tokens, *limits, precision.itemsize)

    registry = Registry(
        [settings.zoo_dir, settings.own_models_dir],
        default=settings.default_model,
        device=device,
        precision=precision,
        memory=ModelMemory(budget),
        pass_bytes=pass_bytes,
        checks=settings.own_models_dir / CHECKS,
        is_lazy=True,
    )
    for folder in settings.model_folders:
        registry.add(Path(folder).expanduser().resolve())
    return registry


def _changes(parents: Iterable[Path]) -> list[int]:
    """Return the times of the last change of directories or files; 0 for one that is missing."""
    times = []
    for parent in parents:
        try:
            times.append(parent.stat().st_mtime_ns)
        except OSError:
            times.append(0)
    return times


def _require_own(folder: Path) -> None:
    """Raise `CheckpointError` if a folder's name is not an id, or it is a link to elsewhere."""
    if len(folder.name) > MAX_MODEL_ID_CHARACTERS or not MODEL_NAME.fullmatch(folder.name):
        raise CheckpointError(
            f"{folder}: a model's name has letters, digits, dots, dashes and spaces, at most "
            f"{MAX_MODEL_ID_CHARACTERS}; rename the folder"
        )
    if folder.resolve().parent != folder.parent.resolve():
        raise CheckpointError(f"{folder}: a link to a folder elsewhere is not followed")


def _shown(text: str, limit: int = MAX_REASON_CHARACTERS) -> str:
    """Return text of a stranger's folder as one short line of printable characters."""
    line = "".join(letter if letter.isprintable() else "\ufffd" for letter in text)
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _no_room(model: str, error: NoRoom) -> Problem:
    """Return the problem of a model that does not fit while others are in use."""
    kind, limit, actual = "model-too-large", error.limit, error.needed
    if error.in_use:
        why = f"the model '{model}' does not fit now: {error}"
        return service_unavailable(kind, why, limit=limit, actual=actual)
    way_out = "choose a smaller one, or raise HEADLIGHT_MEMORY_BYTES"
    detail = f"the model '{model}' does not fit: {error}; {way_out}"
    return Problem(503, kind, detail, limit=limit, actual=actual)


def _unknown_model(model: str, known: Iterable[str]) -> Problem:
    available = sorted(known)
    ids = f"the models are {', '.join(available)}" if available else "there are none at all"
    detail = f"there is no model {echo(model)}; {ids}{way_to_the_zoo()}"
    return Problem(404, "unknown-model", detail, available=available)
