"""The name and version of the distribution, and a check that none other has the package's name."""

from importlib import import_module, metadata
from types import ModuleType

DISTRIBUTION = "headlight-viz"  # the name `headlight` of the package index is another project's
CLIENT = "headlight-viz-client"
"""The distribution of the client alone; it holds a part of the same package."""


def version_of(name: str) -> str | None:
    """Return the version of a distribution; None if it is not installed."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def check_alone() -> str:
    """Refuse an environment with another project's package `headlight`, or two versions of this.

    Returns:
        The version.

    Raises:
        ImportError: it is installed; each has replaced some of the other's files.
    """
    if other := version_of("headlight"):
        raise ImportError(
            f"a distribution named headlight ({other}) is installed here; its package and that of "
            f"{DISTRIBUTION} have one name and cannot share an environment; run: pip uninstall -y "
            f"headlight && pip install --force-reinstall --no-deps {DISTRIBUTION}"
        )
    whole, client = version_of(DISTRIBUTION), version_of(CLIENT)
    if whole and client and whole != client:
        raise ImportError(
            f"{DISTRIBUTION} {whole} and {CLIENT} {client} are both installed, and their files are "
            f"mixed; run: pip uninstall -y {CLIENT} && pip install --force-reinstall --no-deps "
            f"{DISTRIBUTION}"
        )
    return whole or metadata.version(CLIENT)


def import_whole(name: str) -> ModuleType:
    """Import a module that the distribution of the client may lack.

    Raises:
        ImportError: it does; the message says how the module is installed.
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if version_of(DISTRIBUTION):
            raise
        raise ImportError(
            f"{name} is not in {CLIENT}, which only asks a server; run: pip uninstall -y {CLIENT} "
            f"&& pip install {DISTRIBUTION}"
        ) from error


__version__ = check_alone()
