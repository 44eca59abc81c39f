"""A person: opens the page, reads, asks, thinks, asks again, and is not always patient or right."""

import asyncio
import random
import re
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import orjson
import safetensors.numpy
from client import Broken, Connection
from report import Tally
from sentences import MODELS, anything

SAFETENSORS = {"Accept": "application/x-safetensors"}

MODEL_WEIGHTS = [60, 15, 15, 10]
CHECKED = 1 / 20

NONSENSE = [
    b"",
    b"{",
    b"\xff",
    b"[1e999]",
    b'{"text": 5}',
    b'{"text": NaN}',
    b'{"text": "\\ud800"}',
]

_FILES = re.compile(rb'(?:href|src)="(/static/[^"]+)"')


@dataclass
class Person:
    """Somebody with a connection, a memory of what was asked, and a browser's cache.

    Args:
        line: the connection.
        tally: where everything is counted.
        chance: decides everything this person does.
    """

    line: Connection
    tally: Tally
    chance: random.Random
    etags: dict[str, str] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, Any], dict[str, str]]] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)

    async def act(self):
        """Do one of the things that people do."""
        name = self.chance.choices(NAMES, weights=WEIGHTS)[0]
        try:
            await ACTIONS[name](self)
        except Broken as broken:
            self.tally.surprise(f"{name}: {broken}")

    # The page

    async def visit(self):
        """The page, every file that it names and the models, each only if it changed."""
        page = await self.line.ask("GET", "/")
        self.tally.add("page", page)
        for path in dict.fromkeys(found.decode() for found in _FILES.findall(page.body)):
            await self.fetch("file", path)
        await self.fetch("models", "/api/v1/models")

    async def fetch(self, kind, path):
        """A file, or the word that the one already here is still right."""
        known = self.etags.get(path)
        headers = {"If-None-Match": known} if known else {}
        reply = await self.line.ask("GET", path, headers=headers)
        self.tally.add(f"{kind}, known" if known else kind, reply, (304,) if known else (200,))
        if "etag" in reply.headers:
            self.etags[path] = reply.headers["etag"]

    # Traces

    async def trace(self):
        """A sentence, as a script asks for it: everything that is shown by default, as JSON."""
        await self.post_trace("trace, JSON", {}, {})

    async def view(self):
        """A sentence, as the page asks for it: half the bytes, in the binary form."""
        await self.post_trace("trace, safetensors", {"dtype": "uint16"}, SAFETENSORS)

    async def one_head(self):
        """Single heads of one layer."""
        members = {
            "capture": ["*_attention.weights"],
            "layers": [self.chance.randrange(2)],
            "heads": self.chance.sample(range(4), k=self.chance.randint(1, 2)),
        }
        await self.post_trace("trace, single heads", members, {})

    async def analyse(self):
        """Ask for analyses of a trace."""
        names = ["rollout", "head_labels", "attention_by_distance"]
        members = {"model": "stories", "capture": [], "analyses": self.chance.sample(names, k=2)}
        await self.post_trace("trace, analyses", members, {})

    async def edit(self):
        """The same pass with a head switched off."""
        edits = [{"kind": "heads_off", "heads": [self.chance.randrange(4)], "layer": 1}]
        members = {"model": "stories", "capture": ["logits"], "edits": edits}
        await self.post_trace("trace, edited", members, {})

    async def post_trace(self, kind, members, headers):
        """A trace of some text by some model; once in a while its answer is looked at closely."""
        model = self.chance.choices(MODELS, weights=MODEL_WEIGHTS)[0]
        model = members.get("model", model)
        order = {"model": model, "text": anything(self.chance, model), **members}
        await self.send_trace(kind, order, headers)

    async def send_trace(self, kind, order, headers):
        """Ask for one trace and remember it."""
        body = orjson.dumps(order)
        reply = await self.line.ask("POST", "/api/v1/trace", body=body, headers=headers)
        if not self.tally.add(kind, reply):
            return
        self.asked = [*self.asked[-4:], (kind, order, headers)]
        if self.chance.random() < CHECKED:
            self.tally.n_checked += 1
            name, wrong = look_at(reply, order)
            self.seen = [*self.seen[-4:], name]
            for what in wrong:
                self.tally.surprise(f"{kind}: {what}")

    async def repeat(self):
        """Repeat a recent request."""
        if not self.asked:
            return await self.trace()
        _, order, headers = self.chance.choice(self.asked)
        return await self.send_trace("trace, again", order, headers)

    async def look_again(self):
        """A trace computed before, by its name."""
        if not self.seen:
            return await self.trace()
        path = f"/api/v1/traces/{self.chance.choice(self.seen)}"
        reply = await self.line.ask("GET", path)
        self.tally.add("trace, by its id", reply, (200, 404))
        if reply.status == 200:
            headers = {"If-None-Match": reply.headers["etag"]}
            reply = await self.line.ask("GET", path, headers=headers)
            self.tally.add("trace, by its id, known", reply, (304, 404))
        return None

    # Everything else there is

    async def tokenize(self):
        """Tokenize a text."""
        model = self.chance.choice(MODELS)
        await self.post("tokenize", "/api/v1/tokenize", {"text": anything(self.chance, model)})

    async def positional(self):
        """An encoding of positions."""
        length = self.chance.choice([32, 64, 128])
        path = f"/api/v1/positional?scheme=sinusoidal&length={length}&width=64"
        self.tally.add("positional", await self.line.ask("GET", path, headers=SAFETENSORS))

    async def generate(self):
        """A story written on to its end."""
        await self.write_on("generate", until=None)

    async def generate_and_leave(self):
        """A story that somebody closes in the middle."""
        await self.write_on("generate, left midway", until=self.chance.randint(1, 8))

    async def write_on(self, kind, until):
        """Read a stream's events, all or some."""
        order = {
            "text": anything(self.chance, "stories"),
            "n_tokens": 20,
            "seed": self.chance.randrange(10**6),
        }
        await read_stream(self.line, order, self.tally, kind, until)

    async def leave(self):
        """Somebody who closes the page before the answer is there."""
        order = {"text": anything(self.chance, "stories")}
        await self.line.send_and_leave(
            "/api/v1/trace", orjson.dumps(order), self.chance.uniform(0, 0.05)
        )
        self.tally.left("trace, left")

    # Mistakes

    async def send_too_much(self):
        """A text that is too long: for the model, or for the server."""
        text = "the cat sat on the mat " * self.chance.choice([60, 300, 9_000])
        await self.post("mistake, too long", "/api/v1/trace", {"text": text}, (413, 422))

    async def send_nonsense(self):
        """Send malformed or invalid JSON."""
        body = self.chance.choice(NONSENSE)
        reply = await self.line.ask("POST", "/api/v1/trace", body=body)
        self.tally.add("mistake, bad JSON", reply, (400, 422))

    async def ask_for_nothing(self):
        """A model, a site or a page that is not there."""
        order = {"text": "the cat", "capture": ["decoder.layer.*"]}
        await self.post("mistake, unknown", "/api/v1/trace", order, (422,))
        await self.post("mistake, unknown", "/api/v1/trace", {"text": "a", "model": "x"}, (404,))
        self.tally.add("mistake, unknown", await self.line.ask("GET", "/nowhere"), (404,))

    async def post(self, kind, path, order, expected=(200,)):
        """Post JSON and count the answer."""
        self.tally.add(kind, await self.line.ask("POST", path, body=orjson.dumps(order)), expected)


Action = Callable[[Person], Awaitable[None]]

# How often people do what, of every hundred things that they do.
PLAN: list[tuple[Action, float]] = [
    (Person.visit, 2),
    (Person.view, 26),
    (Person.trace, 12),
    (Person.one_head, 10),
    (Person.analyse, 5),
    (Person.edit, 3),
    (Person.repeat, 12),
    (Person.look_again, 5),
    (Person.tokenize, 7),
    (Person.positional, 4),
    (Person.generate, 3),
    (Person.generate_and_leave, 2),
    (Person.leave, 4),
    (Person.send_too_much, 2),
    (Person.send_nonsense, 2),
    (Person.ask_for_nothing, 1),
]
ACTIONS = {action.__name__: action for action, _ in PLAN}
NAMES, WEIGHTS = list(ACTIONS), [weight for _, weight in PLAN]


async def live(person, *, arrival, think, until):
    """Come, do one thing after the other with time to think between them, and go.

    Args:
        person: who.
        arrival: when to come, in seconds of the event loop's clock.
        think: seconds between two things, on average.
        until: when to begin nothing any more.
    """
    loop = asyncio.get_running_loop()
    pause = arrival - loop.time()
    while loop.time() + pause < until:
        await asyncio.sleep(pause)
        await person.act()
        pause = person.chance.expovariate(1 / think)
    await person.line.close()


UINT16_STEP = 1 / 65535
TOLERANCE = 1e-3
TAIL = 500
"""Bytes at the end of a stream that hold its last event, or what it is about."""


def look_at(reply, order):
    """The id of a trace, and what is wrong with it.

    It may be about somebody else's text, and its rows may sum to anything but 1.
    """
    members, tensors = _read(reply)
    found = []
    if members["text"] != order["text"]:
        found.append("the answer is about another text")
    for site, weights in tensors.items():
        if abs(weights.sum(-1) - 1).max() > TOLERANCE:
            found.append(f"rows of {site} do not sum to 1")
    return str(members["id"]), found


def _read(reply):
    """The members and the attention weights of a trace, of JSON or of safetensors."""
    body, end = reply.body, "_attention.weights"
    if reply.headers["content-type"] == "application/json":
        members = orjson.loads(body)
        tensors = members["tensors"].items()
        return members, {site: np.array(of["data"]) for site, of in tensors if site.endswith(end)}
    length = int.from_bytes(body[:8], "little")
    members = orjson.loads(body[8 : 8 + length])["__metadata__"]
    found = safetensors.numpy.load(body).items()
    weights = {
        site: array * UINT16_STEP if array.dtype == np.uint16 else array
        for site, array in found
        if site.endswith(end)
    }
    return {name: orjson.loads(text) for name, text in members.items()}, weights


async def read_stream(line, order, tally, kind, until):
    """Read a stream's events to the end, or close it after some.

    Args:
        line: the connection.
        order: what to ask.
        tally: where it is counted.
        kind: as what it is counted.
        until: after how many pieces to leave; None: never.
    """
    n_pieces, end = 0, b""
    async with aclosing(line.listen("/api/v1/generate", orjson.dumps(order))) as pieces:
        async for piece in pieces:
            n_pieces, end = n_pieces + 1, (end + piece.body)[-TAIL:]
            if piece.status == 200 and n_pieces == 1:
                tally.add("generate, first event", piece)
            if n_pieces == until:
                tally.left(kind)
                return
    if piece.status == 200 and b"event: error" in end and b'"status":503' in end:
        tally.refused(kind)
    elif piece.status == 200 and b"event: end" not in end:
        tally.surprise(f"{kind}: a stream without an end: {end!r}")
    else:
        tally.add(kind, replace(piece, body=end))
