"""Libraries that are slow to load are imported when something of them is used, once."""

from __future__ import annotations

import subprocess
import sys

from tightrope.numerics.late import LateModule

PROGRAM = """
import sys
from tightrope.numerics.late import pa, sparse
assert "pyarrow" not in sys.modules and "scipy.sparse" not in sys.modules
print(pa.array([1, None]).null_count, sparse.csr_array((2, 3)).shape)
assert "pyarrow" in sys.modules and "scipy.sparse" in sys.modules
"""


def test_a_module_is_imported_when_it_is_used() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout == "1 (2, 3)\n"


def test_what_was_looked_up_is_kept() -> None:
    late = LateModule("fractions")
    assert late.Fraction(1, 2) == late.Fraction("0.5")
    assert "Fraction" in vars(late) and not hasattr(late, "no_such_name")
