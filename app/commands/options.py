"""The options that several commands have."""

from pathlib import Path
from typing import Annotated, TypeAlias

from headlight.commands.parsing import option

AsJson: TypeAlias = Annotated[bool, option("Print JSON.", name="--json")]
Files: TypeAlias = list[Path] | None
Device: TypeAlias = Annotated[str | None, option("auto, cpu, cuda or mps.", "NAME", "auto")]
Precision: TypeAlias = Annotated[str | None, option("float32 or bfloat16.", "NAME", "float32")]
Server: TypeAlias = Annotated[
    str | None,
    option("Ask this server, with the key in HEADLIGHT_API_KEY, instead of a model here.", "URL"),
]
ModelsDir: TypeAlias = Annotated[
    Path | None, option("A directory with more models, one folder each.", "DIR")
]
Force: TypeAlias = Annotated[bool, option("Replace existing files.", name="--force")]
