"""What `tightrope learn` writes, and where: claimed before anything is computed, written after the answer.

A certificate that is to lie in the output directory belongs to it, and is listed in its manifest.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tightrope.cli.progress import PhaseProgress
from tightrope.errors import InputError
from tightrope.io.output import CERTIFICATE, OutputDirectory, OutputFile, claim, claim_file
from tightrope.io.results import CertificateFacts, ResultDocument
from tightrope.learning.result_files import KIND, RESULT, Export, fill_results

if TYPE_CHECKING:
    from tightrope.certify.certificate_file import CertificateFile
    from tightrope.learning.result import LearningResult

ANSWERED = "the answer above stands; only the files are missing"


@dataclass(frozen=True)
class Outputs:
    """The places that were asked for; `alone`: the certificate, where it does not lie in the directory."""

    directory: OutputDirectory | None
    certificate: Path | None
    alone: OutputFile | None

    @staticmethod
    def claimed(directory: Path | None, certificate: Path | None, overwrite: bool) -> Outputs:
        """Refuse what must not or cannot be written; `overwrite` is about the certificate alone."""
        claimed = None if directory is None else claim(directory, KIND)
        within = (
            claimed is not None
            and certificate is not None
            and Path(os.path.realpath(certificate.parent)) == claimed.path
        )
        apart = certificate is not None and not within
        alone = claim_file(certificate, CERTIFICATE, overwrite) if certificate and apart else None
        return Outputs(claimed, certificate, alone)

    @contextmanager
    def writing(self, progress: PhaseProgress) -> Iterator[Writer]:
        """All files take their places when the block ends; a failure says that the answer stands."""
        try:
            if self.directory is None:
                yield Writer(self, None, progress)
            else:
                with self.directory.filling(RESULT) as folder:
                    yield Writer(self, folder, progress)
        except InputError as error:
            raise InputError(error.message, error.location, error.hint or ANSWERED) from error


@dataclass(frozen=True)
class Writer:
    """Writes into the folder that becomes the output directory, and the certificate where it belongs."""

    outputs: Outputs
    folder: Path | None
    progress: PhaseProgress

    def write(
        self,
        proof: CertificateFile | None,
        results: list[LearningResult],
        content: ResultDocument | None,
        *,
        exports: Collection[Export],
    ) -> None:
        """The certificate, and the results with their document, which names it."""
        target = self.outputs.certificate
        if proof is not None and target is not None:
            self.progress("write: the certificate")
            alone = self.outputs.alone
            if alone is not None:
                alone.check()
                digest = proof.save(alone.path)
            else:
                assert self.folder is not None
                digest = proof.save(self.folder / target.name)
            if content is not None:
                content.certificate = CertificateFacts(digest, str(target))
        if self.folder is not None and content is not None:
            fill_results(self.folder, results, content, exports=exports, progress=self.progress)
