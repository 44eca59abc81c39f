"""Record what a server of tiny models answers to the page: `python -m tests.record_answers`.

Then tests/js/plot/figures.json is renewed too. The models have random weights that are the same in
every run, so a record differs from the last one by the answers that changed.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from headlight.settings import Settings
from tests.app.conftest import make_zoo, serve
from tests.tiny_checkpoints import save_checkpoint

TEST = "tests/js/plot/figures.test.js"
FOREIGN = ("gpt2", "t5", "llama")


def main() -> None:
    """Serve the models on a free port and let the test of the figures ask and record."""
    with tempfile.TemporaryDirectory() as folder:
        zoo, models = Path(folder) / "zoo", Path(folder) / "models"
        make_zoo(zoo)
        for name in FOREIGN:
            save_checkpoint(name, models / name)
        settings = Settings(
            zoo_dir=zoo,
            models_dir=models,
            default_model="tiny",
            device="cpu",
            queue_seconds=100,
            shutdown_seconds=2,
        )
        node = str(Path(sys.executable).parent / "node")
        with serve(settings) as server:
            environment = {
                **os.environ,
                "HEADLIGHT_SERVER": server.url,
                "HEADLIGHT_RENEW_FIGURES": "1",
            }
            subprocess.run([node, "--test", TEST], env=environment, check=True)


if __name__ == "__main__":
    main()
