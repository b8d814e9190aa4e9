"""Write docs/verify.html: page.html with the checker and what runs it, and the digests of what may run.

python3 page.py > ../docs/verify.html
"""

from __future__ import annotations

import hashlib
import re
import sys
from base64 import b64encode
from pathlib import Path

HERE = Path(__file__).parent
PARTS = HERE.parent / "src" / "tightrope" / "report"


def page() -> str:
    """The page; its policy allows the scripts and the style that are in it, and no others."""
    checker = (PARTS / "checker.js").read_text()
    if re.search("</script|<!--", checker):
        raise SystemExit("checker.js cannot stand in a page")
    text = (HERE / "page.html").read_text().replace("@RUN@", (PARTS / "run_checker.js").read_text())
    scripts = re.findall(r"<script>(.*?)</script>", text, re.S)
    parts = {
        "@SCRIPTS@": " ".join(f"'sha256-{_digest(script)}'" for script in scripts),
        "@STYLE@": _digest(re.findall(r"<style>(.*?)</style>", text, re.S)[0]),
        "@DIGEST@": hashlib.sha256(checker.encode()).hexdigest(),
        "@CHECKER@": checker,
    }
    for name, part in parts.items():
        text = text.replace(name, part)
    return text


def _digest(text: str) -> str:
    return b64encode(hashlib.sha256(text.encode()).digest()).decode()


if __name__ == "__main__":
    sys.stdout.write(page())
