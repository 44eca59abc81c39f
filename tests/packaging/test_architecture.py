"""The picture of docs/architecture.md is that of the tree."""

import os
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
