"""Reports that check their own certificate by the proved checker, in a real browser (`make system-deps`)."""

from __future__ import annotations

import base64
import hashlib
import html
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import tightrope as tr
from adversary.archive import Forgery
from browser import Browser, browser
from online_cases import two_coins
from places import TESTS
from tightrope.report import self_check
from tightrope.report.page import NOTHING
from tightrope.report.write import load_run, write_report
from tightrope_check.archive import load

CHECKER = TESTS.parent / "src" / "tightrope" / "report" / "checker.js"
STATUS = "document.querySelector('#self-check [role=status]')"
QUESTION = 'Pmax=? [ F "goal" ]'


@dataclass(frozen=True)
class Case:
    result: Path
    certificate: Path
    page: str


def learned(folder: Path, heads: int, **options: str | float) -> Case:
    """So many heads of 80 tosses of the first coin, 20 of 80 of the second."""
    data = [[(0, "first", 1 if i < heads else 2)] for i in range(80)]
    data += [[(0, "second", 1 if i < 20 else 2)] for i in range(80)]
    result = tr.learn(tr.Problem(two_coins(), QUESTION), data, delta=0.1, **options)
    certificate = folder / f"{heads}.cert"
    tr.certify(result, certificate)
    saved = result.save(folder / str(heads))
    return Case(saved, certificate, write_report(saved, certificate=certificate).read_text())


COVERED = {"region": "likelihood", "sets": "expression"}


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    return learned(tmp_path_factory.mktemp("coins"), 60, **COVERED)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as started:
        yield started


def shown(chromium: Browser, folder: Path, page: str) -> tuple[str, str]:
    """What the page says of itself in the end: its kind and words. It asks for nothing on the way."""
    (folder / "page.html").write_text(page)
    chromium.open(folder / "page.html")
    chromium.wait(lambda: bool(chromium.evaluate(f"{STATUS}.className")))
    assert chromium.problems() == []
    assert [url for url in chromium.requests() if not url.startswith(("file:", "blob:", "data:"))] == []
    kind, words = chromium.evaluate(f"[{STATUS}.className, {STATUS}.textContent]")
    return kind, words


def with_certificate(case: Case, content: bytes) -> str:
    """The page with another certificate in it."""
    return case.page.replace(
        base64.b64encode(case.certificate.read_bytes()).decode(), base64.b64encode(content).decode()
    )


def statement(certificate: Path) -> str:
    (claim, *_) = load(certificate).certificate.claims
    return f"PROVED: {claim.name} in [{claim.lower:.17g}, {claim.upper:.17g}], with probability 1 - "


@pytest.mark.browser
def test_a_report_checks_its_own_certificate(case: Case, chromium: Browser, tmp_path: Path) -> None:
    """The statement is the checker's. The certificate can be saved. The page allows its own scripts, and no
    others and no requests."""
    kind, words = shown(chromium, tmp_path, case.page)
    assert kind == "proved"
    assert words.startswith(f"This page has checked its own certificate: {statement(case.certificate)}")
    assert words.endswith("by a program whose correctness is proved in Coq (theorem learned_sound).")
    assert "default-src 'none'" in case.page and "unsafe" not in case.page.partition("</head>")[0]
    link = chromium.evaluate("(({download, href}) => [download, href])(document.querySelector('.save'))")
    assert link[0] == case.certificate.name and link[1].startswith("blob:")
    forbidden = chromium.evaluate("fetch(document.querySelector('.save').href).then(() => 0, () => 1)")
    assert forbidden == 1  # nothing may be asked for, not even what the page holds


@pytest.mark.browser
def test_what_a_certificate_assumes_is_said(chromium: Browser, tmp_path: Path) -> None:
    assumes = learned(tmp_path, 60, assume_support=0.01, **COVERED)
    kind, words = shown(chromium, tmp_path, assumes.page)
    assert kind == "proved" and ", if every possible transition has at least probability 0.01, by" in words


@pytest.mark.browser
def test_forged_pages_fail_or_tell_the_true_statement(case: Case, chromium: Browser, tmp_path: Path) -> None:
    claim, hint = Forgery.of(case.certificate), Forgery.of(case.certificate)
    claim["claims.0.lower"] = claim["claims.0.lower"] + 0.01
    hint["values.0.lower"] = np.minimum(hint["values.0.lower"] + 0.01, 1.0)
    for number, forged in enumerate((claim, hint)):
        content = forged.save(tmp_path / f"{number}.cert").read_bytes()
        kind, words = shown(chromium, tmp_path, with_certificate(case, content))
        assert kind == "failed" and "FAILED. REFUSED: " in words, words
    damaged = bytearray(case.certificate.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    kind, words = shown(chromium, tmp_path, with_certificate(case, bytes(damaged)))
    assert kind == "failed" and "FAILED. NO CERTIFICATE: " in words
    no_text = with_certificate(case, b"").replace('id="certificate">', 'id="certificate">?')
    kind, words = shown(chromium, tmp_path, no_text)
    assert kind == "failed" and "FAILED: " in words


@pytest.mark.browser
def test_a_certificate_of_another_result_is_told_apart(case: Case, chromium: Browser, tmp_path: Path) -> None:
    """It proves what it proves, which is not what the page is about."""
    other = learned(tmp_path, 70, **COVERED)
    page = with_certificate(case, other.certificate.read_bytes())
    kind, words = shown(chromium, tmp_path, page)
    assert kind == "failed" and statement(other.certificate) in words
    assert words.startswith("The certificate in this page is NOT the one that the report names.")


@pytest.mark.browser
def test_a_headline_that_claims_more_is_told_apart(case: Case, chromium: Browser, tmp_path: Path) -> None:
    headline = re.findall("<h1>(.*)</h1>", case.page)[0]
    bound = re.findall("&gt;= ([0-9.]+)", headline)[0]
    more = [
        headline.replace(bound, f"{float(bound) + 0.01:.5g}"),
        headline.replace("confidence 0.9", "confidence 0.99"),
        "PROVED: it always works",
    ]
    for forged in more:
        assert forged != headline
        kind, words = shown(chromium, tmp_path, case.page.replace(f"<h1>{headline}", f"<h1>{forged}"))
        assert kind == "failed" and statement(case.certificate) in words
        assert words.startswith("The headline does NOT follow from the certificate in this page.")
    less = headline.replace(bound, "0.1").replace("PROVED", "NOMINAL")
    assert shown(chromium, tmp_path, case.page.replace(headline, less))[0] == "proved"


@pytest.mark.browser
def test_what_is_not_covered_or_takes_long_is_no_failure(
    case: Case, chromium: Browser, tmp_path: Path
) -> None:
    """The page names the command that checks it."""
    uncovered = learned(tmp_path, 60, region="ellipsoid", sets="expression")
    short = case.page.replace('data-seconds="60"', 'data-seconds="-1"')
    loop = short.replace('id="checker">', 'id="checker">for (;;);')
    for page, words in (
        (uncovered.page, "does not cover this kind (NOT COVERED: "),
        (loop, "This page did not check its certificate. The check was stopped after -1 s."),
    ):
        kind, told = shown(chromium, tmp_path, page)
        elsewhere = "document.querySelector('#self-check .elsewhere')"
        assert kind == "open" and words in told
        assert not chromium.evaluate(f"{elsewhere}.hidden")
        assert "tightrope verify " in chromium.evaluate(f"{elsewhere}.textContent")


def test_a_large_certificate_is_named_and_left_out(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(self_check, "MOST_BYTES", 100)
    part = self_check.self_check(load_run(case.result, certificate=case.certificate))
    assert part.scripts == () and "<script" not in part.content
    assert "is too large for this page to check (limit 0.0001 MB)" in part.content
    assert f"<code>tightrope verify {case.certificate}</code>" in part.content


def test_a_certificate_is_found_where_it_was_written_or_beside_the_result(case: Case, tmp_path: Path) -> None:
    """By its digest: one that was written later under its name is another one."""
    run = load_run(case.result)
    digest = load(case.certificate).digest
    assert self_check.self_check(run) == NOTHING
    named = run.having(about_certificate={"file": str(case.certificate), "digest": digest})
    moved = run.having(about_certificate={"file": "gone/beside.cert", "digest": digest})
    other = run.having(about_certificate={"file": str(case.certificate), "digest": "0"})
    assert self_check.self_check(named) != NOTHING and self_check.self_check(other) == NOTHING
    assert self_check.self_check(moved) == NOTHING
    (case.result / "beside.cert").write_bytes(case.certificate.read_bytes())
    assert self_check.self_check(moved) != NOTHING
    (case.result / "beside.cert").write_bytes(b"no certificate")
    assert self_check.self_check(moved) == NOTHING


def test_the_digest_of_the_checker_is_computed_from_the_page(case: Case, tmp_path: Path) -> None:
    """By the command that the page names."""
    digest = hashlib.sha256(CHECKER.read_bytes()).hexdigest()
    (command,) = re.findall("<pre><code>python3 -c '(.*)' report.html</code></pre>", case.page)
    (tmp_path / "report.html").write_text(case.page)
    ran = subprocess.run(
        [sys.executable, "-c", html.unescape(command), str(tmp_path / "report.html")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.strip() == digest and f"<code>{digest}</code>" in case.page
