"""The command line and the small models of the tests of `app`."""

from tests.app.conftest import *  # noqa: F403 - its fixtures
