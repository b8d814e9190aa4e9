"""McCormick envelopes: rows that every true point (x, y, z = x·y) satisfies while x and y are in their
bounds.

From (x − x̲)(y − y̲) ≥ 0, (x̄ − x)(ȳ − y) ≥ 0, (x̄ − x)(y − y̲) ≥ 0 and (x − x̲)(ȳ − y) ≥ 0 (paper,
Section 3.2). For a square z = x² the first two are tangents, the last two the chord, and the tangent in
the middle is added: (x − m)² ≥ 0. The bounds are float64 numbers and enter the rows exactly; only the
constants x̲·y̲ are rounded, upward in the row. Chains of products handle every degree: each link is one
product of two coordinates.
"""

from __future__ import annotations

import numpy as np

from tightrope.numerics.arrays import FloatArray
from tightrope.numerics.rounding import down, error_factor, largest_over_box, up
from tightrope.statistics.coordinates import Coordinates


def envelope_rows(
    products: tuple[tuple[int, int], ...], lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Rows a·x ≤ b for all products; coordinate len(lower) − len(products) + j is product j."""
    size = len(lower)
    first = size - len(products)
    rows: list[FloatArray] = []
    bounds: list[float] = []

    def add(z: int, sign: float, x: int, slope_x: float, y: int, slope_y: float, constant: float) -> None:
        """sign·z + slope_x·x + slope_y·y ≤ constant."""
        row = np.zeros(size)
        row[z] = sign
        row[x] += slope_x
        row[y] += slope_y
        rows.append(row)
        bounds.append(constant)

    for j, (x, y) in enumerate(products):
        z = first + j
        a, b, c, d = lower[x], upper[x], lower[y], upper[y]
        if x == y:
            middle = 0.5 * (a + b)
            for point in (a, middle, b):  # z ≥ 2·point·x − point²
                add(z, -1.0, x, 2.0 * point, y, 0.0, up(point * point))
            chord = a + b  # z ≤ (a+b)·x − a·b, with a+b rounded: z ≤ chord·x − a·b + |rounding|·|x|
            spare = abs(up(chord) - down(chord)) * max(abs(a), abs(b))
            add(z, 1.0, x, -chord, y, 0.0, up(up(-(a * b)) + up(spare)))
            continue
        add(z, -1.0, x, c, y, a, up(a * c))
        add(z, -1.0, x, d, y, b, up(b * d))
        add(z, 1.0, x, -c, y, -b, up(-(b * c)))
        add(z, 1.0, x, -d, y, -a, up(-(a * d)))
    return np.array(rows).reshape(-1, size), np.array(bounds)


def product_boxes(
    products: tuple[tuple[int, int], ...], lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The box, with every product also bounded by interval arithmetic on its factors."""
    lower, upper = lower.copy(), upper.copy()
    first = len(lower) - len(products)
    for j, (x, y) in enumerate(products):
        corners = np.array(
            [lower[x] * lower[y], lower[x] * upper[y], upper[x] * lower[y], upper[x] * upper[y]]
        )
        low = max(down(float(corners.min())), 0.0) if x == y else down(float(corners.min()))
        lower[first + j] = max(lower[first + j], low)
        upper[first + j] = min(upper[first + j], up(float(corners.max())))
    return lower, upper


def coordinate_envelopes(
    coordinates: Coordinates, lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The rows of all products, those among them that are no coordinates (`Coordinates.hinged`) included."""
    rows, bounds = envelope_rows(coordinates.products, lower, upper)
    if not coordinates.denominators:
        return rows, bounds
    pairs, products = coordinates.list_hinges()
    size, count = len(lower), len(pairs)
    wider_lower, wider_upper = (np.concatenate([end, np.zeros(count)]) for end in (lower, upper))
    above, ends = envelope_rows(pairs, wider_lower, wider_upper)
    on_product = above[:, size:]  # one entry ±1 in each row
    linear = above[:, :size] + on_product @ products.linear
    rounding = np.abs(above[:, :size]) + np.abs(on_product) @ np.abs(products.linear)
    spare = rounding @ np.maximum(np.abs(lower), np.abs(upper)) + np.abs(on_product) @ np.abs(
        products.constant
    )
    slack = np.abs(on_product) @ products.slack + error_factor(4) * (spare + np.abs(ends)) * (1.0 + 1e-9)
    moved = up(up(ends - on_product @ products.constant) + up(slack))
    return np.concatenate([rows, linear]), np.concatenate([bounds, moved])


def coordinate_boxes(
    coordinates: Coordinates, lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The box, with reciprocals bounded by the range of their denominators and products by their factors."""
    if coordinates.denominators:
        lower, upper = lower.copy(), upper.copy()
        first = len(coordinates.free)
        functions = coordinates.denominator_functions()
        most = largest_over_box(functions.linear, lower, upper)
        least = -largest_over_box(-functions.linear, lower, upper)
        high = up(up(most + functions.constant) + functions.slack)
        low = down(down(least + functions.constant) - functions.slack)
        for k in np.flatnonzero((low > 0.0) | (high < 0.0)).tolist():
            lower[first + k] = max(lower[first + k], down(1.0 / high[k]))
            upper[first + k] = min(upper[first + k], up(1.0 / low[k]))
    return product_boxes(coordinates.products, lower, upper)
