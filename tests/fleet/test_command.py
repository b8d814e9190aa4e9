"""`learn --unit` with files: answer, certificate, `verify`, `report`; and what is refused."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from tightrope.cli.app import run

MODEL = """mdp
const double p;
module pump
  s : [0..2] init 0;
  [run] s=0 -> p : (s'=1) + 1-p : (s'=2);
  [stay] s>0 -> 1 : (s'=s);
endmodule
label "ok" = s=1;
"""
ABOUT = ["--param", "p=0:1", "--prop", 'P=? [ F "ok" ]', "--states", "index"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model, a log of 30 pumps, and the same without one of them."""
    folder = tmp_path_factory.mktemp("fleet")
    (folder / "pump.prism").write_text(MODEL)
    rng = random.Random(1)
    rows = [
        f"{8 * pump + i},pump {pump},0,run,{1 if rng.random() < 0.8 else 2}"
        for pump in range(30)
        for i in range(8)
    ]
    head = "episode,pump,state,action,next_state"
    (folder / "log.csv").write_text("\n".join([head, *rows]) + "\n")
    (folder / "fewer.csv").write_text("\n".join([head, *rows[8:]]) + "\n")
    return folder


def test_an_answer_is_written_certified_verified_and_shown(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, out, certificate = str(place / "pump.prism"), place / "out", str(place / "f.cert")
    log = ["--data", str(place / "log.csv")]
    learn = ["learn", model, *ABOUT, *log, "--unit", "pump", "--delta", "0.1"]
    assert run([*learn, "--certificate", certificate, "-o", str(out), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["verdict"] == "proved" and len(answer["units"]) == 30
    proved = answer["certificate"]["policies"]
    assert list(proved) == ["most units", "next unit", "average unit"]
    assert {file.name for file in out.iterdir()} >= {"answer.json", "units.json"}
    assert json.loads((out / "units.json").read_text())["unit"] == "pump"
    assert run(["verify", certificate, "--model", model, *ABOUT, *log, "--json"]) == 0
    verified = json.loads(capsys.readouterr().out)
    assert verified["kind"] == "fleet" and verified["bound"]["data"] is True
    assert verified["headline"].endswith("for 90 % of all units, confidence 0.9")
    assert verified["policies"]["most units"]["lower"] == proved["most units"]["lower"]
    other = ["--data", str(place / "fewer.csv")]
    assert run(["verify", certificate, "--model", model, *ABOUT, *other]) == 1
    assert "other units: 30, and your data have 29" in capsys.readouterr().err
    assert run(["report", str(out)]) == 0
    page = (out / "report.html").read_text()
    assert "for 90 % of all units" in page and "<dt>next unit</dt><dd>PROVED" in page


def test_files_are_a_directory_and_drafts_name_the_unit(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, model = str(place / "log.csv"), str(place / "pump.prism")
    single = ["learn", model, *ABOUT, "--data", log, "--unit", "pump", "-o", str(place / "x.json")]
    assert run(single) == 2
    assert "name a directory: -o DIR" in capsys.readouterr().err
    assert run(["draft", log, "--unit", "pump", "-o", str(place / "draft.prism")]) == 0
    assert f"--data {log} --unit pump" in capsys.readouterr().out.replace("\n             ", " ")
    assert run(["draft", log, "--unit", "site", "-o", str(place / "other.prism")]) == 2
    assert "the column 'site' is not in the log" in capsys.readouterr().err
