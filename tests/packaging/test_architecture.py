"""The picture of docs/architecture.md is that of the tree."""

import os
import re
from xml.etree import ElementTree

from tests import architecture


def test_the_picture_shows_the_imports_of_today():
    if "HEADLIGHT_RENEW_ARCHITECTURE" in os.environ:
        architecture.PICTURE.write_text(architecture.picture())
    drawn = architecture.PICTURE.read_text()
    assert drawn == architecture.picture(), "the imports have changed; run `make architecture`"
    texts = {text.text for text in ElementTree.fromstring(drawn).findall(".//{*}text")}
    assert texts >= {"app/routes", "attention", "views"}


def test_an_arrow_is_left_out_only_if_a_longer_way_implies_it():
    arrows = {("a", "b"), ("b", "c"), ("a", "c"), ("a", "d")}
    assert architecture.reduced(arrows) == arrows - {("a", "c")}


def test_every_step_of_the_ways_is_a_name_in_a_file_of_the_tree(root):
    document = (root / "docs" / "architecture.md").read_text()
    steps = re.findall(r"^\| `([^`]+)` \| `(\w+)` \|", document, re.MULTILINE)
    assert len(steps) > 40
    lost = [
        f"{name} in {path}"
        for path, name in steps
        if not (root / path).is_file() or not re.search(rf"{name}\b", (root / path).read_text())
    ]
    paths = re.findall(r"`((?:app|model|lab|static)/[\w/.]*)`", document)
    assert lost + [path for path in paths if not (root / path).exists()] == []
