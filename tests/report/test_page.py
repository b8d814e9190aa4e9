"""The report as a document: what it says, that it is whole and closed, and what damaged results end in.

Also of `cli/report.py`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from cases.coins import counted, two_coins
from learning_cases import case, counts_of
from report_cases import DELTA, copy_stored, write_plain
from tightrope.certify.certificate_file import as_file
from tightrope.certify.problem import to_problem
from tightrope.certify.solved import to_certificate
from tightrope.cli.app import run as command
from tightrope.errors import InputError
from tightrope.io.results import Projection, ResultDocument, read_result
from tightrope.learning.result_files import regions_beside
from tightrope.model.ranges import ranges_over_box
from tightrope.numerics.text import interval_text, text_below
from tightrope.report.draw_regions import pairs_of
from tightrope.report.draw_widths import EVENTS, ranges_before_data
from tightrope.report.page import inline_svg
from tightrope.report.policy_map import MOST_BINS, MapVariable, PolicyMap, read_policy_map
from tightrope.report.statement import advice, question_sentence, statement
from tightrope.report.style import PAGE, save_figure
from tightrope.report.write import load_policies, load_run, write_report
from tightrope.solver.solve import solve
from tightrope.verdict import Word


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_stored(tmp_path_factory.mktemp("report") / "aircraft")


@pytest.fixture(scope="module")
def text(result: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_report(result, tmp_path_factory.mktemp("pages") / "report.html").read_text()


class Outline(HTMLParser):
    """Tags with their attributes, and that every tag is closed."""

    def __init__(self, text: str):
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def edited(result: Path, folder: Path, **changes: Any) -> Path:
    """A copy of the document with some fields changed."""
    content = json.loads((result / "result.json").read_text())
    content.update(changes)
    folder.mkdir(exist_ok=True)
    (folder / "result.json").write_text(json.dumps(content))
    return folder


# --- what the page says --------------------------------------------------------------------


def test_the_page_is_closed_small_and_its_own_policy_admits_only_itself(text: str) -> None:
    outline = Outline(text)
    assert len(text.encode()) < 1_000_000
    for tag, attributes in outline.tags:
        assert not {"src", "srcset", "action", "style", "onclick"} & set(attributes), tag
        assert (attributes.get("href") or "#").startswith("#")
    assert set(re.findall(r"https?://[^\"'\s<]+", text)) <= {"http://www.w3.org/2000/svg"}
    (rules,) = [a["content"] for t, a in outline.tags if a.get("http-equiv") == "Content-Security-Policy"]
    assert rules is not None and rules.startswith("default-src 'none'; ")
    for tag in ("style", "script"):
        found = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        assert len(found) == 1
        digest = base64.b64encode(hashlib.sha256(found[0].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in rules


def test_every_section_is_there_and_every_picture_has_words(text: str) -> None:
    outline = Outline(text)
    present = {attributes.get("id") for _, attributes in outline.tags}
    assert {
        "answer", "assumption", "intervals", "policy", "regions", "parameters", "widths", "binding",
        "rule", "ledger", "provenance", "command",
    } <= present  # fmt: skip
    targets = {(a["href"] or "")[1:] for t, a in outline.tags if t == "a"}
    assert targets and targets <= present
    pictures = [a for t, a in outline.tags if t == "svg" and "aria-hidden" not in a]
    assert len(pictures) >= 9
    assert all(a.get("role") in ("img", "group") and a.get("aria-label") for a in pictures)
    assert all(a.get("aria-label") for _, a in outline.tags if a.get("tabindex") == "0")


def test_the_answer_its_assumption_and_its_origin_are_said(result: Path, text: str) -> None:
    run = read_result(result)
    assert (
        f"PROVED: probability &gt;= {text_below(run.main.guarantee)} for the robust policy, confidence 0.999"
        in text
    )
    assert "any policy, any stopping rule, at all times at once" in text
    assert "Results with the same confidence budget hold simultaneously" in text
    assert "tightrope learn 'bench:aircraft(8,4)' --data 'my data.parquet'" in unescape(text)
    assert run.model.hash in text
    for line in run.main.ledger.lines:
        assert line in unescape(text)
    for name, version in run.versions.items():
        assert f"<dt>version: {name}</dt><dd><code>{version}</code></dd>" in text
    assert "<dt>seed</dt><dd><code>4</code></dd>" in text
    assert f"The {run.main.binding.total} limiting events" in text
    assert run.main.binding.total > 0


@pytest.mark.parametrize(
    ("text", "maximises", "asked"),
    [
        ('Pmax=? [ F "goal" ]', True, "How high a probability of reaching “goal” can a policy guarantee"),
        (
            'Pmax=? [ !"hit" U<=8 "goal" ]',
            True,
            "probability of reaching “goal” within 8 steps without meeting “hit” before can a policy",
        ),
        ('Pmax=? [ G<=5 "ok"|"fine" ]', True, "probability of always staying in “ok” or “fine” for 5 steps"),
        (
            "Pmin=? [ F[2,5] x=4 ]",
            False,
            "keep the probability of reaching a state with x = 4 after 2 to 5 steps",
        ),
        ('Pmax=? [ G F "a" ]', True, "How high a probability of satisfying the formula can"),
        ('R{"fuel"}min=? [ F "done" ]', False, "How low can a policy keep the expected cost (“fuel”) until"),
        ('R{"won"}max=? [ C<=50 ]', True, "an expected reward (“won”) in the first 50 steps can a policy"),
        ("Rmin=? [ S ]", False, "the expected cost per step in the long run, given the data"),
        ("Rmax=? [", True, "How high an expected reward can a policy guarantee"),
    ],
)
def test_properties_are_asked_in_words(text: str, maximises: bool, asked: str) -> None:
    assert asked in question_sentence(text, maximises)


def test_words_of_the_method_are_explained_and_the_model_is_assumed(text: str) -> None:
    outline = Outline(text)
    present = {attributes.get("id") for _, attributes in outline.tags}
    for word in ("sets", "region", "ledger"):
        assert f"word-{word}" in present and f'href="#word-{word}"' in text
    assert "The model has the states and transitions of the process" in text
    assert "How high a probability of" in text and "As a property: <code>Pmax" in text


def test_pairs_that_the_data_pin_down_come_first(result: Path) -> None:
    run = read_result(result)
    known = {name: (span.lower, span.upper) for name, span in run.parameters.items()}
    first, second, third = list(known)[:3]

    def shape(pair: tuple[str, str], width: float) -> Projection:
        (a, b), (c, d) = known[pair[0]], known[pair[1]]
        ends = (
            (a, c),
            (a + width * (b - a), c),
            (b, d),
            (b - width * (b - a), d),
        )  # a strip along the diagonal
        return Projection(*pair, list(ends))

    wide, strip = shape((first, second), 0.9), shape((second, third), 0.05)
    region = structs.replace(run.regions[0], projections=[wide, strip])
    changed = run.having(regions=[region])
    assert pairs_of(changed) == [(second, third), (first, second)]


@pytest.mark.usefixtures("empty_pictures")
def test_the_digest_of_the_certificate_is_shown(result: Path, tmp_path: Path) -> None:
    known = case("aircraft(8,4)")
    problem, solution = to_problem(known.truth, known.objective), solve(known.truth, known.objective)
    digest = as_file(to_certificate(problem, solution)).save(tmp_path / "a.cert")
    page = write_report(result, tmp_path / "r.html", certificate=tmp_path / "a.cert").read_text()
    assert f"<dt>certificate</dt><dd><code>{digest}</code></dd>" in page
    other = to_certificate(problem, solution, about={"model_hash": "0"})
    as_file(other).save(tmp_path / "b.cert")
    with pytest.raises(InputError, match="a certificate of another model"):
        load_run(result, certificate=tmp_path / "b.cert")
    shown = load_run(result, certificate=tmp_path / "a.cert").about_certificate
    (claim,) = to_certificate(problem, solution).claims
    assert shown[f"claimed of the {claim.name}"] == interval_text(claim.lower, claim.upper)


def test_sentences_about_bounds_are_true_after_rounding(result: Path) -> None:
    run = read_result(result)
    said = statement(run)
    shown = re.search(r"lies in \[([0-9.]+), ([0-9.]+)\]", said.answer)
    (bound,) = re.findall(r"is at least ([0-9.]+[0-9])", advice(run)[1][1])
    assert shown is not None
    low, high = map(float, shown.groups())
    assert run.main.guarantee - 1e-4 < float(bound) <= run.main.guarantee
    assert low <= run.main.robust_policy.lower and run.main.robust_policy.upper <= high


# --- results of all sorts ------------------------------------------------------------------


@pytest.mark.usefixtures("empty_pictures")
def test_an_infinite_cost_an_empty_region_and_a_stopped_solver_are_reported(
    result: Path, tmp_path: Path
) -> None:
    content = json.loads((result / "result.json").read_text())
    last = content["results"][-1]
    last.update(
        guarantee="inf", optimistic=1.5, robust_policy={"lower": 1.5, "upper": "inf"},
        status="time limit reached", fallback=True, value=None,
        verdict="contradicted", contradiction="the region is empty: so the model is likely wrong.",
        why="the region is empty: so the model is likely wrong.",
    )  # fmt: skip
    last["assumptions"].append({"name": "ends", "kept": "unknown", "why": "no column says it"})
    folder = edited(
        result, tmp_path / "r", results=[last], maximises=False, property="Rmin=? [ C ]", truth=None
    )
    run = read_result(folder)
    assert math.isinf(run.main.robust_policy.upper)
    page = write_report(folder).read_text()
    Outline(page)
    assert (folder / "report.html").is_file()
    for words in (
        "<h1>CONTRADICTED: the data do not fit the model</h1>", "<title>CONTRADICTED: ",
        "the model is likely wrong. Tied sets were used instead", "The region is empty",
        "Do not act on this result", "expected cost", "[1.5, inf]",
    ):  # fmt: skip
        assert words in page
    last.update(verdict="limit", why="time limit reached", contradiction=None)
    folder = edited(folder, tmp_path / "s", results=[last])
    page = write_report(folder).read_text()
    for words in ("has no finite upper bound", "time limit reached"):
        assert words in page
    assert "with confidence" not in page.split("<main>")[0]


@pytest.mark.costly("test_the_page_is_closed_small_and_its_own_policy_admits_only_itself")
def test_a_model_with_one_parameter_and_no_variables(tmp_path: Path) -> None:
    model = two_coins()
    counts = counted(model, (800, 200), (400, 600))
    folder = write_plain(tmp_path / "r", model, counts, 'Pmax=? [ F "won" ]', 'Pmax=? [ F "won" ]')
    run = load_run(folder)
    assert run.regions[0].polygons == {}
    policies = load_policies(run)
    assert policies is not None
    assert [v.name for v in policies.variables] == ["state"]
    assert policies.axes == (0, 0)
    page = write_report(folder).read_text()
    Outline(page)
    assert 'id="parameters"' in page and 'id="regions"' not in page
    assert "not recorded" in page


@pytest.mark.usefixtures("empty_pictures")
def test_a_minimal_document_is_enough(result: Path, tmp_path: Path) -> None:
    folder = edited(result, tmp_path / "r", events=None, regions=[], truth=None, command=[])
    page = write_report(folder).read_text()
    Outline(page)
    assert "its files are not beside the result" in page


PRESS = """mdp
const double wear;
module press
  worn : [0..1] init 0;
  [run] worn=0 -> wear : (worn'=1) + 1-wear : true;
  [wait] worn=0 -> wear/2 : (worn'=1) + 1-wear/2 : true;
  [fix] worn=1 -> (worn'=0);
endmodule
rewards "output" [run] true : 1; endrewards
"""


@pytest.mark.parametrize(
    ("waited", "first", "more"),
    [
        (50, "Always run.", "Long-run average output &gt;= 0.880"),
        (
            900,
            "Do not act on this result: the data contradict the model. Fix the model first.",
            "under the contradicted model",
        ),
    ],
)
def test_the_page_of_an_average_begins_with_what_to_do(
    waited: int, first: str, more: str, tmp_path: Path
) -> None:
    model, log, out = tmp_path / "press.prism", tmp_path / "log.csv", tmp_path / "out"
    model.write_text(PRESS)
    rows = ["worn,action,worn_next,count", "0,run,1,200", "0,run,0,1800"]
    rows += [f"0,wait,1,{waited}", f"0,wait,0,{1000 - waited}", "1,fix,0,500"]
    log.write_text("\n".join(rows) + "\n")
    asked = ["--prop", 'R{"output"}max=? [ S ]', "--param", "wear=0.05:0.95", "--sets", "tied"]
    code = command(["learn", str(model), *asked, "--data", str(log), "--ends", "complete", "-o", str(out)])
    page = write_report(out).read_text()
    Outline(page)
    (rule,) = re.findall('<p class="rule">(.*)</p>', page)
    assert (code, rule) == (int(waited == 900), first) and more in page


def test_words_from_models_cannot_become_markup(result: Path, tmp_path: Path) -> None:
    evil = "</script><script>alert(1)</script><img src=x>\"'&"
    content = json.loads((result / "result.json").read_text())
    content["model"]["source"] = content["property"] = evil
    content["expressions"]["text"] = [evil] * len(content["expressions"]["text"])
    content["results"][0]["notes"] = [evil]
    folder = edited(result, tmp_path / "r", **content)
    files = content["results"][-1]["files"]
    for name in files:
        (folder / name).parent.mkdir(exist_ok=True)
        policy = (result / name).read_text().replace('"action": "up"', '"action": "</script><b>up"')
        (folder / name).write_text(policy)
    page = write_report(folder).read_text()
    assert "<img" not in page and "<b>up" not in page and page.count("<script") == 2
    Outline(page)


def test_results_side_by_side(result: Path, tmp_path: Path) -> None:
    content = json.loads((result / "result.json").read_text())
    (alone_region,) = [region for region in content["regions"] if region["kind"] == "likelihood"]
    (outcome,) = [entry for entry in content["results"] if entry["sets"] == "expression"]
    changed = {**outcome, "region": "likelihood"}
    other = edited(result, tmp_path / "other", regions=[alone_region], results=[changed])
    alone = read_result(other)
    both = load_run(other, [result])
    assert [region.kind for region in alone.regions] == ["likelihood"]
    assert {region.kind for region in both.regions} == {"likelihood", "polytope", "ellipsoid"}
    assert both.main == alone.main
    assert "rectangular · polytope" in {label for label, _ in both.shown}
    assert len(both.shown) == 7
    foreign = edited(result, tmp_path / "foreign", property='Pmax=? [ F "goal" ]')
    with pytest.raises(InputError, match="another model or property"):
        load_run(other, [foreign])


def test_regions_beside_contain_the_true_value_in_every_shadow(result: Path) -> None:
    known = case("aircraft(8,4)")
    entries = regions_beside(read_result(result).regions[:1], known.model, counts_of("aircraft(8,4)"), DELTA)
    assert [entry.kind for entry in entries] == ["ellipsoid", "likelihood"]
    point = dict(zip(known.model.parameters.names, map(float, known.instance.truth), strict=True))
    for entry in entries:
        assert len(entry.projections) == 3
        for shadow in entry.projections:
            corners = np.array(shadow.polygon) - [point[shadow.x], point[shadow.y]]
            following = np.roll(corners, -1, axis=0)
            turn = corners[:, 0] * following[:, 1] - corners[:, 1] * following[:, 0]
            assert np.all(turn >= -1e-6)


def test_ranges_before_the_data_are_those_of_the_model(result: Path) -> None:
    run = read_result(result)
    model = case("aircraft(8,4)").model
    low, high = ranges_over_box(model.expressions, model.parameters.lower, model.parameters.upper)
    listed = model.expressions.nonconstant
    found = ranges_before_data(run, range(len(listed)))
    assert np.allclose([s.lower for s in found], np.maximum(low[listed], 0.0), atol=1e-12)
    assert np.allclose([s.upper for s in found], np.minimum(high[listed], 1.0), atol=1e-12)
    last = run.main.spans
    assert sum(s.width for s in last) < 0.5 * sum(s.width for s in found)


# --- policies ------------------------------------------------------------------------------


def test_the_policy_map_is_the_policy(result: Path) -> None:
    policies = load_policies(read_result(result))
    assert policies is not None
    assert list(policies.policies) == ["robust", "optimistic"]
    entries = json.loads((result / "coupled" / "robust-policy.json").read_text())["policy"]
    assert policies.states == len(entries)
    names = [variable.name for variable in policies.variables]
    for row in (0, len(entries) // 2, len(entries) - 1):
        shown = {v.name: v.labels[v.column[row]] for v in policies.variables}
        state, action, _ = entries[row]
        assert shown == dict(zip(names, map(str, state), strict=True))
        assert policies.actions[policies.policies["robust"][row]] == action


def test_of_a_large_policy_a_random_sample_is_shown() -> None:
    """Every fourth state in their order had a tenth of the values of the fastest variable."""
    index = np.arange(96_000)
    columns = [index % 40, index // 40 % 48, index // 1920]
    variables = tuple(
        MapVariable(name, tuple(map(str, range(int(column.max()) + 1))), column)
        for name, column in zip("abc", columns, strict=True)
    )
    policies = {"robust": columns[0] % 3, "optimistic": columns[1] % 3, "given": columns[2] % 3}
    facts: Any = PolicyMap(variables, ("x", "y", "z"), policies).to_json()
    shown = np.array([one["column"] for one in facts["variables"]])
    assert facts["states"] == 96_000 and facts["fixed"] == {}
    assert shown.shape == (3, 25_000) and facts["rows"] == (shown % 3).tolist()
    counts = [
        np.bincount(column) * variable.column.max() for column, variable in zip(shown, variables, strict=True)
    ]
    assert all(count.min() > 20_000 and count.max() < 30_000 for count in counts)
    assert len(json.dumps(facts)) < 700_000


def test_many_values_share_bins(tmp_path: Path) -> None:
    lines = ",\n".join(
        json.dumps({"state": {"money": 7 * i, "lucky": i % 2 == 0}, "action": "bet", "choice": 0})
        for i in range(100)
    )
    file = tmp_path / "p.json"
    file.write_text('{"format": "tightrope policy", "version": 1, "policy": [\n' + lines + "\n]}\n")
    policies = read_policy_map({"robust": file})
    assert policies is not None
    money, lucky = policies.variables
    assert len(money.labels) <= MOST_BINS and money.labels[0] == "0–14" and money.labels[-1].endswith("693")
    assert lucky.labels == ("false", "true") and lucky.column[:2].tolist() == [1, 0]
    assert read_policy_map({"robust": tmp_path / "p.json"}) is not None
    file.write_text('{"policy": [\n{"state": "hungry", "action": "b"}\n]}')
    policies = read_policy_map({"robust": file})
    assert policies is not None and policies.variables[0].labels == ("hungry",)
    file.write_text('{"variables": ["x", "y"], "policy": [\n[[1], "b", 0]\n]}')
    with pytest.raises(InputError, match="this is not a policy: cannot reshape"):
        read_policy_map({"robust": file})


# --- the command, and damaged results --------------------------------------------------------


@pytest.mark.usefixtures("empty_pictures")
def test_the_command_writes_the_page(
    result: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "r.html"
    assert command(["report", str(result / "result.json"), "-o", str(target), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"report": str(target), "files": [str(target)]}
    assert target.read_text().startswith("<!DOCTYPE html>")
    assert command(["report", str(tmp_path / "nothing"), "-o", str(target)]) == 2
    assert "there is no result" in capsys.readouterr().err
    assert command(["report", str(result), "-o", str(tmp_path / "no" / "r.html")]) == 2
    assert "there is no directory" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "this is not JSON"),
        ("[]", "this is no 'tightrope result': Expected 'object', got 'array'"),
        ('{"format": "tightrope policy"}', "not a 'tightrope result'"),
        ('{"format": "tightrope result", "version": 9}', "has version 9"),
        (
            '{"format": "tightrope result", "version": 2}',
            "this is no 'tightrope result': missing: 'versions'",
        ),
    ],
)
def test_a_file_that_is_no_result_is_refused(content: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text(content)
    with pytest.raises(InputError, match=re.escape(words)):
        read_result(tmp_path)


def test_any_missing_or_wrong_field_ends_in_words(result: Path, tmp_path: Path) -> None:
    whole = json.loads((result / "result.json").read_text())
    optional = {
        "certificate",
        "policy",
        "truth",
        "events",
        "value",
        "region",
        "contradiction",
        "misfit",
        "files",
    }
    optional |= {"conflict", "empty", "widths"}  # not read: said by the verdict, drawn from the bounds
    optional |= {"coupled", "fit"}
    for holder, keys in ((whole, list(whole)), (whole["results"][0], list(whole["results"][0]))):
        for key in keys:
            kept = holder[key]
            for damage in ("missing", 7.5, "text", [], {}):
                if damage == "missing":
                    del holder[key]
                else:
                    holder[key] = damage
                (tmp_path / "result.json").write_text(json.dumps(whole))
                try:
                    assert isinstance(read_result(tmp_path), ResultDocument)
                except InputError as error:
                    assert key in str(error) or "result" in str(error)
                else:
                    assert damage != "missing" or key in optional
            holder[key] = kept


def test_the_first_card_says_what_to_do_and_why(result: Path, text: str) -> None:
    run = read_result(result / "result.json")
    heads = ["", "Promise", "Today's policy", "More data", "Weakest assumption"]
    assert [head for head, _ in advice(run)] == [*heads, "Review"]
    said = dict(advice(run))
    assert f"{3 * run.data.steps:,} more steps" in said["More data"]
    assert unescape(text).index(said["Promise"]) < text.index('id="intervals"') < text.index('id="regions"')
    policy = run.main.robust_policy
    width = policy.upper - policy.lower
    sure = structs.replace(run.main, verdict=Word.PROVED, why="", assumptions=[])
    below = -2 * width if run.maximises else 2 * width
    for step, words in (
        (below, "so the robust policy is better by at least "),
        (0.0, "neither policy is proved better"),
    ):
        value = structs.replace(policy, lower=policy.lower + step, upper=policy.upper + step)
        told = dict(advice(run.having(results=[structs.replace(sure, value=value)])))["Today's policy"]
        assert words in told
        if step:
            assert float(told.partition(words)[2].split()[0].rstrip(".")) == pytest.approx(width, rel=1e-3)


def marked(content: Any, key: str = "") -> Any:
    """Control characters behind every text of a document that is shown."""
    if isinstance(content, dict):
        return {name: marked(value, name) for name, value in content.items()}
    if isinstance(content, list):
        return [marked(value, key) for value in content]
    shown = ("text", "name", "title", "why", "lines", "notes", "reasons", "outcome", "misfit", "x", "y")
    return f"{content}\x01\x1b[31m\x00" if isinstance(content, str) and key in shown else content


def test_control_characters_in_names_are_written_out(result: Path, tmp_path: Path) -> None:
    """In figures, tips and words: a page and an SVG file hold none that XML may not have."""
    content = marked(json.loads((result / "result.json").read_text()))
    (tmp_path / "result.json").write_text(json.dumps(content))
    run = read_result(tmp_path)
    svg = inline_svg(EVENTS.figure(run, PAGE), "events", EVENTS.words(run))
    file = save_figure(EVENTS.figure(run), tmp_path / "events.svg").read_text()
    for picture in (svg, file):
        assert "\\x01" in picture and not re.search("[\x00-\x08\x0b-\x1f]", picture)


@pytest.mark.parametrize("place", ["model", "results"])
def test_a_result_that_is_not_utf_8_is_refused(
    place: str, result: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    raw = (result / "result.json").read_bytes()
    at = raw.index(f'"{place}"'.encode()) + 30
    (tmp_path / "result.json").write_bytes(raw[:at] + b"\xff" + raw[at:])
    assert command(["report", str(tmp_path)]) == 2
    assert "this is not JSON: 'utf-8' codec can't decode byte 0xff" in capsys.readouterr().err


FIT = {
    "verdict": "evidence growing",
    "alarm": True,
    "e_value": 10.0,
    "log_e_value": 2.3,
    "alpha": 0.001,
    "events": 10,
    "first_alarm": None,
    "ordered": True,
    "nominal": [],
    "text": "growing",
    "looks": [{"events": 5, "log_e_value": 1.0}, {"events": 10, "log_e_value": 2.3}],
    "suspects": [],
}


@pytest.mark.parametrize(("change", "value"), [("alpha", -1e308), ("alpha", 0.0)])
def test_numbers_that_do_not_fit_together_are_the_files_fault(
    change: str, value: Any, result: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = json.loads((result / "result.json").read_text())
    content["results"][-1]["fit"] = FIT | {change: value}
    (tmp_path / "result.json").write_text(json.dumps(content))
    assert command(["report", str(tmp_path)]) == 2
    assert "do not fit together" in capsys.readouterr().err


def test_errors_of_files_that_were_not_changed_stay_errors(
    result: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_down(*given: object) -> str:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("tightrope.report.write.page", break_down)
    own = copy_stored(tmp_path / "own")
    digest = hashlib.sha256((own / "result.json").read_bytes()).hexdigest()
    manifest = {
        "format": "tightrope manifest",
        "version": 1,
        "kind": "learn",
        "files": {"result.json": digest},
    }
    (own / "tightrope-manifest.json").write_text(json.dumps(manifest))
    assert command(["report", str(own)]) == 70
    (own / "result.json").write_text((own / "result.json").read_text() + "\n")
    assert command(["report", str(own)]) == 2
