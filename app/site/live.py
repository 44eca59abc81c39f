"""The models of a site that the reader's browser computes: their graphs, and what runs them.

npm packs the runtime, ONNX Runtime for the web, and the encoder of words when the site is written,
so that no other host is asked at run time. What is large is compressed here: a host may not do it.
"""

from __future__ import annotations

import gzip
import json
import shutil
import struct
import subprocess
import tarfile
from collections.abc import Callable, Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from headlight.joined_scripts import joined
from headlight.model.checkpoint.checkpoint import Checkpoint
from headlight.model.export import ExportError, export_model
from headlight.models.model_registry import Registry
from headlight.problems import Problem

RUNTIME, BINARY = "ort.wasm.bundle.min.mjs", "ort-wasm-simd-threaded.wasm"
ENCODER = "tokenizers.min.mjs"
PACKAGES = {
    "onnxruntime-web@1.30.0": (f"dist/{RUNTIME}", f"dist/{BINARY}"),
    "@huggingface/tokenizers@0.2.0": (f"dist/{ENCODER}", "LICENSE"),
}
_ENTRY = "api/live_worker.js"

Keep = Callable[[str, bytes], str]
"""Writes a file, and returns its path in the site, with a hash before the ending."""


def live_index(models: Iterable[str], registry: Registry, keep: Keep) -> dict[str, Any]:
    """Write what the models need, and return the part of a site's index about them.

    Raises:
        ValueError: a model cannot be exported, or npm does not give the packages.
    """
    packed = {Path(name).name: each for spec in PACKAGES for name, each in _packed(spec)}
    described = {model: _described(model, registry, keep) for model in models}
    import onnxruntime  # which the export needs

    for name in ("LICENSE", "ThirdPartyNotices.txt"):
        notice = Path(onnxruntime.__file__).with_name(name).read_bytes()
        keep(f"onnxruntime-{Path(name).stem}.txt", notice)
    keep("tokenizers-LICENSE.txt", packed["LICENSE"])
    worker = "".join(
        f"import {what} from './{Path(keep(f'{kind}.js', packed[name])).name}';\n"
        for what, kind, name in (
            ("* as ort", "runtime", RUNTIME),
            ("{ Tokenizer }", "tokenizers", ENCODER),
        )
    )
    worker += f"{joined([_ENTRY])}$need('{_ENTRY}').serve(self, {{ ort, Tokenizer }});\n"
    return {
        "worker": keep("worker.js", worker.encode()),
        "runtime": _compressed("runtime.bin", packed[BINARY], keep),
        "models": described,
    }


def _described(model: str, registry: Registry, keep: Keep) -> dict[str, Any]:
    try:
        checkpoint = registry.checkpoint(model)
        if not isinstance(checkpoint, Checkpoint):
            raise ExportError(f"'{model}' is a checkpoint of Transformers")
        graph, manifest = export_model(checkpoint)
    except (ExportError, ImportError, Problem) as error:
        raise ValueError(f"--live {model}: {getattr(error, 'detail', error)}") from error
    header = json.dumps(manifest, ensure_ascii=False).encode()
    return {
        **_compressed(f"{model}.bin", struct.pack("<I", len(header)) + header + graph, keep),
        "revision": manifest["revision"],
        "names": list(manifest["axes"]),
        "within": max(manifest["differences"][kind] for kind in ("logits", "weights")),
    }


def _compressed(name: str, content: bytes, keep: Keep) -> dict[str, Any]:
    packed = gzip.compress(content, mtime=0)
    return {"file": keep(name, packed), "bytes": len(packed)}


def _packed(spec: str) -> list[tuple[str, bytes]]:
    """Return the files of a package that are used, which npm fetches and checks.

    Raises:
        ValueError: there is no npm, or it does not have the package.
    """
    npm = shutil.which("npm")
    if npm is None:
        raise ValueError("--live needs npm, which comes with Node.js, to fetch the runtime")
    with TemporaryDirectory() as folder:
        command = [npm, "pack", spec, "--silent", "--pack-destination", folder]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode:
            raise ValueError(f"npm could not fetch {spec}: {done.stderr.strip()[-300:]}")
        with tarfile.open(next(Path(folder).glob("*.tgz"))) as archive:
            files = {name: archive.extractfile(f"package/{name}") for name in PACKAGES[spec]}
            return [(name, file.read()) for name, file in files.items() if file]
