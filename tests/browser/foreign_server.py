"""A server with tiny Hugging Face checkpoints, and the check of one view of a model."""

import pytest

from tests.browser.conftest import ONE_THREAD
from tests.server_process import serving
from tests.tiny_checkpoints import save_checkpoint

TEXT = "The cat sat on the mat"


def foreign_reader(models):
    """Yield a fixture: a reader of a server with these models, none of them loaded."""

    @pytest.fixture(scope="module")
    def foreign(new_reader, tmp_path_factory):
        folder = tmp_path_factory.mktemp("foreign")
        for name in models:
            save_checkpoint(name, folder / name)
        with serving("--models-dir", folder, environment=ONE_THREAD) as server:
            reader = new_reader()
            reader.url = server.url
            yield reader

    return foreign


def check_view(foreign, model, view):
    """Check that a view of a model draws, or says what the model lacks."""
    foreign.open(model=model, text=TEXT, view=view)
    foreign.wait_until_drawn()
    failures = foreign.view.locator(".panel-notice.is-failure:visible")
    assert failures.all_text_contents() == []
    foreign.view.locator(".plot .nsewdrag, .panel-notice:visible, .sankey").first.wait_for()
    assert foreign.errors == []
