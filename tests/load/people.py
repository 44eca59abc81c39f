"""A person: opens the page, reads, asks, thinks, asks again, and is not always patient or right."""

import asyncio
import re
import ssl
import time
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import numpy as np
import orjson
import safetensors.numpy

from tests.load.report import LEFT, REFUSED

SAFETENSORS = {"Accept": "application/x-safetensors"}
BROWSER = {"Accept-Encoding": "gzip, deflate, br, zstd", "User-Agent": "load"}
PATIENCE_SECONDS = 60.0
# A thousand transports share one context, which takes longer to make than they do.
TLS = ssl.create_default_context()

CHECKED = 1 / 20
TOLERANCE = 1e-3
TAIL = 500
"""Bytes at the end of a stream that hold its last event."""

EXAMPLES = {
    "stories": ["Once upon a time there was a little light.", "Lily and Tom went to the park."],
    "translate": ["The black cat is sleeping.", "I would like a cup of coffee, please."],
    "fill": ["The [MASK] sat on the mat.", "She opened the [MASK] and went inside."],
    "positions-rotary": ["One two three four one two three four."],
}
MODELS, MODEL_WEIGHTS = list(EXAMPLES), [60, 15, 15, 10]
PARTS = (
    ("the cat", "a little girl", "her old dog", "a boy named Tim", "the moon", "Zoë", "👩‍🚀"),
    ("saw", "found", "wanted", "lost", "looked for", "gave away", "dreamt of"),
    ("a ball", "the big tree", "some bread", "½ cup", "<b>bold</b>", "東京", "the blue boat"),
    ("in the garden", "near the lake", "under the bed", "at school", "behind the barn"),
)
NONSENSE = [
    b"",
    b"{",
    b"\xff",
    b"[1e999]",
    b'{"text": 5}',
    b'{"text": NaN}',
    b'{"text": "\\ud800"}',
]
FILES = re.compile(rb'(?:href|src)="(/static/[^"]+)"')


def text_for(model, chance):
    """Return an example in one case of three, else a sentence, sometimes a paragraph."""
    if chance.random() < 1 / 3:
        return chance.choice(EXAMPLES[model])
    n_clauses = chance.choices([1, 2, 4, 8], weights=[50, 30, 15, 5])[0]
    if model in ("translate", "fill"):
        n_clauses = min(n_clauses, 4)
    clauses = (
        f"{' '.join(map(chance.choice, PARTS))} {chance.randint(2, 999)} times"
        for _ in range(n_clauses)
    )
    return " and then ".join(clauses) + (" [MASK]." if model == "fill" else ".")


class Person:
    """Somebody with a connection, a memory of what was asked, and a browser's cache.

    Args:
        address: the server's.
        tally: where everything is counted.
        chance: decides everything this person does.
        source: the person's own address; None: any.
        etags: the files that the browser holds.
    """

    def __init__(self, address, tally, chance, *, source=None, etags=None):
        self.address, self.source = address, source
        self.http = self.open_browser()
        self.tally, self.chance, self.etags = tally, chance, dict(etags or {})
        self.asked: list[tuple[dict[str, Any], dict[str, str]]] = []
        self.seen: list[str] = []

    def open_browser(self):
        """Return a client with one connection."""
        transport = httpx.AsyncHTTPTransport(
            local_address=self.source, verify=TLS, limits=httpx.Limits(max_connections=1)
        )
        return httpx.AsyncClient(
            base_url=self.address, transport=transport, headers=BROWSER, timeout=PATIENCE_SECONDS
        )

    async def act(self):
        """Do one of the things that people do."""
        name = self.chance.choices(NAMES, weights=WEIGHTS)[0]
        try:
            await ACTIONS[name](self)
        except httpx.HTTPError as error:
            self.tally.surprise(f"{name}: {type(error).__name__}: {error}")

    async def get(self, kind, path, expected=(200,), **headers):
        """Get and count the answer."""
        response = await self.http.get(path, headers=headers)
        self.tally.add(kind, response, expected)
        return response

    async def post(self, kind, path, body, expected=(200,), **headers):
        """Post JSON, or bytes as if they were, and count the answer."""
        content = body if isinstance(body, bytes) else orjson.dumps(body)
        headers = {"Content-Type": "application/json", **headers}
        response = await self.http.post(f"/api/v1/{path}", content=content, headers=headers)
        self.tally.add(kind, response, expected)
        return response

    # The page

    async def visit(self):
        """Ask for the page, every file that it names and the models, each only if it changed."""
        page = await self.get("page", "/")
        for path in dict.fromkeys(name.decode() for name in FILES.findall(page.content)):
            await self.fetch("file", path)
        # Their list changes when one of them is loaded.
        await self.fetch("models", "/api/v1/models", (200, 304))

    async def fetch(self, kind, path, expected=(304,)):
        """Ask for a file, or for the word that the one already here is still right."""
        if known := self.etags.get(path):
            response = await self.get(f"{kind}, known", path, expected, **{"If-None-Match": known})
        else:
            response = await self.get(kind, path)
        if "etag" in response.headers:
            self.etags[path] = response.headers["etag"]

    # Traces

    async def trace(self):
        """Ask for a sentence as a script does: everything that is shown by default, as JSON."""
        await self.post_trace("trace, JSON", {})

    async def view(self):
        """Ask for a sentence as the page does: half the bytes, in the binary form."""
        await self.post_trace("trace, safetensors", {"dtype": "uint16"}, **SAFETENSORS)

    async def one_head(self):
        """Ask for single heads of one layer."""
        heads = self.chance.sample(range(4), k=self.chance.randint(1, 2))
        layers = [self.chance.randrange(2)]
        members = {"capture": ["*_attention.weights"], "layers": layers, "heads": heads}
        await self.post_trace("trace, single heads", members)

    async def analyse(self):
        """Ask for analyses of a trace."""
        names = ["rollout", "head_labels", "attention_by_distance"]
        members = {"model": "stories", "capture": [], "analyses": self.chance.sample(names, k=2)}
        await self.post_trace("trace, analyses", members)

    async def edit(self):
        """Ask for the same pass with a head switched off."""
        edits = [{"kind": "heads_off", "heads": [self.chance.randrange(4)], "layer": 1}]
        members = {"model": "stories", "capture": ["logits"], "edits": edits}
        await self.post_trace("trace, edited", members)

    async def post_trace(self, kind, members, **headers):
        """Ask for a trace of some text by some model; once in a while, check its answer closely."""
        model = members.get("model") or self.chance.choices(MODELS, weights=MODEL_WEIGHTS)[0]
        request = {"model": model, "text": text_for(model, self.chance), **members}
        await self.send_trace(kind, request, headers)

    async def send_trace(self, kind, request, headers):
        """Ask for one trace and remember it."""
        response = await self.post(kind, "trace", request, **headers)
        if response.status_code != 200:
            return
        self.asked = [*self.asked[-4:], (request, headers)]
        if self.chance.random() < CHECKED:
            self.tally.n_checked += 1
            name, wrong = look_at(response, request)
            self.seen = [*self.seen[-4:], name]
            for what in wrong:
                self.tally.surprise(f"{kind}: {what}")

    async def repeat(self):
        """Repeat a recent request."""
        if self.asked:
            await self.send_trace("trace, again", *self.chance.choice(self.asked))
        else:
            await self.trace()

    async def look_again(self):
        """Return a trace computed before, by its name."""
        if not self.seen:
            return await self.trace()
        path = f"/api/v1/traces/{self.chance.choice(self.seen)}"
        response = await self.get("trace, by its id", path, (200, 404))
        if response.status_code == 200:
            known = {"If-None-Match": response.headers["etag"]}
            await self.get("trace, by its id, known", path, (304, 404), **known)
        return None

    # Everything else there is

    async def tokenize(self):
        """Tokenize a text."""
        text = text_for(self.chance.choice(MODELS), self.chance)
        await self.post("tokenize", "tokenize", {"text": text})

    async def positional(self):
        """Ask for an encoding of positions."""
        length = self.chance.choice([32, 64, 128])
        path = f"/api/v1/positional?scheme=sinusoidal&length={length}&width=64"
        await self.get("positional", path, **SAFETENSORS)

    async def generate(self, kind="generate", until=None):
        """Read a story written on to its end, or close it after some pieces."""
        text, seed = text_for("stories", self.chance), self.chance.randrange(10**6)
        body = {"text": text, "n_tokens": 20, "seed": seed}
        began, n_pieces, end = time.perf_counter(), 0, b""
        async with self.http.stream("POST", "/api/v1/generate", json=body) as response:
            async for piece in response.aiter_bytes():
                n_pieces, end = n_pieces + 1, (end + piece)[-TAIL:]
                if response.status_code == 200 and n_pieces == 1:
                    self.tally.count("generate, first event", 200, time.perf_counter() - began)
                if n_pieces == until:
                    self.tally.count(kind, LEFT)
                    return
        if response.status_code != 200 or b"event: end" in end:
            self.tally.add(kind, response, body=end)
        elif b"event: error" in end and b'"status":503' in end:
            self.tally.count(kind, REFUSED)
        else:
            self.tally.surprise(f"{kind}: a stream without an end: {end!r}")

    async def generate_and_leave(self):
        """Ask for a story, and close it in the middle."""
        await self.generate("generate, left midway", until=self.chance.randint(1, 8))

    async def leave(self):
        """Somebody who closes the page before the answer is there."""
        body = {"text": text_for("stories", self.chance)}
        request = asyncio.create_task(self.http.post("/api/v1/trace", json=body))
        await asyncio.wait([request], timeout=self.chance.uniform(0, 0.05))
        request.cancel()
        await asyncio.gather(request, return_exceptions=True)
        # httpx may count the connection of a cancelled request as busy for ever.
        await self.http.aclose()
        self.http = self.open_browser()
        self.tally.count("trace, left", LEFT)

    # Mistakes

    async def send_too_much(self):
        """Ask with a text that is too long: for the model, or for the server."""
        text = "the cat sat on the mat " * self.chance.choice([60, 300, 9_000])
        await self.post("mistake, too long", "trace", {"text": text}, (413, 422))

    async def send_nonsense(self):
        """Send malformed or invalid JSON."""
        await self.post("mistake, bad JSON", "trace", self.chance.choice(NONSENSE), (400, 422))

    async def ask_for_nothing(self):
        """Ask for a site, a model or a page that is not there."""
        unknown_site = {"text": "the cat", "capture": ["decoder.layer.*"]}
        await self.post("mistake, unknown", "trace", unknown_site, (422,))
        await self.post("mistake, unknown", "trace", {"text": "a", "model": "x"}, (404,))
        await self.get("mistake, unknown", "/nowhere", (404,))


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
    await person.http.aclose()


def look_at(response, request):
    """Return the id of a trace, and what is wrong with it.

    It may be about somebody else's text, and its rows may sum to anything but 1.
    """
    if response.headers["content-type"] == "application/json":
        members = orjson.loads(response.content)
        arrays = {name: np.array(of["data"]) for name, of in members["tensors"].items()}
    else:
        length = int.from_bytes(response.content[:8], "little")
        header = orjson.loads(response.content[8 : 8 + length])["__metadata__"]
        members = {name: orjson.loads(text) for name, text in header.items()}
        arrays = {
            name: array / 65535 if array.dtype == np.uint16 else array
            for name, array in safetensors.numpy.load(response.content).items()
        }
    wrong = ["the answer is about another text"] if members["text"] != request["text"] else []
    wrong += [
        f"rows of {name} do not sum to 1"
        for name, array in arrays.items()
        if name.endswith("_attention.weights") and abs(array.sum(-1) - 1).max() > TOLERANCE
    ]
    return str(members["id"]), wrong
