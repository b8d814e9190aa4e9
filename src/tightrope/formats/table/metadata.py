"""What a data file says about itself: who wrote it, for which model, and how the data were sampled.

One JSON object, kept in Parquet's key-value metadata under the key `tightrope`, and in CSV on a first line
that starts with `# tightrope:`. Files of other origin simply have none.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from tightrope.errors import InputError, Location
from tightrope.model.structure import Structure

KEY = "tightrope"
COMMENT = "#"
CSV_PREFIX = f"{COMMENT} {KEY}: "
VERSION = 1

COUNTS, TRANSITIONS = "counts", "transitions"
"""What the rows of a file are."""

Metadata = Mapping[str, object]


def structure_hash(structure: Structure) -> str:
    """The identity of the numbering of states, choices and transitions, whatever their probabilities."""
    digest = hashlib.sha256(b"structure")
    for array in (
        structure.choice_start,
        structure.transition_start,
        structure.successor,
        structure.action_of_choice,
    ):
        digest.update(array.tobytes())
    digest.update(repr(structure.action_names).encode())
    return digest.hexdigest()


def encode(metadata: Metadata) -> str:
    return json.dumps({"version": VERSION, **metadata}, sort_keys=True)


def decode(text: str, file: str) -> Metadata:
    """The metadata of a file of ours; text that is none is an `InputError`."""
    try:
        metadata = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"the file's metadata are damaged: {error.msg}", Location(file)) from error
    if not isinstance(metadata, dict) or metadata.get("version") != VERSION:
        version = metadata.get("version") if isinstance(metadata, dict) else None
        raise InputError(
            f"the file's metadata have version {version!r}; this program reads version {VERSION}",
            Location(file),
        )
    return metadata
