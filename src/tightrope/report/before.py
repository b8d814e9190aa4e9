"""How wide each expression is before any data: its range over the domain.

The result lists expressions as exact polynomials in words; they are read back and enclosed over the box of
the domain with outward rounding (`Expressions.ranges`), cut to [0, 1] because they are probabilities.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tightrope.formats.documents.outcome import Span
from tightrope.formats.polynomial_text import PolynomialSyntaxError, parse_polynomial
from tightrope.model.expression_table import ExpressionTable
from tightrope.model.ranges import ranges_over_box
from tightrope.report.run import Run


def ranges_before_data(run: Run, shown: Sequence[int]) -> list[Span]:
    """The range of each of the `shown` expressions over the domain; [0, 1] where a text cannot be read."""
    names = list(run.parameters)
    index = {name: i for i, name in enumerate(names)}
    expressions = ExpressionTable(names)
    known: dict[int, int] = {}
    for i in shown:
        try:
            known[i] = expressions.add(parse_polynomial(run.document.expressions.text[i], index))
        except PolynomialSyntaxError:
            continue
    used = np.array(list(known.values()), dtype=np.int32)
    frozen, renumbered = expressions.freeze(used)
    box = list(run.parameters.values())
    low, high = ranges_over_box(frozen, [span.lower for span in box], [span.upper for span in box])
    place = dict(zip(known, renumbered.tolist(), strict=True))
    return [
        Span(max(float(low[place[i]]), 0.0), min(float(high[place[i]]), 1.0))
        if i in place
        else Span(0.0, 1.0)
        for i in shown
    ]
