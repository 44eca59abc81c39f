"""The files that the container image is built from; tests/image builds and uses it."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_only_what_the_build_needs_is_sent_to_it():
    sent = re.findall(r"^!(\S+)$", (ROOT / ".dockerignore").read_text(), flags=re.MULTILINE)
    assert set(sent) == {
        "CONTRIBUTING.md",
        "LICENSE",
        "README.md",
        "app",
        "constraints.txt",
        "docs/*.md",
        "model",
        "pyproject.toml",
        "setup.py",
        "static",
        "templates",
    }


def test_the_list_of_its_parts_is_made_of_what_the_image_holds():
    stages = (ROOT / "Dockerfile").read_text().split("\nFROM ")
    listed = re.search(r"cyclonedx-py environment .* -o (/\S+)/\S+\.cdx\.json (\S+)", stages[1])
    folder, of = listed.groups()
    assert of.startswith(f"{folder}/"), "the list is of the environment that is copied"
    assert f"COPY --from=build {folder} {folder}\n" in stages[-1]
