"""The atlases of the models: found by the model's id, read once while their files do not change."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from cachetools import LRUCache

from headlight.model.atlas import layout
from headlight.model.atlas.layout import Atlas, AtlasError, read_atlas
from headlight.model.checkpoint.files import CheckpointError
from headlight.model.checkpoint.profile import read_profile
from headlight.model.description import Description
from headlight.models.model_registry import Registry
from headlight.problems import Problem

N_KEPT = 16


class Atlases:
    """Reads atlases; its methods read files, so they are called on a thread.

    Args:
        registry: of the models.
        folder: holds the atlas of each model in a folder with the model's id; a model without one
            there may have one in its own folder.
    """

    def __init__(self, registry: Registry, folder: Path | None) -> None:
        self.registry = registry
        self.folder = folder
        self._kept: LRUCache[tuple[Any, ...], Any] = LRUCache(N_KEPT)

    def has(self, model: str) -> bool:
        """Return True if a model has an atlas, of whatever revision; it looks for one file."""
        return self._folder_of(model) is not None

    def atlas(self, model: str) -> Atlas:
        """Return the atlas of a model.

        Raises:
            Problem: 404, there is no such model, or it has no atlas of its revision.
        """
        description = self.registry.describe(model)
        folder = self._folder_of(description.id)
        if folder is None:
            detail = (
                f"the model '{model}' has no atlas; 'headlight atlas build {model} CORPUS --out "
                f"DIR/{model}' makes one, and HEADLIGHT_ATLAS_DIR=DIR shows it"
            )
            raise Problem(404, "no-atlas", detail)
        read = lambda: read_atlas(folder, description.revision)  # noqa: E731
        atlas: Atlas = self._once(folder, layout.MANIFEST, description.revision, read)
        return atlas

    def summary(self, atlas: Atlas) -> Mapping[str, Any]:
        """Return the commonest of every head of an atlas.

        Raises:
            Problem: 404, the file is damaged.
        """
        summary: Mapping[str, Any] = self._once(atlas.folder, layout.SUMMARY, "", atlas.summary)
        return summary

    def described(self, model: str) -> Description:
        """Return the metadata of a model, with the profile of its atlas if it has no other."""
        description = self.registry.describe(model)
        if description.heads is not None or not self.has(description.id):
            return description
        try:
            folder = self.atlas(model).folder
            read = lambda: read_profile(folder, description.revision)  # noqa: E731
            return replace(description, heads=self._once(folder, layout.HEADS, "", read))
        except (Problem, CheckpointError):
            return description  # asking for the atlas tells the reason

    def _folder_of(self, model: str) -> Path | None:
        shown = [self.folder / model] if self.folder else []
        if (own := self.registry.own_folder(model)) is not None:
            shown.append(own / layout.ATLAS)
        return next((path for path in shown if (path / layout.MANIFEST).is_file()), None)

    def _once(self, folder: Path, name: str, revision: str, read: Callable[[], Any]) -> Any:
        try:
            key = (str(folder), name, revision, (folder / name).stat().st_mtime_ns)
            if key not in self._kept:
                self._kept[key] = read()
            return self._kept[key]
        except (OSError, AtlasError) as error:
            raise Problem(404, "no-atlas", f"the atlas cannot be used: {error}") from error
