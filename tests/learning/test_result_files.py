"""What a learning run writes: whole directories, policies, models that Storm solves to the same values."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import stormpy
import umbi.umb

from learning_cases import FAMILIES, case, counts_of
from places import TESTS
from same_model import assert_same_model
from tightrope.ambiguity.sets import SetsKind
from tightrope.errors import InputError
from tightrope.io.drn.read import read_drn
from tightrope.io.explicit import read_explicit
from tightrope.io.umb import write_umb
from tightrope.learning.learn import learn, learn_all
from tightrope.learning.options import LearnOptions
from tightrope.learning.result import LearningResult
from tightrope.learning.result_files import Export, Setting, document, write_results
from tightrope.model.mdp import IntervalMDP
from tightrope.model.policy import Policy
from tightrope.regions.registry import own_kinds

ROOT = TESTS.parent


def learned(name: str, **asked: Any) -> LearningResult:
    known = case(name)
    return learn(known.problem, counts_of(name), delta=0.01, **asked)


def written(results: list[LearningResult], name: str, path: Path, **asked: Any) -> dict[str, Any]:
    setting = Setting(f"bench:{name}", case(name).instance.property_text, 0.01, truth={"p": "0.5"})
    content = document(results, counts_of(name), LearnOptions(), setting)
    write_results(path, results, content, **asked)
    read: dict[str, Any] = json.loads((path / "result.json").read_text())
    return read


def by_storm(model: Any, text: str, mode: Any) -> float:
    (asked,) = stormpy.parse_properties(text)
    result = stormpy.model_checking(model, asked, uncertainty_resolution_mode=mode)
    return float(result.get_value(model.initial_states[0]))


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", [name for name in FAMILIES if not name.startswith("engagement")])
def test_storm_solves_the_learned_model_to_the_same_values(name: str, tmp_path: Path) -> None:
    result = learned(name, sets="expression", region="polytope")
    written([result], name, tmp_path / "out", exports=tuple(Export))
    modes = stormpy.UncertaintyResolutionMode
    text = case(name).instance.property_text
    expected = (result.guarantee, result.optimistic_value)
    for model in (
        stormpy.build_model_from_drn[stormpy.Interval](str(tmp_path / "out" / "learned.drn")),
        stormpy.build_model_from_umb(str(tmp_path / "out" / "learned.umb")),
    ):
        assert (model.nr_states, model.nr_transitions) == (result.model.states, result.model.transitions)
        found = [by_storm(model, text, mode) for mode in (modes.ROBUST, modes.COOPERATIVE)]
        assert found == pytest.approx(expected, rel=1e-4)


def test_all_formats_hold_the_same_model(tmp_path: Path) -> None:
    result = learned("betting(8)", sets="tied")
    out = tmp_path / "out"
    written([result], "betting(8)", out, exports=tuple(Export))
    model = result.sets.interval_model()
    assert_same_model(read_drn(out / "learned.drn"), model)
    assert_same_model(read_explicit(out / "learned"), model)
    archive = umbi.umb.read(out / "learned.umb", strict=True)
    bounds = [(entry.left, entry.right) for entry in archive.branch_to_probability or []]
    assert bounds == list(zip(model.lower.tolist(), model.upper.tolist(), strict=True))
    assert archive.branch_to_target == model.successor.tolist()
    assert archive.state_to_choices == model.choice_start.tolist()
    assert archive.valuations is not None
    assert archive.valuations["states"][5] == {
        name: int(column[5]) for name, column in model.structure.valuations.items()
    }
    assert archive.annotations is not None
    assert archive.annotations["aps"]["done"]["states"] == model.labels["done"].tolist()
    robust = Policy(model.structure, out / "robust-policy.json")
    assert robust == result.policy


def test_the_document_has_what_a_report_needs(tmp_path: Path) -> None:
    name = "betting(8)"
    known = case(name)
    results = learn_all(known.problem, counts_of(name), delta=0.01, region="polytope")
    content = written(list(results.values()), name, tmp_path / "out")
    assert content["format"] == "tightrope result"
    assert content["maximises"] is True
    assert {"tightrope", "python", "numpy", "numba", "highspy"} <= set(content["versions"])
    assert content["model"]["hash"] == known.model.hash()
    assert content["data"]["design"]["kind"] == "trajectories"
    unknown = len(known.model.expressions.nonconstant)
    assert content["expressions"]["total"] == len(content["expressions"]["text"]) == unknown
    truth = known.model.expressions.values(known.instance.truth)[content["expressions"]["index"]]
    for entry in content["results"]:
        lower, upper = np.array(entry["bounds"]["lower"]), np.array(entry["bounds"]["upper"])
        assert np.all((lower <= truth) & (truth <= upper))
        assert entry["files"] == [
            f"{entry['sets']}/{which}-policy.json" for which in ("optimistic", "robust")
        ]
    (region,) = content["regions"]
    assert region["kind"] == "polytope" and set(region["box"]) == {"p", "q"}
    (shadow,) = region["projections"]
    polygon = np.array(shadow["polygon"])
    low, high = np.array(list(region["box"].values())).T
    assert np.allclose(polygon.min(axis=0), low, rtol=1e-9) and np.allclose(polygon.max(axis=0), high)
    assert content["events"]["total"] == 186
    for key in ("binding", "ledger", "widths", "seconds", "notes", "reasons"):
        assert key in content["results"][-1]


def test_shadows_enclose_the_vertices() -> None:
    from tightrope.learning.result_files import shadows

    result = learned("rover(4,4)", sets="expression", region="polytope")
    region, widths = result.region, result.widths
    assert region is not None and region.vertices is not None
    assert widths.parameter_lower is not None and widths.parameter_upper is not None
    theta = region.coordinates.parameters_at(region.vertices)
    names = list(result.model.parameters.names)
    found = shadows(region, names, (widths.parameter_lower, widths.parameter_upper))
    assert len(found) == 15
    for shadow in found:
        corners = np.array(shadow.polygon)
        edge = np.roll(corners, -1, axis=0) - corners
        for point in theta[:, [names.index(shadow.x), names.index(shadow.y)]]:
            offset = point - corners
            assert np.all(edge[:, 0] * offset[:, 1] - edge[:, 1] * offset[:, 0] >= -1e-9)


def test_a_failure_while_writing_leaves_the_old_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = learned("betting(8)", sets="tied")
    written([result], "betting(8)", tmp_path / "out")
    before = (tmp_path / "out" / "result.json").read_bytes()

    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tightrope.learning.result_files.save_model", interrupted)
    with pytest.raises(KeyboardInterrupt):
        written([result], "betting(8)", tmp_path / "out", exports=[Export.DRN])
    assert (tmp_path / "out" / "result.json").read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


def test_infinite_values_are_strings(tmp_path: Path) -> None:
    known = case("engagement(3)")
    result = learn(known.problem, known.counts(2, 1), delta=0.01, sets="tied")
    assert result.guarantee == math.inf
    content = written([result], "engagement(3)", tmp_path / "out")
    assert content["results"][0]["guarantee"] == "inf"


def test_umb_needs_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tightrope.io.formats.find_spec", lambda name: None)
    model = learned("betting(8)", sets="tied").sets.interval_model()
    assert isinstance(model, IntervalMDP)
    with pytest.raises(InputError, match="UMB files need the package umbi"):
        write_umb(model, tmp_path / "x.umb")
    assert list(tmp_path.iterdir()) == []


def test_the_python_of_the_document_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "docs" / "learning.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (tmp_path / "coin.prism").write_text(
        "mdp\nconst double p;\nmodule coin\n s : [0..2] init 0;\n"
        "[toss] s=0 -> p : (s'=1) + 1-p : (s'=2);\n[stay] s>0 -> true;\nendmodule\n"
        'label "heads" = s=1;\n'
    )
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(compile(code, "docs/learning.md", "exec"), names)
    assert 0.6 in names["result"].robust.interval
    for kind in (*SetsKind, *own_kinds()):
        assert f"`{kind.value}`" in text
