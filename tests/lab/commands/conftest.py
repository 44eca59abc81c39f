"""The command with the tiny models of the tests of app/."""

from tests.app.conftest import headlight, tiny, translator, zoo

__all__ = ["headlight", "tiny", "translator", "zoo"]
