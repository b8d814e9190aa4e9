"""`tightrope verify`: certificates of values and of learned results, valid, changed and damaged."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from learning_cases import case, counts_of
from tightrope.certificate.archive import Archive
from tightrope.certificate.certificate import Certificate
from tightrope.certificate.learning import LearningCertificate
from tightrope.cli.app import run
from tightrope.learning.certificate import certificate_of
from tightrope.learning.learn import learn

FAMILY = "aircraft(8,4)"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a certificate of a value and one of a learned result."""
    place = tmp_path_factory.mktemp("certificates")
    arguments = ["check", f"bench:{FAMILY}", "--certificate", str(place / "value.cert"), "--json"]
    assert run(arguments) == 0
    subject, counts = case(FAMILY), counts_of(FAMILY)
    result = learn(subject.model, counts, 0.05, subject.objective, region="polytope", sets="rectangular")
    certificate_of(result, counts, {"model": FAMILY}).save(place / "learned.cert")
    return place


def report(capsys, *arguments):
    code = run(["verify", *map(str, arguments), "--json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("exact", [(), ("--exact",)])
def test_values_are_checked_again(capsys, folder, exact):
    code, found = report(capsys, folder / "value.cert", *exact)
    assert code == 0
    assert found["valid"] and found["kind"] == "value"
    names = [check["name"] for check in found["checked"]]
    assert "upper bound is inductive" in names and "lower bound is inductive" in names
    assert all(check["passed"] for check in found["checked"])
    assert found["lower"] <= found["upper"]
    assert found["about"]["model"] == f"bench:{FAMILY}"


@pytest.mark.parametrize("exact", [(), ("--exact",)])
def test_learned_results_are_checked_link_by_link(capsys, folder, exact):
    code, found = report(capsys, folder / "learned.cert", *exact)
    assert code == 0
    assert found["valid"] and found["kind"] == "learning" and found["delta"] == 0.05
    names = [check["name"] for check in found["checked"]]
    for link in (
        "the confidence adds up",
        "event intervals follow from the counts",
        "the region's box follows from its rows",
        "transitions' bounds contain what was proved of their expressions",
        "robust policy: lower bound is inductive",
        "robust policy: upper bound is inductive",
    ):
        assert link in names
    assert found["policies"]["robust policy"] == {"lower": found["lower"], "upper": found["upper"]}
    assert any("counts" in line for line in found["covers"])


def test_words_for_people(capsys, folder, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert run(["verify", str(folder / "learned.cert")]) == 0
    printed = capsys.readouterr().out
    assert "robust policy in [" in printed and "holds" in printed and "covers" in printed


def test_claims_that_are_not_proved_exit_with_1(capsys, folder, tmp_path):
    value = Certificate.load(folder / "value.cert")
    raised = np.where(
        (value.claim.lower > 0) & (value.claim.lower < 0.9), value.claim.lower + 1e-3, value.claim.lower
    )
    claim = replace(value.claim, lower=raised, upper=np.maximum(value.claim.upper, raised))
    replace(value, claim=claim).save(tmp_path / "value.cert")
    learned = LearningCertificate.load(folder / "learned.cert")
    data = replace(learned.data, delta=learned.data.delta / 2)
    replace(learned, data=data).save(tmp_path / "learned.cert")
    for name in ("value.cert", "learned.cert"):
        code, found = report(capsys, tmp_path / name)
        assert code == 1 and not found["valid"]
        assert run(["verify", str(tmp_path / name)]) == 1
        captured = capsys.readouterr()
        assert "FAILS" in captured.out and "does not prove its claim" in captured.err


def test_files_that_are_no_certificates_exit_with_2(capsys, folder, tmp_path):
    (tmp_path / "text.cert").write_text("not a certificate")
    (tmp_path / "empty.cert").write_bytes(b"")
    data = bytearray((folder / "learned.cert").read_bytes())
    data[len(data) // 2] ^= 0xFF
    (tmp_path / "damaged.cert").write_bytes(bytes(data))
    np.savez(tmp_path / "arrays.npz", a=np.zeros(3))
    (tmp_path / "folder").mkdir()
    for name in ("text.cert", "empty.cert", "damaged.cert", "arrays.npz", "folder", "nowhere.cert"):
        assert run(["verify", str(tmp_path / name)]) == 2, name
        captured = capsys.readouterr()
        assert name in captured.err and "Traceback" not in captured.err
        assert captured.out == ""


def test_parts_of_another_kind_are_refused(capsys, folder, tmp_path):
    archive = Archive.load(folder / "value.cert")
    Archive("learning", archive.header, archive.arrays, {}).save(tmp_path / "other.cert")
    assert run(["verify", str(tmp_path / "other.cert")]) == 2
    assert "not a certificate of a learned result" in capsys.readouterr().err
    Archive("poem", archive.header, archive.arrays, {}).save(tmp_path / "poem.cert")
    assert run(["verify", str(tmp_path / "poem.cert")]) == 2


def test_exact_is_for_small_models(capsys, folder, monkeypatch):
    monkeypatch.setattr("tightrope.certificate.exact.MOST_TRANSITIONS", 10)
    for name in ("value.cert", "learned.cert"):
        assert run(["verify", str(folder / name), "--exact"]) == 2
        assert "--exact" in capsys.readouterr().err


def test_the_checker_loads_nothing_of_what_it_checks(folder):
    """Neither solvers nor statistics, regions, sets or learning, nor what they are compiled with."""
    code = (
        "import sys; from tightrope.cli.app import run\n"
        f"assert run(['verify', {str(folder / 'learned.cert')!r}, '--json']) == 0\n"
        "parts = {name.split('.')[1] for name in sys.modules if name.startswith('tightrope.')}\n"
        "foreign = {'solver', 'learning', 'statistics', 'region', 'uncertainty', 'data', 'prism'}\n"
        "assert not parts & foreign, parts\n"
        "assert not {'numba', 'highspy', 'scipy'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
