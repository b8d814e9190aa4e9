"""What a user of Python meets first: models from mappings and tables, constraints as text, policies that are
asked, monitors that take logs, tables of results, and pictures that show in notebooks."""

from __future__ import annotations

from typing import Any

import matplotlib
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tightrope as tr
from tightrope.report.plotting import _axes

PARAMETERS = tr.Parameters.box(p=(0, 1))
PUMP: dict[str, Any] = {"up": {"run": {"up": "1 - p", "down": "p"}}, "down": {"fix": {"up": 1}}}
ROWS = {
    "state": ["up", "up", "down"],
    "action": ["run", "run", "fix"],
    "next_state": ["up", "down", "up"],
    "probability": ["1 - p", "p", "1"],
}


def test_a_function_a_mapping_and_a_table_are_one_model() -> None:
    (p,) = PARAMETERS.symbols()
    written = {"up": {"run": {"up": 1 - p, "down": p}}, "down": {"fix": {"up": 1}}}
    tables = (pd.DataFrame(ROWS), pl.DataFrame(ROWS), pa.table(ROWS))
    given = (lambda state: written[state], written, PUMP, *tables)
    models = [tr.build_from_function("up", one, PARAMETERS, labels={"broken": ["down"]}) for one in given]
    assert len({model.hash() for model in models}) == 1
    assert models[0].labels["broken"].tolist() == [False, True]
    assert models[0].structure.state_names is not None


def test_rewards_by_states_choices_and_moves() -> None:
    model = tr.build_from_function(
        "up",
        PUMP,
        PARAMETERS,
        state_rewards={"cost": {"down": 5}},
        choice_rewards={"cost": {("down", "fix"): 2}},
        transition_rewards={"falls": {("up", "run", "down"): 1}},
    )
    cost = model.rewards["cost"]
    assert cost.state is not None and cost.choice is not None
    assert cost.state.tolist() == [0, 5] and cost.choice.tolist() == [0, 2]
    value = tr.solve(model.problem('Rmin{"falls"}=? [ C<=1 ]').at(p=0.25))
    assert value.lower[0] == pytest.approx(0.25)


def test_rates_by_mappings_and_tables() -> None:
    parameters = tr.Parameters.box(lam=(0.1, 1))
    written = {0: {1: "2*lam"}, 1: {0: 1}}
    table = pd.DataFrame({"state": [0, 1], "next_state": [1, 0], "rate": ["2*lam", "1"]})
    chains = [
        tr.build_ctmc_from_function(0, one, parameters) for one in (written, lambda s: written[s], table)
    ]
    assert len({chain.hash() for chain in chains}) == 1


def test_constraints_are_text() -> None:
    domain = tr.Parameters.box(p=(0, 1), q=(0, "1/2"), where="p+q<=1, q<=0.75, p>=0.1")
    assert domain.text() == "1/10<=p<=1, 0<=q<=1/2, p + q <= 1", "a constraint never widens the box"
    assert not domain.contains({"p": 0.6, "q": 0.5}) and domain.contains({"p": 0.5, "q": 0.5})
    assert tr.Parameters.box(where=(0, 1)).names == ("where",), "a parameter may be called so"
    assert tr.Parameters.box({"my rate": (0, 1)}).names == ("my rate",)


def test_a_policy_is_asked() -> None:
    rows: list[Any] = [
        (s, a, {t: 1}) for s, a, t in ((0, "stay", 0), (0, "go", 1), (1, "back", 0), (1, "go", 1))
    ]
    model = tr.build_from_rows(rows, valuations={"x": [3, 4]})
    policy = tr.Policy(model, {(3,): "go", (4,): "back"})
    assert policy.action("x=3") == policy.action({"x": 3}) == "go"
    assert policy.predict([{"x": 3}, {"x": 4}, {"x": 3}]) == ["go", "back", "go"]
    assert policy.predict(pd.DataFrame({"x": [4, 3], "note": ["", ""]})) == ["back", "go"]


def coin() -> Any:
    (p,) = PARAMETERS.symbols()
    rows = [(0, "toss", {1: p, 2: 1 - p}), (1, "", {1: 1}), (2, "", {2: 1})]
    return tr.build_from_rows(rows, PARAMETERS, labels={"heads": [1]})


def test_a_monitor_takes_what_learn_takes() -> None:
    model = coin()
    episodes = [[(0, "toss", 1)], [(0, "toss", 2)]] * 20
    reading = tr.read_data(episodes, model)
    whole = tr.Monitor(model).update(episodes)
    for data in (reading, reading.counts, iter(episodes)):
        again = tr.Monitor(model).update(data)
        assert (again.events, again.evidence) == (whole.events, whole.evidence) == (40, whole.evidence)
        assert again.verdict.is_proved
    columns = {"state": [0] * 40, "action": ["toss"] * 40, "next_state": [1, 2] * 20}
    table = tr.Monitor(model).update(pd.DataFrame(columns))
    assert table.evidence == whole.evidence and not table.verdict.is_proved, "nothing says their order"


def test_all_results_are_a_table() -> None:
    data = [[(0, "toss", 1)]] * 80 + [[(0, "toss", 2)]] * 20
    results = tr.learn_all(coin().problem('Pmax=? [ F "heads" ]'), data, kinds=["untied", "tied"])
    assert isinstance(results, dict)
    lines = str(results).splitlines()
    assert lines[1].split() == ["sets", "verdict", "guarantee", "interval", "width"]
    assert lines[3].split() == ["tied", "proved", "≥", "0.59532", "0.59532", "to", "0.93289", "0.338"]
    shown = results._repr_html_()
    assert shown.count("<tr>") == 3 and "&quot;heads&quot;" in shown
    frame = results.to_dataframe()
    assert frame["lower"].tolist() == [one.interval.lower for one in results.values()]


def test_the_first_figure_leaves_interactive_mode_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with the backend of notebooks, which turns it on when pyplot makes its first figure."""
    from matplotlib import pyplot

    make = pyplot.figure

    def first(*given: Any, **words: Any) -> Any:
        matplotlib.interactive(True)
        return make(*given, **words)

    monkeypatch.setattr(pyplot, "figure", first)
    matplotlib.interactive(False)
    try:
        axes = _axes(None, (3, 2))
        assert matplotlib.is_interactive()
        assert axes.get_figure().get_facecolor()[:3] == (1, 1, 1)  # type: ignore[union-attr]
    finally:
        matplotlib.interactive(False)
        pyplot.close("all")


def test_wrong_calls_are_both_kinds_of_error() -> None:
    with pytest.raises(TypeError, match="did you mean `state_rewards`"):
        tr.build_from_function(0, PUMP, rewards={})  # type: ignore[call-arg]

    def broken(state: Any) -> str:
        raise TypeError("their own")

    with pytest.raises(tr.InputError, match="fails at state 0: TypeError: their own"):
        tr.build_from_function(0, broken)
