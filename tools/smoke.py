"""A release as its users meet it: from a log to a policy, a report and a certificate; then in Python.

    python smoke.py         in an environment that holds nothing but tightrope and what it depends on

Ends with exit code 0 where everything did what it should; run by `make dist` from outside the repository.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import subprocess
import sys
import tempfile
from pathlib import Path

MODEL = """mdp
const double p;
module walk
  x : [0..4] init 2;
  [walk] x>0 & x<4 -> p : (x'=x+1) + 1-p : (x'=x-1);
  [rest] x>0 & x<4 -> true;
  [stay] x=0 | x=4 -> true;
endmodule
label "home" = x=4;
"""
HOME = 'Pmax=? [ F "home" ]'
OPTIONAL = ("pandas", "polars", "gymnasium", "minari", "stormpy", "dask", "joblib", "umbi", "pytest")


def tightrope(*arguments: str, code: int = 0) -> str:
    command = [sys.executable, "-m", "tightrope", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code, f"{arguments}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout if code == 0 else done.stderr


def try_commands(folder: Path) -> None:
    model, data, out = str(folder / "walk.prism"), str(folder / "log.csv"), str(folder / "out")
    Path(model).write_text(MODEL)
    asked = ("--param", "p=0.1:0.9", "--prop", HOME)
    assert "5" in tightrope("info", model, "--param", "p=0.1:0.9")
    tightrope(
        "sample", model, "--at", "p=0.7", "--prop", HOME, "--episodes", "2000", "--seed", "1", "-o", data
    )
    proof = str(folder / "walk.cert")
    kept = ("-o", out, "--certificate", proof, "--json")
    learned = json.loads(tightrope("learn", model, *asked, "--data", data, "--delta", "0.01", *kept))
    truth = 0.7**2 / (0.7**2 + 0.3**2)
    assert 0.75 < learned["guarantee"] <= truth, learned["guarantee"]
    tightrope("verify", proof, "--model", model, *asked, "--data", data)
    subprocess.run([sys.executable, "-m", "tightrope_check.command", proof], capture_output=True, check=True)
    tightrope("report", out, "--figures", str(folder / "figures"))
    assert "<!DOCTYPE html>" in (folder / "out" / "report.html").read_text(encoding="utf-8")
    assert (folder / "figures" / "intervals.pdf").stat().st_size > 1000
    assert "missing.prism" in tightrope("info", str(folder / "missing.prism"), code=2)


def try_python() -> None:
    import tightrope as tr

    parameters = tr.Parameters.box(p=(0.1, 0.9))
    (p,) = parameters.symbols()
    rows = [(0, "toss", {1: p, 2: 1 - p}), (1, "", {1: 1}), (2, "", {2: 1})]
    model = tr.build_from_rows(rows, parameters, labels={"heads": [1]})
    truth = tr.Simulator(model.instantiate(p=0.6), model_hash=model.hash())
    result = tr.learn(tr.Problem(model, 'Pmax=? [ F "heads" ]'), truth.episodes(2000, seed=1), delta=0.01)
    assert 0.5 < result.guarantee <= 0.6 <= result.interval.upper < 0.7


def main() -> None:
    version = importlib.metadata.version("tightrope")
    assert tightrope("--version") == f"tightrope {version}\n"
    found = [name for name in OPTIONAL if importlib.util.find_spec(name) is not None]
    assert not found, f"the environment is not clean: {found}"
    origin = importlib.util.find_spec("tightrope")
    assert origin is not None and origin.origin is not None and "site-packages" in origin.origin
    with tempfile.TemporaryDirectory() as folder:
        try_commands(Path(folder))
    try_python()
    sys.stdout.write(f"tightrope {version} with Python {sys.version.split()[0]}: all went well\n")


if __name__ == "__main__":
    main()
