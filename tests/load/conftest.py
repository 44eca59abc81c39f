"""The load test is a program whose modules lie side by side; its tests import them as it does."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
