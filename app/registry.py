"""The registry of models: an allow-list of folders, read without their weights.

A model's id is its folder's name, in the zoo that ships or in `HEADLIGHT_MODELS_DIR`; nothing a
client sends becomes a path. Weights are loaded once, when a model is first used. A damaged folder
is reported with its reason and does not affect the others.
"""

import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from threading import Lock

import torch

from headlight.engine import is_fatal, is_out_of_memory
from headlight.errors import Problem, echo
from headlight.model.checkpoint import describe, load
from headlight.model.checkpoint_files import CheckpointError
from headlight.model.device import choose_device, choose_precision
from headlight.model.served import Description, Served
from headlight.schemas.traces import MAX_MODEL_ID_CHARACTERS
from headlight.settings import Settings

logger = logging.getLogger(__name__)

MODEL_NAME = re.compile(r"\w[\w .+-]*")
MAX_REASON_CHARACTERS = 300


class Registry:
    """Models by id: the sub-folders of `parents`; of two equal names the first counts."""

    def __init__(
        self,
        parents: Iterable[Path],
        *,
        default: str,
        device: torch.device,
        precision: torch.dtype = torch.float32,
    ) -> None:
        self.default = default
        self.device = device
        self.precision = precision
        self.descriptions: dict[str, Description] = {}
        self.unavailable: dict[str, str] = {}
        self._folders: dict[str, Path] = {}
        self._checkpoints: dict[str, Served] = {}
        self._lock = Lock()
        for folder in _model_folders(parents):
            if folder.name in self._folders:
                logger.warning("%s is left out: there is a model of that name", _shown(str(folder)))
            else:
                self.add(folder)

    @property
    def ids(self) -> frozenset[str]:
        """The ids of all models, damaged ones included."""
        return frozenset(self._folders)

    def add(self, folder: Path) -> None:
        """Add the model in a folder; it replaces a model of the same id."""
        self._folders[folder.name] = folder
        self._describe(folder)

    def describe(self, model: str | None = None) -> Description:
        """The description of a model, from its folder; of the default one for None.

        Raises:
            Problem: 404, there is no such model; 503, its folder is damaged.
        """
        model = self.default if model is None else model
        if reason := self.unavailable.get(model):
            raise Problem(503, "model-unavailable", f"the model '{model}' cannot be used: {reason}")
        if model not in self.descriptions:
            raise _unknown_model(model, self.descriptions)
        return self.descriptions[model]

    @property
    def max_tokens(self) -> dict[str, int]:
        """The longest text that each model reads, by id."""
        return {model: found.config.max_tokens for model, found in self.descriptions.items()}

    def checkpoint(self, model: str | None = None) -> Served:
        """The model itself, loaded on first use; the default one for None.

        Raises:
            Problem: as `describe`; 503, the weights cannot be loaded.
        """
        model = self.describe(model).id
        with self._lock:
            if model not in self._checkpoints:
                self._load(self._folders[model])
            self.describe(model)
            return self._checkpoints[model]

    def is_loaded(self, model: str) -> bool:
        """Whether `checkpoint` would not have to load it."""
        return model in self._checkpoints

    def _describe(self, folder: Path) -> None:
        try:
            _require_own(folder)
            self.descriptions[folder.name] = describe(folder)
        except Exception as error:  # whatever is wrong with one folder, the others go on
            self._give_up(folder, error)

    def _load(self, folder: Path) -> None:
        try:
            self._checkpoints[folder.name] = load(folder, device=self.device, dtype=self.precision)
        except Exception as error:  # memory may be short, or the device may lack a dtype
            if is_fatal(error) and not is_out_of_memory(error):
                raise  # it says nothing of this folder
            self._give_up(folder, error)

    def _give_up(self, folder: Path, error: Exception) -> None:
        # Clients learn which file is wrong, not its path on this machine.
        name = _shown(folder.name, MAX_MODEL_ID_CHARACTERS)
        reason = _shown(str(error).replace(str(folder), name), MAX_REASON_CHARACTERS)
        logger.warning("the model in %s cannot be used: %s", _shown(str(folder)), reason)
        # New maps, because another thread may be reading the old ones.
        self.unavailable = {**self.unavailable, name: reason}
        self.descriptions = {
            model: found for model, found in self.descriptions.items() if model != folder.name
        }


def registry_of(settings: Settings) -> Registry:
    """The models, the device and the threads of the settings, or ValueError for the device."""
    parents = [path for path in (settings.zoo_dir, settings.models_dir) if path]
    device = choose_device(settings.device)
    if settings.threads:
        torch.set_num_threads(settings.threads)
    precision = choose_precision(settings.precision, device)
    return Registry(parents, default=settings.default_model, device=device, precision=precision)


def _model_folders(parents: Iterable[Path]) -> Iterator[Path]:
    for parent in parents:
        try:
            folders = [path for path in sorted(parent.iterdir()) if path.is_dir()]
        except FileNotFoundError:
            logger.warning("there is no directory %s to look for models in", parent)
        except OSError as error:
            logger.warning("%s cannot be searched for models: %s", parent, error.strerror)
        else:
            yield from (path for path in folders if not path.name.startswith((".", "_")))


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
    """Text of a stranger's folder on one line, cut, and without what cannot be printed."""
    line = "".join(letter if letter.isprintable() else "\ufffd" for letter in text)
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _unknown_model(model: str, known: Mapping[str, Description]) -> Problem:
    available = sorted(known)
    ids = f"the models are {', '.join(available)}" if available else "there are none at all"
    detail = f"there is no model {echo(model)}; {ids}"
    return Problem(404, "unknown-model", detail, available=available)
