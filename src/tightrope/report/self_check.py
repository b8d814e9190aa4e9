"""The part of a report that checks the report's own certificate in the reader's browser.

The page carries the certificate and the proved checker (`checker.js`, from `proved/`), and runs the one on
the other in a worker (`run_checker.js`); `self_check.js` shows the checker's statement and compares it with
the headline. The checker alone decides which kinds of certificates it covers. A page without the script
makes no statement about its certificate.
"""

from __future__ import annotations

import hashlib
import shlex
from base64 import b64encode
from pathlib import Path

from markupsafe import Markup

from tightrope.errors import InputError
from tightrope.io.results import ResultDocument
from tightrope.report.page import NOTHING, PagePart, asset, template
from tightrope_check.archive import read

MOST_BYTES = 2_000_000
"""Of a certificate in a page."""

MOST_SECONDS = 60
"""After which the page ends its check."""


def self_check(run: ResultDocument) -> PagePart:
    """For the head of the run's page; empty where no certificate is named or its file has gone."""
    named = run.about_certificate
    for path in _places(run, named.get("file")):
        size = path.stat().st_size
        content = path.read_bytes() if size <= MOST_BYTES else None
        if content is None or _digest_of(content) == named.get("digest"):
            return _part(path, content, size, named.get("digest", ""))
    return NOTHING


def _places(run: ResultDocument, file: str | None) -> list[Path]:
    """Where the file may be: where it was written, or beside the result."""
    if file is None:
        return []
    beside = [] if run.file is None else [run.file.parent / Path(file).name]
    return [path for path in (Path(file), *beside) if path.is_file()]


def _digest_of(content: bytes) -> str | None:
    try:
        return read(content).digest
    except InputError:
        return None


def _part(path: Path, content: bytes | None, size: int, digest: str) -> PagePart:
    """The certificate with the checker; without content, how to check a file of this size elsewhere."""
    checker, scripts = asset("checker.js"), (asset("run_checker.js"), asset("self_check.js"))
    text = template("self_check.html").render(
        name=path.name,
        command=shlex.join(["tightrope", "verify", str(path)]),
        certificate=None if content is None else b64encode(content).decode(),
        size=f"{size / 1e6:.1f}",
        most=f"{MOST_BYTES / 1e6:g}",
        seconds=MOST_SECONDS,
        digest=digest,
        checker=checker,
        checker_digest=hashlib.sha256(checker.encode()).hexdigest(),
        scripts=scripts,
    )
    return PagePart(Markup(text), () if content is None else scripts)
