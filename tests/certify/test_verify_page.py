"""`docs/verify.html`: a certificate is dropped into it, and the proved checker answers, offline."""

from __future__ import annotations

import base64
import importlib.util
import json
from pathlib import Path

import pytest

from adversary.archive import Forgery
from adversary.honest import ALL
from browser import browser
from places import TESTS

ROOT = TESTS.parent
PAGE = ROOT / "docs" / "verify.html"
GIVE = """
(async () => {{
  const bytes = Uint8Array.from(atob({content}), (c) => c.charCodeAt(0));
  await check(new File([bytes], "given.cert"));
}})()
"""


def test_the_page_is_made_of_the_committed_checker() -> None:
    """With its digest, and a policy that allows no other script, style or request."""
    spec = importlib.util.spec_from_file_location("page", ROOT / "proved" / "page.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text = PAGE.read_text()
    assert text == module.page(), "make -C proved page"
    assert "default-src 'none'" in text and "unsafe" not in text.partition("</head>")[0]


@pytest.mark.browser
def test_a_certificate_is_proved_and_a_forgery_refused(tmp_path: Path) -> None:
    honest = ALL["walk/likelihood/expression"].certificate
    forgery = Forgery.of(honest)
    forgery["claims.0.lower"] = forgery["claims.0.lower"] + 0.01
    damaged = bytearray(honest.read_bytes())
    damaged[-1] ^= 1
    files = [honest.read_bytes(), forgery.save(tmp_path / "forged.cert").read_bytes(), bytes(damaged)]
    verdict = "document.getElementById('verdict')"
    found = []
    with browser() as chromium:
        chromium.open(PAGE)
        for content in files:
            chromium.evaluate(f"{verdict}.className = ''")
            chromium.evaluate(GIVE.format(content=json.dumps(base64.b64encode(content).decode())))
            chromium.wait(lambda: bool(chromium.evaluate(f"{verdict}.className")))
            found.append(chromium.evaluate(f"[{verdict}.className, {verdict}.textContent]"))
        assert chromium.problems() == []
        asked = [url for url in chromium.requests() if not url.startswith(("file:", "blob:"))]
    assert asked == [] and [kind for kind, _ in found] == ["proved", "failed", "failed"]
    words = [text.partition("\n")[2] for _, text in found]
    assert words[0].startswith("PROVED: robust policy in [") and "theorems: learned_sound" in words[0]
    assert words[1].startswith("REFUSED: robust policy") and words[2].startswith("NO CERTIFICATE: ")
