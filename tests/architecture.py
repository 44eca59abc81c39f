"""Draw the floors of the tree from its imports, as the SVG of docs/architecture.md.

A box is a room: a folder of code, or a file next to the folders. Its floor is written down here,
the arrows are read from the imports. Of the arrows that lead down, those that a longer way implies
are left out; one that leads up is drawn in red.
"""

from html import escape

from tests.imports import MODULES, ROOT, SCRIPTS, js_imports, needed_modules

PICTURE = ROOT / "docs" / "architecture.svg"

FLOORS = {
    "the lab, a neighbour": ["lab/commands", "lab/evaluation", "lab/training", "lab/data"],
    "the commands": [
        "app/__main__",
        "app/cli",
        "app/commands",
        "app/cluster",
        "app/server",
        "app/process",
        "app/cells",
    ],
    "HTTP": ["app/main", "app/site", "app/middleware", "app/routes", "app/pages"],
    "the server's parts": ["app/services", "app/chapters", "app/circuits", "app/own_tensors"],
    "pages in one file": ["app/saved_page"],
    "requests": ["app/client", "app/tracing", "app/models", "app/joined_scripts"],
    "answers": ["app/serving", "app/serialization", "app/problems", "app/static_files"],
    "what may be asked": [
        "app/distribution",
        "app/settings",
        "app/addresses",
        "app/schemas",
        "app/analyses",
        "app/forms",
    ],
    "what is measured": [
        "atlas",
        "profiles",
        "experiments",
        "analysis",
        "optimization",
        "text_quality",
    ],
    "whole models": ["foreign", "checkpoint", "generation", "circuits"],
    "passes": ["passes", "interventions", "quantization"],
    "the paper's parts": ["parts", "attention"],
}
"""The floors of Python from above; rooms without a folder are those of model/."""
JS_FLOORS = ["main", "views", "ui", "plot", "api", "state", "rules", "trace", "words"]
WIDTH, BOX, HEIGHT, GAP, LEFT, JS_LEFT = 1180, 132, 34, 40, 150, 1010
STYLE = """text{font:13px system-ui,sans-serif;fill:#1c1b19}.floor{fill:#6b675f;font-size:12px}
rect{fill:#f6f3ec;stroke:#8a8478}path{fill:none;stroke:#8a8478;marker-end:url(#head)}
.up{stroke:#b3261e;stroke-dasharray:4 3}"""


def room_of(module):
    """Return the room of a Python module."""
    house, *rest = MODULES[module].relative_to(ROOT).with_suffix("").parts
    if house == "model":
        if len(rest) > 1:
            return rest[0]
        is_part = all(
            MODULES[name].parent == ROOT / "model" / "attention" or room_of(name) == "parts"
            for name in needed_modules(module)
        )
        return "parts" if is_part else "passes"
    return "lab/training" if house == "lab" and len(rest) == 1 else f"{house}/{rest[0]}"


def python_arrows():
    """Return the pairs of rooms of which the first imports the second."""
    pairs = (
        (room_of(name), room_of(other))
        for name in MODULES
        if name != "headlight"  # the package's names, each of which leads to its home
        for other in needed_modules(name)
    )
    return {(first, last) for first, last in pairs if first != last}


def js_arrows():
    """Return the pairs of folders of scripts of which the first imports the second."""

    def folder(path):
        parts = path.relative_to(SCRIPTS).parts
        return parts[0] if len(parts) > 1 else "main"

    pairs = (
        (folder(path), folder(other))
        for path in sorted(SCRIPTS.rglob("*.js"))
        for other in js_imports(path)
        if other.is_relative_to(SCRIPTS)
    )
    return {(first, last) for first, last in pairs if first != last}


def reduced(arrows):
    """Return the arrows that no way of several arrows implies."""
    after = {}
    for first, last in arrows:
        after.setdefault(first, set()).add(last)

    def reaches(first, last, *, is_first):
        others = after.get(first, set()) - ({last} if is_first else set())
        return (last in others) or any(reaches(each, last, is_first=False) for each in others)

    return {pair for pair in arrows if not reaches(*pair, is_first=True)}


def places():
    """Return the left and upper edge of each room, and of each folder of scripts."""
    spots = {}
    for floor, rooms in enumerate(FLOORS.values()):
        step = (JS_LEFT - LEFT - 30) / len(rooms)
        for number, room in enumerate(rooms):
            spots[room] = LEFT + step * (number + 0.5) - BOX / 2, 40 + floor * (HEIGHT + GAP)
    for floor, folder in enumerate(JS_FLOORS):
        spots[f"js/{folder}"] = JS_LEFT, 40 + floor * (HEIGHT + GAP)
    return spots


def picture():
    """Return the SVG."""
    spots = places()
    arrows = python_arrows() | {(f"js/{first}", f"js/{last}") for first, last in js_arrows()}
    missing = {room for pair in arrows for room in pair} - spots.keys()
    assert not missing, f"give a floor in tests/architecture.py to {', '.join(sorted(missing))}"
    down = {pair for pair in arrows if spots[pair[0]][1] < spots[pair[1]][1]}
    beside = {pair for pair in arrows if spots[pair[0]][1] == spots[pair[1]][1]}
    up = arrows - down - beside
    drawn = [(pair, "down") for pair in sorted(reduced(down))] + [(pair, "up") for pair in up]
    height = 40 + len(FLOORS) * (HEIGHT + GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        "<title>The rooms of Headlight, floor above floor; arrows are imports</title>",
        f"<style>{STYLE}</style>",
        '<marker id="head" viewBox="0 0 6 6" refX="6" refY="3" markerWidth="6" markerHeight="6" '
        'orient="auto"><path d="M0 0L6 3L0 6z" style="fill:#8a8478;stroke:none"/></marker>',
        *(_arrow(spots[first], spots[last], kind) for (first, last), kind in sorted(drawn)),
        *(
            f'<text class="floor" x="8" y="{spots[rooms[0]][1] + 21:.0f}">{escape(floor)}</text>'
            for floor, rooms in FLOORS.items()
        ),
        f'<text class="floor" x="{JS_LEFT}" y="26">static/js, in the browser</text>',
        *(_box(room, *spot) for room, spot in spots.items()),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _arrow(first, last, kind):
    (x1, y1), (x2, y2) = first, last
    x1, x2 = x1 + BOX / 2, x2 + BOX / 2
    y1, y2 = (y1 + HEIGHT, y2) if kind == "down" else (y1, y2 + HEIGHT)
    bend = (y2 - y1) * 0.5
    return (
        f'<path class="{kind}" d="M{x1:.0f} {y1:.0f}C{x1:.0f} {y1 + bend:.0f} '
        f'{x2:.0f} {y2 - bend:.0f} {x2:.0f} {y2:.0f}"/>'
    )


def _box(room, x, y):
    name = room.removeprefix("js/")
    return (
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{BOX}" height="{HEIGHT}" rx="6"/>'
        f'<text x="{x + BOX / 2:.0f}" y="{y + 22:.0f}" text-anchor="middle">{escape(name)}</text>'
    )


if __name__ == "__main__":
    PICTURE.write_text(picture())
