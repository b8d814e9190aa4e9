"""The vertices that rectangular sets over a polytope have met, in device memory.

The pool is the host's (`solver.nature.vertex_walk`): walks on the device move along the neighbours it
knows. Where a walk needs one that is not known it stops, which costs tightness and nothing else, and asks;
between sweeps the host computes what was asked for and the device gets the longer pool. Small polytopes are
walked through in advance, so that nothing is left to ask.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tightrope.ambiguity.records import Shape
from tightrope.ambiguity.vertex_walk import UNKNOWN, neighbour
from tightrope.solver.cuda.device import Device

IN_ADVANCE = 2048
"""Vertices that are looked for before anything is asked."""

ROOM = 4096
"""Questions that a launch can leave behind."""


class Pool:
    """The device's copy of a shape: affine functions apart, which the layout's table holds."""

    def __init__(self, shape: Shape, choices: int, device: Device):
        self.shape, self.device, self.met = shape, device, shape.open_pool()
        self.joint = None if shape.joint.all() else device.upload(shape.joint.view(np.uint8))
        self.vertex_of = device.xp.full(choices, -1, np.int32)
        self.rows, self.reach = device.upload(shape.rows), device.upload(shape.reach)
        self.ball = device.upload(shape.ball) if len(shape.ball) else None
        self.request = device.xp.zeros(1 + 2 * ROOM, np.int32)
        self.vertex: Any = None
        self.link: Any = None
        if self.ball is None:
            self._explore()
            self._upload()

    def fields(self) -> dict[str, Any]:
        return {
            "joint": self.joint,
            "vertex_of": self.vertex_of,
            "rows": self.rows,
            "reach": self.reach,
            "vertex": self.vertex,
            "ball": self.ball,
            "link": self.link,
            "request": self.request,
            "request_room": ROOM,
            "row_count": len(self.shape.rows),
        }

    def serve(self) -> bool:
        """Compute the neighbours asked for; whether any were."""
        if self.ball is not None:
            return False
        asked = int(self.device.download(self.request[:1])[0])
        if asked == 0:
            return False
        pairs = self.device.download(self.request[1 : 1 + 2 * min(asked, ROOM)]).reshape(-1, 2)
        for vertex, leaving in pairs:
            self._look(int(vertex), int(leaving))
        self.request[:1] = 0
        self._upload()
        return True

    def _look(self, vertex: int, leaving: int) -> None:
        met = self.met
        place = len(self.shape.reach) + leaving
        if met.link[vertex, place] == UNKNOWN:
            met.link[vertex, place] = neighbour(
                self.shape.rows, met.vertex, met.link, met.table, met.used, vertex, leaving
            )

    def _explore(self) -> None:
        vertex, size = 0, len(self.shape.reach)
        while vertex < min(int(self.met.used[0]), IN_ADVANCE):
            for leaving in range(size):
                self._look(vertex, leaving)
            vertex += 1

    def _upload(self) -> None:
        known = int(self.met.used[0])
        self.vertex = self.device.upload(self.met.vertex[:known])
        self.link = self.device.upload(self.met.link[:known])
