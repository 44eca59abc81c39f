"""The widget in JupyterLab, where it is installed: pressed, set, saved, and without a kernel."""

import os
import re
import subprocess
import sys

import nbformat
import pytest
from nbformat import v4

pytest.importorskip("jupyterlab")
pytest.importorskip("anywidget")

CELLS = [
    'import headlight\nw = headlight.widget("stories", "Once upon a time")\nw',
    "w.edits, w.next[0]",
    "w.layer, w.head, w.query = 3, 2, 1",
]
MOST_BYTES = 200_000  # of a notebook with one cell of ours; three have to stay below 600 kB


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """Yield the folder and the address of a JupyterLab."""
    folder = tmp_path_factory.mktemp("lab")
    options = "--ip 127.0.0.1 --port 0 --no-browser --allow-root --IdentityProvider.token="
    command = [sys.executable, "-m", "jupyterlab", *options.split(), f"--notebook-dir={folder}"]
    own = {name: str(folder / ".own") for name in ("JUPYTER_CONFIG_DIR", "IPYTHONDIR")}
    said = subprocess.PIPE
    with subprocess.Popen(command, env=os.environ | own, stderr=said, text=True) as lab:
        address = next(filter(None, (re.search(r"http://127[\d.:]+", line) for line in lab.stderr)))
        yield folder, f"{address[0]}/lab/tree/a.ipynb?reset"
        lab.terminate()


def test_a_cell_is_pressed_and_set_and_stays_as_a_picture(lab, chromium):
    folder, url = lab
    file = folder / "a.ipynb"
    about = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    cells = [v4.new_code_cell(text) for text in CELLS]
    nbformat.write(v4.new_notebook(cells=cells, metadata=about), file)
    page = chromium.new_page()
    page.set_default_timeout(60_000)
    page.goto(url)

    def run(number):
        page.locator(".jp-Cell .cm-content").nth(number).click()
        page.keyboard.press("Control+Enter")
        return page.locator(".jp-Cell").nth(number).locator(".jp-OutputArea-output")

    run(0)
    frame = page.frame_locator("iframe[title=Headlight]")
    frame.get_by_role("switch").click()
    frame.locator("#says", has_text="Without layer 0, head 1").wait_for()
    assert "'heads': [1], 'layer': 0" in run(1).inner_text()
    run(2)
    frame.get_by_role("heading", name="Layer 3, head 2").wait_for()
    page.wait_for_timeout(3000)  # until the picture of this drawing is kept
    page.keyboard.press("Control+s")
    page.wait_for_function("!document.title.includes('*')")
    page.wait_for_timeout(1000)
    assert file.stat().st_size < MOST_BYTES
    book = nbformat.read(file, 4)
    book.metadata.clear()
    nbformat.write(book, file)
    page.goto(url)
    page.locator(".headlight-still img").wait_for()
    assert "Without layer 0, head 1" in page.locator(".headlight-still").inner_text()
    assert page.locator("iframe").count() == 0
    page.close()
