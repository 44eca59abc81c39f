"""How long a server takes from its command to its page, and to the moment it says that it is ready.

Beside PyTorch in one run: machines differ by two. Imports hold the interpreter, so those of a
server add to PyTorch's: on a quiet core 0.25 s of Pydantic, FastAPI and the schemas, 0.15 s of
uvicorn and rich, 0.25 s of routes and analyses, 0.1 s of the default model. The cards come 0.3 s
after the server is ready, as the sites of a card are those of PyTorch's modules.
"""

import socket
import statistics
import subprocess
import sys
import threading
import time
from contextlib import suppress

import httpx
import pytest

from tests.server_process import serving
from tests.tiny_checkpoints import make_tokenizer

N_STARTS = 5
PAGE, READY, SLACK = 0.7, 1.25, 1.5
LIBRARY = """
import sys, torch, transformers
model = transformers.AutoModelForCausalLM.from_pretrained(sys.argv[1])
tokens = transformers.AutoTokenizer.from_pretrained(sys.argv[1])("Once", return_tensors="pt")
model(input_ids=tokens["input_ids"])
"""


@pytest.mark.parametrize("name", ["stories", "GPT-2 small"])
def test_the_page_comes_before_pytorch_and_the_server_is_ready_soon_after(table, tmp_path, name):
    code, options = ["import torch"], []
    if name != "stories":
        import transformers

        transformers.GPT2LMHeadModel(transformers.GPT2Config()).save_pretrained(tmp_path)
        make_tokenizer().save_pretrained(tmp_path)
        code, options = [LIBRARY, str(tmp_path)], ["--model", str(tmp_path)]
    start(*options)  # reads the files from the disk, writes the bytecode and keeps a self-check
    runs = [(seconds_of(code), *start(*options)) for _ in range(N_STARTS)]
    page, ready = (statistics.median(run[part] / run[0] for run in runs) for part in (1, 2))
    for until, ratio, most in (("the page", page, PAGE), ("/readyz", ready, READY)):
        figure = f"{ratio:.2f} × {'its library' if options else 'import torch'}"
        table.add("Start", f"{name} until {until}", figure, f"≤ {most:g} ×", ratio < most)
    assert ready < READY * SLACK


def seconds_of(code):
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", *code], check=True, capture_output=True)
    return time.perf_counter() - began


def start(*options):
    """Return the seconds until the page answers, and those until the server is ready."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    began, pages = time.perf_counter(), []

    def ask():
        while not pages:
            with suppress(httpx.TransportError):
                httpx.get(f"http://127.0.0.1:{port}/").raise_for_status()
                pages.append(time.perf_counter() - began)
            time.sleep(0.02)

    threading.Thread(target=ask).start()
    # An installed package has its bytecode; a shell may forbid to write that of a checkout.
    told = {"PYTHONDONTWRITEBYTECODE": ""}
    with serving("--log-level", "error", "--port", str(port), *options, environment=told):
        return pages[0], time.perf_counter() - began
