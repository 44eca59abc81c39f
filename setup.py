"""The packages, found by their folders: one name in site-packages.

app/ is the package headlight, and each folder next to it lies inside: model/ is headlight.model. A
wheel carries static/, templates/ and the documents as well. The lab may be absent: the product does
without it.

The README's links lead into the repository. In the description of a distribution they are absolute
where GITHUB_SERVER_URL and GITHUB_REPOSITORY say its address, as they do in a workflow; elsewhere
their texts remain.
"""

import os
import re
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

FOLDERS = {
    "headlight": "app",
    "headlight.docs": "docs",
    "headlight.lab": "lab",
    "headlight.model": "model",
    "headlight.static": "static",
    "headlight.templates": "templates",
}
there = {name: folder for name, folder in FOLDERS.items() if Path(folder).is_dir()}
with_modules = {
    ".".join([name, *path.parent.relative_to(folder).parts])
    for name, folder in there.items()
    for path in Path(folder).rglob("*.py")
}


class BuildWithDocuments(build_py):
    """Let the wheel hold the document that lies at the top of a checkout."""

    def run(self) -> None:
        """Build, then copy it."""
        super().run()
        if not self.editable_mode and Path("CONTRIBUTING.md").is_file():
            self.copy_file("CONTRIBUTING.md", str(Path(self.build_lib, "headlight")))


readme, urls = Path("README.md").read_text(encoding="utf-8"), {}
if repository := os.environ.get("GITHUB_REPOSITORY"):
    home = f"{os.environ.get('GITHUB_SERVER_URL', 'https://github.com')}/{repository}"
    readme = re.sub(r"(!\[[^\]]*\]\()(?!\w+:|#)", rf"\1{home}/raw/HEAD/", readme)
    readme = re.sub(r"(\]\()(?!\w+:|#)", rf"\1{home}/blob/HEAD/", readme)
    urls = {"Source": home, "Documentation": f"{home}/tree/HEAD/docs"}
    urls |= {"Changelog": f"{home}/blob/HEAD/CHANGELOG.md", "Issues": f"{home}/issues"}
else:
    readme = re.sub(r"!?\[([^\]]*)\]\((?!\w+:|#)[^)]*\)", r"\1", readme)

setup(
    cmdclass={"build_py": BuildWithDocuments},
    long_description=readme,
    long_description_content_type="text/markdown",
    project_urls=urls,
    package_dir=there,
    packages=sorted(with_modules | there.keys()),
)
