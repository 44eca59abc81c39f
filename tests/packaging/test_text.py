"""No committed text holds a package index's address or a path of a machine."""

import re

import pytest

REGISTRY_HOST = re.compile(
    r"\b(?:pypi|pythonhosted|npmjs|yarnpkg|unpkg|jsdelivr|cdnjs\.cloudflare|debian)\.(?:org|com|net)\b"
)
MACHINE_PATH = re.compile(r"(?<![\w.*/-])/(?:home|root|Users|work|opt|mnt)/\w")
# Users need PyTorch's index of CPU builds; nothing but these two may know it.
TORCH_INDEX = re.compile(r"\bdownload\.pytorch\.org\b")
KNOW_THE_TORCH_INDEX = {"Makefile", "Dockerfile"}


@pytest.fixture(scope="module")
def texts(root, committed):
    """Return every committed file that is text."""
    contents = {name: (root / name).read_bytes() for name in committed}
    return {name: data.decode() for name, data in contents.items() if b"\0" not in data}


@pytest.mark.parametrize("pattern", [REGISTRY_HOST, MACHINE_PATH], ids=["host", "path"])
def test_no_committed_text_names_a_registry_or_a_machine(pattern, texts):
    matches = {name: match[0] for name, text in texts.items() if (match := pattern.search(text))}
    assert matches == {}


def test_only_the_two_installers_name_the_torch_index(texts):
    know_it = {name for name, text in texts.items() if TORCH_INDEX.search(text)}
    assert know_it == KNOW_THE_TORCH_INDEX


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (REGISTRY_HOST, "from https://" + "pypi" + ".org/simple"),
        (MACHINE_PATH, "cd /" + "home/ada/headlight"),
        (MACHINE_PATH, "--find-links=/" + "opt/wheels"),
    ],
)
def test_the_patterns_find_what_they_are_for(pattern, text):
    assert pattern.search(text)
