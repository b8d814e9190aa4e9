"""The proved checker in JavaScript, `report/checker.js`, under Node: what it accepts and refuses."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from adversary.archive import Forgery
from adversary.honest import ALL, quietly
from adversary.malformed import MALFORMED
from effort import EXPLORING
from places import TESTS
from tightrope_check.archive import load

pytestmark = pytest.mark.node

CHECKER = TESTS.parent / "src" / "tightrope" / "report" / "checker.js"
SCRIPT = """
require(process.argv[1]);
const read = (path) => globalThis.tightropeCheck(require("fs").readFileSync(path));
console.log(JSON.stringify(process.argv.slice(2).map(read)));
"""
HONEST = [
    "point/reach",
    "interval/reach",
    "domain/expression",
    "walk/anytime/tied",
    "walk/likelihood/expression",
]


def asked(*paths: Path) -> list[tuple[int, str]]:
    """(code, words) of every file."""
    command = ["node", "-e", SCRIPT, str(CHECKER), *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return [(one["code"], one["words"]) for one in json.loads(done.stdout)]


def test_honest_certificates_are_proved() -> None:
    """Its words are the claims of the file, the theorem and the digest of what was read."""
    paths = [ALL[name].certificate for name in HONEST]
    theorems = ["value_sound", "value_sound", "domain_sound", "learned_sound", "learned_sound"]
    for path, theorem, (code, words) in zip(paths, theorems, asked(*paths), strict=True):
        file = load(path)
        assert code == 0 and f"theorems: {theorem}\ndigest: {file.digest}\n" in words, words
        shown = re.findall(r"PROVED: (.*) in \[(.*), (.*?)\]", words)
        claims = file.certificate.claims
        assert [(n, float(a), float(b)) for n, a, b in shown] == [(c.name, c.lower, c.upper) for c in claims]


def test_forged_certificates_are_refused(tmp_path: Path) -> None:
    """A better claim, another hint, another count, other bytes, data whose order nobody knows."""
    honest = ALL["walk/likelihood/expression"].certificate
    paths = [tmp_path / f"{number}.cert" for number in range(5)]
    true = Forgery.of(honest)
    changes = {
        "claims.0.lower": true["claims.0.lower"] + 0.01,
        "values.0.lower": np.minimum(true["values.0.lower"] + 0.01, 1.0),
        "problem.data.batch_count": np.r_[1 << 30, true["problem.data.batch_count"][1:]],
        "problem.data.stated": np.array([0, 4]),
    }
    for path, (field, value) in zip(paths, changes.items(), strict=False):
        forgery = Forgery.of(honest)
        forgery[field] = value
        forgery.save(path)
    content = bytearray(honest.read_bytes())
    content[len(content) // 2] ^= 1
    paths[4].write_bytes(content)
    codes = [code for code, _ in asked(*paths)]
    assert codes[:2] == [1, 1] and codes[2] in (1, 2) and codes[3:] == [1, 2]


def test_malformed_files_are_refused(tmp_path: Path) -> None:
    """Among them sizes and sums that leave the range of 32 bits, which integers have there."""
    forgery = ALL["point/reach"].certificate
    names = [name for name in MALFORMED if not re.search("million|bomb", name)][:: 1 if EXPLORING else 17]
    paths = [tmp_path / f"{number}.cert" for number in range(len(names))]
    for path, name in zip(paths, names, strict=True):
        path.write_bytes(MALFORMED[name](Forgery.of(forgery)))
    found = dict(zip(names, asked(*paths), strict=True))
    assert {name: words for name, (code, words) in found.items() if code not in (1, 2, 3)} == {}


@pytest.mark.long
def test_the_certificate_of_the_demo(tmp_path: Path) -> None:
    code, out, _ = quietly(["demo", "-o", str(tmp_path / "demo"), "--json"])
    assert code == 0
    made = Path(json.loads(out)["certificate"])
    forgery = Forgery.of(made)
    forgery["claims.0.lower"] = forgery["claims.0.lower"] + 1e-6
    (code, words), (forged, _) = asked(made, forgery.save(tmp_path / "forged.cert"))
    assert (code, forged) == (0, 1) and words.startswith("PROVED: robust policy in [0.7")
