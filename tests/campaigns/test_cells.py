"""What a campaign runs: instances, methods, seeds, limits, and the protocol of the paper's tables."""

from __future__ import annotations

import pytest

from tightrope.ambiguity.sets import SetsKind
from tightrope.benchmarks.families import FAMILIES
from tightrope.benchmarks.suite import load
from tightrope.errors import InputError
from tightrope.statistics.estimates import Budget, IntervalMethod
from tightrope.statistics.least_squares import EllipsoidVersion
from tightrope_campaigns.cells import (
    METHODS,
    QUICK_INSTANCES,
    Cell,
    CellLimits,
    Protocol,
    campaign_cells,
    choose_instances,
    choose_methods,
    parse_duration,
    parse_seeds,
    parse_size,
    quick_selection,
)
from tightrope_campaigns.measurement import TINY, measure_certified_interval, simulate, solve_truth
from tightrope_campaigns.published import read_published_results


def test_by_default_all_rows_of_the_papers_tables() -> None:
    instances = choose_instances(())
    assert len(instances) == 18
    rows = {(row.family, row.arguments) for row in read_published_results()}
    assert {(i.family, i.arguments) for i in instances} == rows


def test_instances_by_name_and_family() -> None:
    names = [i.name for i in choose_instances(["rover", "bench:betting(5)", "rover(50,50)"])]
    assert names == ["rover(50,50)", "rover(75,75)", "rover(125,125)", "betting(5)"]
    with pytest.raises(InputError, match="no benchmark family 'chess'"):
        choose_instances(["chess"])


def test_every_method_of_the_paper_is_there_and_runs_as_it_describes() -> None:
    assert {row.method for row in read_published_results()} <= {
        m.name for m in METHODS.values() if m.in_paper
    }
    for method in METHODS.values():
        options = method.options()
        assert options.sets is SetsKind(method.sets)
        if method.in_paper:
            assert options.budget is Budget.PAPER
            assert options.interval is IntervalMethod.CLOPPER_PEARSON
        is_papers_ellipsoid = method.in_paper and method.region == "ellipsoid"
        assert (options.ellipsoid is EllipsoidVersion.PAPER) == is_papers_ellipsoid
        assert len(method.short) <= 16


def test_methods_by_name_and_group() -> None:
    assert [m.name for m in choose_methods("expression/likelihood, tied")] == [
        "tied",
        "expression/likelihood",
    ]
    assert len(choose_methods("paper")) == 7
    assert choose_methods("all") == choose_methods("paper,ours") == tuple(METHODS.values())
    with pytest.raises(InputError, match="did you mean expression/likelihood"):
        choose_methods("expression/likelyhood")
    with pytest.raises(InputError, match="there is no method ''"):
        choose_methods("tied,")


def test_the_protocol_is_the_papers() -> None:
    assert Protocol() == Protocol(episodes=100_000, delta=0.001)
    with pytest.raises(InputError, match=r"δ is 1.5, not within \(0, 1\)"):
        Protocol(delta=1.5)
    with pytest.raises(InputError, match="at least 1"):
        Protocol(episodes=0)


def test_cells_that_share_data_follow_each_other() -> None:
    instances = choose_instances(["betting(5)", "rover(10,10)"])
    cells = campaign_cells(instances, choose_methods("tied,untied"), (1, 2), Protocol(10))
    assert len(cells) == len(set(cells)) == 8
    assert [(c.instance, c.seed) for c in cells[::2]] == [
        *(("betting(5)", 1), ("betting(5)", 2)),
        *(("rover(10,10)", 1), ("rover(10,10)", 2)),
    ]
    assert str(cells[1]) == "betting(5) untied seed 1"


def test_quick_has_every_family_and_every_kind_of_sets_over_a_region() -> None:
    instances, methods = quick_selection()
    assert [i.family for i in instances] == list(FAMILIES)
    assert {m.sets for m in methods} == {"tied", "parameter", "expression", "rectangular"}
    assert len(instances) == len(QUICK_INSTANCES)


def test_cells_over_slabs_bet_on_the_policy_that_is_evaluated() -> None:
    found = {}
    for method in ("coupled/likelihood", "coupled/slab", "rectangular/slab"):
        cell = Cell("betting(3)", method, 1)
        model = load(cell.problem)
        counts, truth = simulate(cell, model, 2000), solve_truth(cell, model)
        found[method] = measure_certified_interval(cell, model, counts, truth, 60.0, lambda what: None)
        assert found[method]["covers"] and found[method]["holds"]
    gap = {method: float(str(fields["relative_gap"])) for method, fields in found.items()}
    assert gap["coupled/slab"] < 0.95 * gap["coupled/likelihood"]
    assert gap["coupled/slab"] <= gap["rectangular/slab"]


def test_every_family_has_a_tiny_instance_to_warm_up_with() -> None:
    assert set(TINY) == set(FAMILIES)
    for family, arguments in TINY.items():
        assert Cell(f"{family}({','.join(map(str, arguments))})", "tied", 1).problem.arguments == arguments


@pytest.mark.parametrize(
    ("text", "seeds"), [("1", (1,)), ("3,1,3", (3, 1)), ("1-3, 7", (1, 2, 3, 7)), ("0-0", (0,))]
)
def test_seeds(text: str, seeds: tuple[int, ...]) -> None:
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize("text", ["", "a", "1,,2", "3-1", "-1", "1-2-3", "0-99999999"])
def test_what_are_no_seeds(text: str) -> None:
    with pytest.raises(InputError, match="neither a seed nor a range"):
        parse_seeds(text)


def test_amounts() -> None:
    assert parse_size("24GiB") == parse_size("24G") == parse_size("24 gb") == 24 << 30
    assert parse_size("0.5M") == 1 << 19 and parse_size("123") == 123
    assert parse_duration("1.5h") == 5400 and parse_duration("10min") == 600 and parse_duration("3") == 3
    for wrong in ("", "much", "-1G", "1X"):
        with pytest.raises(InputError, match="is not an amount of memory"):
            parse_size(wrong)
        with pytest.raises(InputError, match="is not a duration"):
            parse_duration(wrong)
    with pytest.raises(InputError, match="not a positive number of seconds"):
        CellLimits(seconds=0)
    with pytest.raises(InputError, match="less than 64 MiB"):
        CellLimits(memory=1000)
