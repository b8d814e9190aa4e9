"""Where the files beside the tests are."""

from pathlib import Path

TESTS = Path(__file__).parent
