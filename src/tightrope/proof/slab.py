"""The stages of a slab's rows: the bounds of expressions that each rests on, with bases that prove them.

The checker derives the bets itself and writes the rows from them, from a point near which each row shall be
tight, from shares of the scales, and from bounds of the expressions, which are proved over the rows of the
guard and of the stages before. Points and shares are the result's; bounds are proved again here, stage by
stage, over rows as the checker writes them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tightrope.certificate.claim import Certificate
from tightrope.certificate.hints import SlabHints
from tightrope.certificate.learned import Learned
from tightrope.certificate.numbers import LONGDOUBLE
from tightrope.certificate.region.rows import Origin as Kind
from tightrope.proof.bases import BasisFinder
from tightrope.proof.region import drop_unused, name_rows, shrink_box, with_bases, write_rows
from tightrope.proof.rows import Name, domain_names, envelope_names
from tightrope.region.polytope import Polytope


def prove_slab(link: Learned, draft: Certificate, region: Polytope) -> tuple[Certificate, Learned]:
    """The draft with all stages, and the links that know them."""
    assert draft.learned is not None and region.slab is not None and region.cut_points is not None
    coordinates, slab, statements = region.coordinates, region.slab, link.statements
    sides = max(len(slab.sides), 1)
    cuts = range(len(region.cut_points))  # also those that rows of the slab have made idle since
    common: list[Name] = [*domain_names(coordinates), *((int(Kind.CUT), i, 0) for i in cuts)]
    unknown = [(e, side) for e in link.used if not link.constant[e] for side in (0, 1)]
    forms = {e: [float(a) for a in link.space.affine(link.polynomials[e])[0]] for e, _ in unknown}
    directions = np.array([forms[e] if side else [-a for a in forms[e]] for e, side in unknown])
    stages: list[SlabHints] = []
    for number in range(len(slab.rows) // sides):
        earlier: list[Name] = [(int(Kind.SLAB), s, place) for s in range(number) for place in range(sides)]
        names = [*common, *earlier, *envelope_names(coordinates)]
        proof = name_rows(link, coordinates, names, region.cut_points)
        if coordinates.is_lifted:
            proof = shrink_box(link, proof, region.tightening.rounds)
        rows = write_rows(link, proof)
        bases = BasisFinder(rows).find(directions.reshape(-1, rows.size))
        made = slab.rows[number * sides : (number + 1) * sides]
        stages.append(
            SlabHints(
                region=drop_unused(with_bases(proof, unknown, bases)),
                point=np.array([point for point, _ in made], dtype=np.float64),
                share=np.array([np.rint(1024 * share) for _, share in made], dtype=np.int64),
            )
        )
        draft = replace(draft, learned=replace(draft.learned, slab=tuple(stages)))
        link = Learned(draft, LONGDOUBLE, statements)
    return draft, link
