"""The name and version of the distribution, and a check that none other has the package's name."""

from importlib import metadata

DISTRIBUTION = "headlight-viz"  # the name `headlight` of the package index is another project's


def check_alone() -> None:
    """Refuse an environment that holds the other project whose package is `headlight`.

    Raises:
        ImportError: it is installed; each has replaced some of the other's files.
    """
    try:
        other = metadata.version("headlight")
    except metadata.PackageNotFoundError:
        return
    raise ImportError(
        f"a distribution named headlight ({other}) is installed here; its package and that of "
        f"{DISTRIBUTION} have one name and cannot share an environment; run: pip uninstall -y "
        f"headlight && pip install --force-reinstall --no-deps {DISTRIBUTION}"
    )


check_alone()
__version__ = metadata.version(DISTRIBUTION)
