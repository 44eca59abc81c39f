"""The page in a cell of a notebook, whose calls the kernel answers.

    w = headlight.widget("stories", "Once upon a time")
    w                       # the page: what is pressed there is here
    w.head, w.query = 3, 4  # and what is set here is there
    w.edits, w.next         # the head that is switched off, and the tokens that follow with it

Without a kernel the cell shows the sentence, the finding and the drawing as they were: a notebook
keeps them as a picture. anywidget brings the module to JupyterLab, VS Code, Colab and marimo; the
page, 0.9 MB, comes to a notebook once, on demand, and no cell and no file holds it.
"""

import asyncio
import gzip
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from threading import Event, Thread
from typing import Any
from urllib.parse import parse_qsl, urlencode

import httpx

from headlight.main import create_app
from headlight.model.extras import needed_by
from headlight.model.served import Served
from headlight.saved_page import cell_page
from headlight.settings import HOME, Settings

with needed_by("headlight.widget", "anywidget", "notebook"):
    import anywidget
    import traitlets
    from IPython.display import HTML, display

STILL = '<div class="headlight-still"><p>{}</p><img src="{}" alt="" style="background: #fff"></div>'


class Kernel:
    """The application in this process, with an event loop on a thread of its own."""

    def __init__(self) -> None:
        self.app = create_app(Settings())
        self._loop = asyncio.new_event_loop()
        self._is_ready = Event()
        Thread(target=self._run, name="headlight", daemon=True).start()
        self._is_ready.wait()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._open())
        self._loop.run_forever()

    async def _open(self) -> None:
        self._http = httpx.AsyncClient(
            transport=httpx.ASGITransport(self.app, raise_app_exceptions=False),
            base_url="http://localhost",
            timeout=None,  # noqa: S113 - there is no network: the application runs in this process
        )
        self._lifespan = self.app.router.lifespan_context(self.app)
        await self._lifespan.__aenter__()
        self._is_ready.set()

    def adopt(self, served: Served) -> str:
        """Let requests name a model that is in memory; return its id."""
        registry = self.app.state.services.registry
        registry.adopt(served)
        return served.description.id

    def ask(
        self, path: str, body: Mapping[str, Any] | None = None, accept: str = "*/*"
    ) -> httpx.Response:
        """Answer a call of the API; one with a body is a POST."""
        method = "GET" if body is None else "POST"
        asked = self._http.request(method, path, json=body, headers={"Accept": accept or "*/*"})
        return asyncio.run_coroutine_threadsafe(asked, self._loop).result()


kernel = cache(Kernel)


@cache
def _page() -> bytes:
    return gzip.compress(cell_page().encode(), 1)


def _number(name: str) -> Any:
    def read(self: "Widget") -> int | None:
        value = self._parts.get(name)
        return None if value is None else int(value)

    def write(self: "Widget", value: int | None) -> None:
        self._change(**{name: value})

    return property(read, write, doc=f"The {name} that is looked at; None: the page chooses it.")


class Widget(anywidget.AnyWidget):  # type: ignore[misc]  # mypy skips the library
    """A page in a cell; `address` is the fragment of its link, which holds the whole state."""

    _esm = (HOME / "static" / "js" / "widget.js").read_text()
    address = traitlets.Unicode("").tag(sync=True)
    says = traitlets.Unicode("").tag(sync=True)
    still = traitlets.Unicode("").tag(sync=True)
    height = traitlets.Int(800).tag(sync=True)

    layer, head, query = (_number(name) for name in ("layer", "head", "query"))

    def __init__(self, model: str, text: str, height: int = 800) -> None:
        self._display_id: str | None = None
        address = f"#{urlencode({'text': text, 'model': model})}"
        super().__init__(address=address, height=height)
        self.on_msg(self._answer)
        self.observe(self._keep, "still")

    def _answer(self, _: Any, asked: Mapping[str, Any], __: Any) -> None:
        """Answer a call of the page; the page itself is at `/`."""
        if asked["path"] == "/":
            status, kind, content = 200, "text/html", _page()
        else:
            answer = kernel().ask(asked["path"], asked["body"], asked["accept"])
            status, content = answer.status_code, answer.content
            kind = answer.headers.get("Content-Type", "")
        self.send({"id": asked["id"], "status": status, "type": kind}, [content])

    def _ipython_display_(self) -> None:
        """Show the page, and keep below it the picture that a notebook without a kernel shows."""
        display(self._repr_mimebundle_()[0], raw=True)
        self._display_id = f"headlight-{id(self)}"
        display(self._picture, display_id=self._display_id)

    def _keep(self, _: Any) -> None:
        if self._display_id is not None:
            display(self._picture, display_id=self._display_id, update=True)

    @property
    def _picture(self) -> Any:
        return HTML(STILL.format(escape(self.says), escape(self.still)) if self.still else "")

    @property
    def _parts(self) -> dict[str, str]:
        return dict(parse_qsl(self.address.removeprefix("#"), keep_blank_values=True))

    def _change(self, **parts: Any) -> None:
        kept = {
            name: value for name, value in {**self._parts, **parts}.items() if value is not None
        }
        self.address = f"#{urlencode(kept)}"

    @property
    def text(self) -> str:
        """The sentence."""
        return self._parts.get("text", "")

    @text.setter
    def text(self, text: str) -> None:
        self._change(text=text)

    @property
    def edits(self) -> list[dict[str, Any]]:
        """The head that is switched off on the page, as the API names it; set [] for none.

        Raises:
            ValueError: it is set to anything but one head.
        """
        part = self._parts.get("off", "").split()[1:]
        if len(part) != 3:
            return []
        where, layer, head = part
        return [{"kind": "heads_off", "heads": [int(head)], "layer": int(layer), "where": where}]

    @edits.setter
    def edits(self, edits: Sequence[Mapping[str, Any]]) -> None:
        match list(edits):
            case []:
                self._change(off=None)
            case [{"kind": "heads_off", "heads": [int(head)], "layer": int(layer), **rest}]:
                self._change(off=f"head {rest.get('where', 'decoder')} {layer} {head}")
            case _:
                raise ValueError(
                    f"{edits!r} is more than the page shows; set one head: "
                    "[{'kind': 'heads_off', 'heads': [3], 'layer': 2}]"
                )

    @property
    def next(self) -> list[tuple[str, float]]:
        """The likeliest tokens after the query, with their probabilities; the edits are made.

        Raises:
            ValueError: the model predicts no next token, or cannot read the text.
        """
        asked = {"text": self.text, "model": self._parts["model"], "edits": self.edits}
        body = {**asked, "capture": [], "analyses": ["next_token"], "predictions": {"top": 5}}
        answer = kernel().ask("/api/v1/trace", body)
        if answer.is_error:
            raise ValueError(answer.json()["detail"])
        ranked = answer.json()["analyses"]["next_token"]
        row = len(ranked["texts"]) - 1 if self.query is None else self.query
        return list(zip(ranked["texts"][row], ranked["probabilities"]["data"][row], strict=True))


def widget(model: Served | str, text: str, height: int = 800) -> Widget:
    """Return the page as a widget, two-way: what is pressed there can be read here.

    Args:
        model: the id of a model, or one that `load` returned.
        text: the sentence.
        height: of the cell, in pixels.
    """
    return Widget(model if isinstance(model, str) else kernel().adopt(model), text, height)
