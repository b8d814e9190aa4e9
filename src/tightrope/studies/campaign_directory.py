"""The directory of a campaign: its records are appended to, so it is only ever shared with campaigns."""

from __future__ import annotations

import os
from pathlib import Path

from tightrope.errors import InputError
from tightrope.formats.atomic import explain_errors
from tightrope.formats.manifest import Manifest, read_manifest
from tightrope.formats.output_directory import refuse_other_kind
from tightrope.studies.online_records import ONLINE_FILE, read_online
from tightrope.studies.records import FILE_NAME, read_records

KIND = "bench"


def claim_campaign(directory: Path) -> None:
    """Make the directory, or refuse one that holds something else, before anything is run.

    Records of earlier versions, which have no manifest, are gone on with if they are records throughout.
    """
    with explain_errors(directory):
        directory.mkdir(parents=True, exist_ok=True)
        known = read_manifest(directory)
        if known is not None:
            refuse_other_kind(directory, known, KIND)
            return
        names = sorted(os.listdir(directory))
        if not names:
            Manifest(KIND).save(directory)
    if names and not {FILE_NAME, ONLINE_FILE} & set(names):
        raise InputError(
            f"{directory} holds other files than a campaign's ({', '.join(names[:5])}), and is left alone",
            hint="name a new directory",
        )
    if FILE_NAME in names:
        read_records(directory / FILE_NAME)
    if ONLINE_FILE in names:
        read_online(directory / ONLINE_FILE)
