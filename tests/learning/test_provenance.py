"""What was made from which data: digests, sketches, and what seeing the same log costs."""

from __future__ import annotations

import dataclasses
import gzip
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import tightrope as tr
from tightrope.certify.certificate_file import as_file
from tightrope.provenance import Artefact, Overlap, Provenance, chosen_without, union
from tightrope_check.archive import load
from tightrope_check.problem import Claim, ValueHints


def walk() -> tr.ParametricMDP:
    """A walk on five states with two actions, so that episodes are long and differ."""
    parameters = tr.Parameters.box(p=(0, 1), q=(0, 1))
    p, q = parameters.symbols()
    rows = []
    for s in range(1, 4):
        rows += [(s, "a", {s - 1: p, s + 1: 1 - p}), (s, "b", {s - 1: q, s + 1: 1 - q})]
    rows = [(0, "", {0: 1}), *rows, (4, "", {4: 1})]
    return tr.build_from_rows(rows, parameters, initial=2, labels={"up": [4]})


def episodes(seed: int, number: int, first: int = 0) -> pd.DataFrame:
    """A log of so many episodes, with names, from the middle of the walk."""
    rng, rows = np.random.default_rng(seed), []
    for name in range(first, first + number):
        state, step = 2, 0
        while 0 < state < 4:
            action = "ab"[int(rng.integers(2))]
            after = state + (1 if rng.random() < (0.5 if action == "a" else 0.4) else -1)
            rows.append((name, step, state, action, after))
            state, step = after, step + 1
    return pd.DataFrame(rows, columns=["episode", "step", "state", "action", "next_state"])


def seen(data: object, **words: object) -> Provenance:
    return tr.read_data(data, walk(), ends="complete", **words).counts.provenance  # type: ignore[arg-type]


def test_digest_does_not_depend_on_how_rows_are_written(tmp_path: Path) -> None:
    frame = episodes(1, 60)
    text = frame.to_csv(index=False)
    (tmp_path / "a.csv").write_text(text)
    (tmp_path / "b.csv").write_bytes(text.replace("\n", "\r\n").encode())
    with gzip.open(tmp_path / "c.csv.gz", "wt") as file:
        file.write(text)
    frame.to_parquet(tmp_path / "d.parquet", row_group_size=50)
    whole = seen(frame)
    for name in ("a.csv", "b.csv", "c.csv.gz", "d.parquet"):
        assert seen(tmp_path / name) == whole, name
    assert (whole.rows, whole.episodes) == (len(frame), 60)


def test_digest_does_not_depend_on_the_order_of_files_and_rows(tmp_path: Path) -> None:
    one, two = episodes(1, 40), episodes(2, 40, first=40)
    one.to_csv(tmp_path / "one.csv", index=False)
    two.to_csv(tmp_path / "two.csv", index=False)
    pd.concat([one, two]).to_csv(tmp_path / "both.csv", index=False)
    ab = seen([tmp_path / "one.csv", tmp_path / "two.csv"])
    ba = seen([tmp_path / "two.csv", tmp_path / "one.csv"])
    assert ab.parts == ba.parts == seen(tmp_path / "both.csv").parts
    assert ab.overlap(seen(one)) is Overlap.PART
    shuffled = pd.concat([one, two]).sample(frac=1.0, random_state=3)
    assert seen(shuffled).parts == ab.parts
    interleaved = pd.concat([one, two]).sort_values(["step", "episode"])
    assert seen(interleaved).parts == ab.parts


def test_rows_in_memory_and_in_files_are_the_same() -> None:
    frame = episodes(5, 30)
    steps = [
        [(int(s), a, int(n)) for s, a, n in zip(own.state, own.action, own.next_state, strict=True)]
        for _, own in frame.groupby("episode")
    ]
    assert seen(frame).parts == tr.read_data(steps, walk()).counts.provenance.parts
    log = tr.read_data(frame, walk()).counts.log()
    half = np.arange(30) % 2 == 0
    counts = tr.read_data(frame, walk()).counts
    first, second = (log.subset(which).counts(walk(), counts.design).provenance for which in (half, ~half))
    assert first.overlap(second) is Overlap.NONE
    assert first.overlap(counts.provenance) is Overlap.PART
    assert (first | second).overlap(counts.provenance) is Overlap.PART


def test_log_without_next_states_or_names() -> None:
    frame = episodes(6, 50)
    unnamed = frame.drop(columns=["episode", "step"])
    grown = pd.concat([frame, episodes(7, 20)]).drop(columns=["episode", "step"])
    assert seen(unnamed).overlap(seen(unnamed.copy())) is Overlap.SAME
    assert seen(unnamed).overlap(seen(grown)) is Overlap.PART
    assert seen(unnamed).overlap(seen(episodes(8, 50).drop(columns=["episode", "step"]))) is Overlap.NONE


def test_log_whose_episodes_have_other_names_or_none_is_not_called_other_data() -> None:
    frame = episodes(6, 50)
    bare, named = frame.drop(columns=["episode", "step"]), frame.assign(episode=frame.episode + 1000)
    whole = seen(frame)
    for copy in map(seen, (bare, named)):
        assert whole.overlap(copy) is copy.overlap(whole) is Overlap.UNCLEAR


def test_independent_logs_share_nothing() -> None:
    logs = [seen(episodes(seed, 80)) for seed in range(12)]
    assert {one.overlap(two) for k, one in enumerate(logs) for two in logs[:k]} == {Overlap.NONE}


def test_tosses_of_independent_logs_are_not_called_shared() -> None:
    parameters = tr.Parameters.box(p=(0, 1))
    (p,) = parameters.symbols()
    model = tr.build_from_rows([(0, "t", {1: p, 2: 1 - p}), (1, "", {1: 1}), (2, "", {2: 1})], parameters)

    def tosses(seed: int) -> list[list[tuple[int, str, int]]]:
        return [[(0, "t", 1 if u < 0.7 else 2)] for u in np.random.default_rng(seed).random(200)]

    def of(data: object) -> Provenance:
        return tr.read_data(data, model).counts.provenance

    logs = [of(tosses(seed)) for seed in range(12)]
    assert {one.overlap(two) for k, one in enumerate(logs) for two in logs[:k]} == {Overlap.UNCLEAR}
    assert of(tosses(1)).overlap(of(tosses(1))) is Overlap.SAME


def test_table_of_counts_is_recognised_in_its_log() -> None:
    frame = episodes(9, 50)
    table = frame.groupby(["state", "action", "next_state"]).size().rename("count").reset_index()
    assert seen(table).overlap(seen(frame)) is Overlap.SAME
    assert seen(table).overlap(seen(episodes(10, 50))) is Overlap.UNCLEAR
    assert seen(episodes(10, 50)).overlap(seen(table)) is Overlap.UNCLEAR


@pytest.mark.parametrize("number", [4, 10, 20])
def test_small_log_that_is_shared_in_half_is_never_other_data(number: int) -> None:
    whole, half = episodes(1, number), number // 2
    mixed = pd.concat([whole[whole.episode < half], episodes(5, number - half, first=half)])
    kept = {
        name: chosen_without(Artefact.MODEL, [seen(whole)], lambda data=data: seen(data)).kept.value
        for name, data in (("same", whole), ("half", mixed), ("other", episodes(42, number)))
    }
    assert kept == {"same": "no", "half": "no" if number == 20 else "stated", "other": "yes"}


def test_few_rows_of_a_long_log_are_not_called_other_data() -> None:
    """The sketch of a long log has next to no piece of a short part of it."""
    long = episodes(1, 3000)
    part, other = seen(long[long.episode < 30]), seen(episodes(2, 30))
    assert seen(long).overlap(part) is Overlap.UNCLEAR and seen(long).overlap(other) is Overlap.UNCLEAR
    assert other.overlap(seen(long)) is Overlap.NONE  # at most a hundredth of the long log


def test_text_and_comment_come_back() -> None:
    one = seen(episodes(1, 400))
    assert Provenance.parse(one.text()) == one
    assert len(one.text()) < 2500 and "\n" not in one.text()
    assert Provenance.in_comments(f"dtmc\n{one.comment()}\nmodule M\n") == one
    assert Provenance.in_comments("dtmc\n// made by hand\n") is None
    assert union([None, one, None]) == one
    with pytest.raises(tr.InputError, match="does not name the data"):
        Provenance.parse("rows=3 episodes=x")


def test_same_rows_in_two_files_are_refused(tmp_path: Path) -> None:
    text = episodes(1, 60).to_csv(index=False)
    (tmp_path / "a.csv").write_text(text)
    (tmp_path / "b.csv").write_bytes(text.replace("\n", "\r\n").encode())
    with pytest.raises(tr.InputError, match="the same rows"):
        tr.read_data([tmp_path / "a.csv", tmp_path / "b.csv"], walk())


def test_sojourns_in_continuous_time(tmp_path: Path) -> None:
    parameters = tr.Parameters.box(a=(0.1, 9), b=(0.1, 9))
    a, b = parameters.symbols()
    model = tr.build_ctmc_from_rows([(0, {1: a}), (1, {0: b})], parameters, labels={"on": [1]})
    chain = model.instantiate(a=1, b=2)
    table = tr.simulate_times(chain, 40, seed=1, time=20).table().to_pandas()
    table.to_csv(tmp_path / "a.csv", index=False)
    table.to_parquet(tmp_path / "b.parquet")
    one, two = (tr.read_exposure(tmp_path / name, model).provenance for name in ("a.csv", "b.parquet"))
    other = tr.read_exposure(tr.simulate_times(chain, 40, seed=2, time=20), model).provenance
    part = tr.read_exposure(table[table.episode < 20], model).provenance
    assert one is not None and two is not None and other is not None and part is not None
    assert one == two and one.overlap(other) is Overlap.NONE and one.overlap(part) is Overlap.PART
    with pytest.raises(tr.InputError, match="the same rows"):
        tr.read_exposure([tmp_path / "a.csv", tmp_path / "b.parquet"], model)


def problem(made_from: Provenance | None = None) -> tr.Problem:
    model = walk()
    if made_from is not None:
        structure = dataclasses.replace(model.structure, made_from=made_from)
        model = dataclasses.replace(model, structure=structure)
    return model.problem('Pmax=? [ F "up" ]')


UNSEEN = "policy chosen without this log"


def assumed(result: tr.LearningResult) -> dict[str, str]:
    return {one.name: one.kept.value for one in result.verdict.assumptions}


def test_policy_of_the_same_log_is_bounded_with_all_policies(tmp_path: Path) -> None:
    data = tr.read_data(episodes(1, 100), walk(), ends="complete", order="as-read")
    words = {"delta": 0.1, "behaviour": "uniform"}
    result = tr.learn(problem(), data, delta=0.1)
    assert result.policy.made_from == data.counts.provenance
    result.policy.save(tmp_path / "policy.json")
    for policy in (result.policy, tmp_path / "policy.json"):
        again = tr.learn(problem(), data, policy=policy, **words)
        assert "made from these very rows" in again.outcomes.text
        assert any("for all policies at once" in note for note in again.notes)
        assert again.verdict.is_proved and UNSEEN not in assumed(again)
    fresh = tr.read_data(episodes(77, 200), walk(), ends="complete", order="as-read")
    other = tr.learn(problem(), fresh, policy=tmp_path / "policy.json", **words)
    assert other.seen is not None and UNSEEN not in assumed(other)
    by_hand = tr.learn(problem(), fresh, policy=dict.fromkeys((1, 2, 3), "a"), **words)
    assert by_hand.seen is not None and assumed(by_hand)[UNSEEN] == "stated"


@pytest.mark.parametrize("ending", ["drn", "tra", "umb"])
def test_policy_solved_on_a_learned_model_remembers_its_data(tmp_path: Path, ending: str) -> None:
    data = tr.read_data(episodes(1, 100), walk(), ends="complete", order="as-read")
    form = "explicit" if ending == "tra" else ending
    tr.learn(problem(), data, delta=0.1).save(tmp_path / "results", exports=[form])
    learned = tr.load(tmp_path / "results" / f"learned.{ending}")
    assert learned.structure.made_from == data.counts.provenance
    tr.solve(learned, 'Pmaxmin=? [ F "up" ]').policy.save(tmp_path / "policy.json")
    again = tr.learn(problem(), data, delta=0.1, policy=tmp_path / "policy.json", behaviour="uniform")
    assert "made from these very rows" in again.outcomes.text and again.verdict.is_proved


def test_interval_model_of_a_result_remembers_its_data() -> None:
    data = tr.read_data(episodes(1, 100), walk(), ends="complete", order="as-read")
    result = tr.learn(problem(), data, delta=0.1)
    for sets in (result.sets, pickle.loads(pickle.dumps(result)).sets):
        policy = tr.solve(sets.interval_model(), 'Pmaxmin=? [ F "up" ]').policy
        again = tr.learn(problem(), data, delta=0.1, policy=policy, behaviour="uniform")
        assert "made from these very rows" in again.outcomes.text and again.verdict.is_proved


def test_improved_policy_remembers_the_data_of_its_candidates() -> None:
    first, second = (
        tr.read_data(episodes(seed, 3000), walk(), ends="complete", order="as-read") for seed in (1, 2)
    )
    candidate = tr.learn(problem(), first, delta=0.1, sets="tied", outcomes="none").policy
    usual = tr.Policy(walk(), dict.fromkeys((1, 2, 3), "b"))
    words = {"baseline": usual, "candidate": candidate, "delta": 0.1}
    result = tr.improve(problem(), second, **words)
    for one in result.differences:  # what was given keeps its own data, what was found has these
        assert one.policy is not None
        own = {"the candidate": first, "the baseline itself": None}.get(one.name, second)
        assert one.policy.made_from == (None if own is None else own.counts.provenance), one.name
    better = result.policy
    assert better is not None and better != usual and better.made_from is not None
    for data in (first, second):
        assert data.counts.provenance.overlap(better.made_from) in (Overlap.SAME, Overlap.PART)


def test_slab_does_not_bet_on_a_policy_of_the_same_log() -> None:
    data = tr.read_data(episodes(1, 100), walk(), ends="complete", order="as-read")
    words = {"delta": 0.1, "region": "slab", "sets": "coupled", "outcomes": "none"}
    policy = tr.learn(problem(), data, delta=0.1).policy
    seen = tr.learn(problem(), data, policy=policy, **words)
    assert any("best by the data before" in line for line in seen.ledger.lines)
    stated = tr.learn(problem(), data, policy=tr.Policy(walk(), policy.probability), **words)
    assert assumed(stated)[UNSEEN] == "stated" and UNSEEN not in assumed(seen)


def test_verify_asks_which_data_chose_the_policy_that_a_file_bets_on(tmp_path: Path) -> None:
    """Not which chose the other one of a difference: an improvement is chosen by its log."""
    (p, q), won = (arms := tr.Parameters.box(p=(0, 1), q=(0, 1))).symbols(), {"won": [1]}
    rows = [(0, "a", {1: p, 2: 1 - p}), (0, "b", {1: q, 2: 1 - q}), (1, "", {1: 1}), (2, "", {2: 1})]
    model = tr.build_from_rows(rows, arms, labels=won)
    asked, log = model.problem('Pmax=? [ F "won" ]'), [(0, "ab"[n % 2], 1 + (n % 6 != 0)) for n in range(200)]
    data = tr.read_data(pd.DataFrame(log, columns=["state", "action", "next_state"]), model, order="as-read")
    words = {"model": model, "property": asked.text, "data": data}
    usual = tr.Policy(model, {0: "b"})
    better = tr.improve(asked, data, baseline=usual, delta=0.1, region="slab")
    tr.certify(better, tmp_path / "better.cert")
    seen = better.policy
    assert seen is not None and seen != usual
    for policies in ({"policy": seen}, {"policy": seen, "baseline": usual}):
        assert tr.verify(tmp_path / "better.cert", **words, **policies).word == "proved"
    blind = tr.learn(asked, data, delta=0.1, region="slab", policy=tr.Policy(model, seen.probability))
    tr.certify(blind, tmp_path / "blind.cert")
    made = load(tmp_path / "blind.cert").certificate
    names = [claim.name for claim in made.claims]
    robust, given = made.claims
    assert names == ["robust policy", "given policy"]
    least, most = given.lower - robust.upper, given.upper - robust.lower
    less = Claim("difference", "pair", least - 1e-9, most + 1e-9, pair=np.array([1, 0]))
    forged = dataclasses.replace(made, claims=(*made.claims, less), values=(*made.values, ValueHints()))
    (tmp_path / "forged.cert").write_bytes(as_file(forged).content)
    other = tr.Policy.of_choices(model, robust.choice)
    for file, policies in (("blind", {"policy": seen}), ("forged", {"policy": seen, "baseline": other})):
        verdict = tr.verify(tmp_path / f"{file}.cert", **words, **policies)
        assert verdict.valid and verdict.word == "nominal"
        assert verdict.assumptions[-1][:2] == (UNSEEN, "no")


def test_prior_of_the_same_log_is_refused(tmp_path: Path) -> None:
    data = tr.read_data(episodes(1, 200), walk(), ends="complete", order="as-read")
    first = tr.learn(problem(), data, delta=0.1, sets="rectangular")
    first.save(tmp_path / "one")
    with pytest.raises(tr.InputError, match="the prior was made from these very rows"):
        tr.learn(problem(), data, delta=0.1, prior=tmp_path / "one")
    both = tr.read_data(
        pd.concat([episodes(1, 200), episodes(2, 50, first=200)]), walk(), ends="complete", order="as-read"
    )
    with pytest.raises(tr.InputError, match="made from some of these rows"):
        tr.learn(problem(), both, delta=0.1, prior=tmp_path / "one")
    fresh = tr.read_data(episodes(3, 200), walk(), ends="complete", order="as-read")
    second = tr.learn(problem(), fresh, delta=0.1, prior=tmp_path / "one")
    assert second.verdict.is_proved and assumed(second)["prior chosen without this log"] == "yes"
    second.save(tmp_path / "two")
    with pytest.raises(tr.InputError, match="would count twice"):  # what the first one has seen is remembered
        tr.learn(problem(), data, delta=0.1, prior=tmp_path / "two")
    stated = tr.learn(problem(), fresh, delta=0.1, prior="p ~ beta(5, 5)")
    assert assumed(stated)["prior chosen without this log"] == "stated"


@pytest.mark.parametrize(
    "text", ['Pmax=? [ F "up" ]', 'Pmax=? [ (F "up") & (F !"up") ]', 'filter(count, P>=0.1 [ F "up" ])']
)
@pytest.mark.filterwarnings("ignore::tightrope.ReadingWarning")
def test_model_made_from_the_same_log_is_nominal(text: str) -> None:
    data = tr.read_data(episodes(1, 200), walk(), ends="complete", order="as-read")
    drafted = pickle.loads(pickle.dumps(problem(data.counts.provenance).model))
    result = tr.learn(drafted.problem(text), data, delta=0.1)
    assert result.verdict.word == "nominal"
    assert "the model was made from these very rows" in result.verdict.why
    fresh = tr.read_data(episodes(2, 200), walk(), ends="complete", order="as-read")
    assert tr.learn(drafted.problem(text), fresh, delta=0.1).verdict.is_proved


def test_prism_file_says_from_which_data_it_was_made(tmp_path: Path) -> None:
    one = seen(episodes(1, 100))
    rows = "[] s=0 -> p:(s'=1) + 1-p:(s'=0);\n [] s=1 -> true;"
    text = f"dtmc\nconst double p;\nmodule M\n s:[0..1];\n {rows}\nendmodule\n"
    (tmp_path / "m.prism").write_text(f"{one.comment()}\n{text}")
    assert tr.load(tmp_path / "m.prism").structure.made_from == one
    (tmp_path / "m.prism").write_text(text)
    assert tr.load(tmp_path / "m.prism").structure.made_from is None
    (tmp_path / "m.prism").write_text(f"// made from data: nothing\n{text}")
    with pytest.raises(tr.InputError, match="does not name the data") as error:
        tr.load(tmp_path / "m.prism")
    assert error.value.location is not None


@pytest.mark.parametrize("ending", ["drn", "jani", "umb", "tra"])
def test_model_files_say_from_which_data_the_model_was_made(tmp_path: Path, ending: str) -> None:
    data = tr.read_data(episodes(1, 100), walk(), ends="complete", order="as-read")
    made = problem(data.counts.provenance).model
    named = dataclasses.replace(made.structure, named_from=seen(episodes(2, 9)))
    model = dataclasses.replace(made, structure=named)
    of_numbers = ending in ("umb", "tra")
    (model.instantiate(p=0.5, q=0.5) if of_numbers else model).save(tmp_path / f"m.{ending}")
    again = tr.load(tmp_path / f"m.{ending}").structure
    assert (again.made_from, again.named_from) == (named.made_from, named.named_from)
    (walk().instantiate(p=0.5, q=0.5) if of_numbers else walk()).save(tmp_path / f"plain.{ending}")
    plain = tr.load(tmp_path / f"plain.{ending}").structure
    assert plain.made_from is None and plain.named_from is None


def test_rates_of_a_model_made_from_the_same_log_are_nominal() -> None:
    parameters = tr.Parameters.box(a=(0.1, 9))
    (a,) = parameters.symbols()
    model = tr.build_ctmc_from_rows([(0, {1: a}), (1, {0: 2})], parameters, labels={"on": [1]})
    logs = [tr.simulate_times(model.instantiate(a=1), 40, seed=seed, time=20) for seed in (1, 2)]
    one, two = (tr.read_exposure(log, model) for log in logs)
    drafted = dataclasses.replace(
        model, structure=dataclasses.replace(model.structure, made_from=one.provenance)
    )
    asked = tr.Problem(drafted, 'P=? [ F<=1 "on" ]')
    words = [tr.learn(asked, data, delta=0.1).verdict.word.value for data in (one, two)]
    assert words == ["nominal", "proved"]


def test_nominal_result_on_a_drafted_model_has_no_certificate(tmp_path: Path) -> None:
    data = tr.read_data(episodes(1, 100), walk(), ends="complete", order="as-read")
    result = tr.learn(problem(data.counts.provenance), data, delta=0.1, sets="tied", outcomes="none")
    with pytest.raises(tr.InputError, match="the model was made from these very rows"):
        tr.certify(result, tmp_path / "c.cert")


@pytest.mark.parametrize("other", ["crlf", "comment", "mark", "blank", "gz"])
def test_few_rows_written_in_another_way_are_refused(tmp_path: Path, other: str) -> None:
    """So few that chance could make them equal: what tells is the text itself."""
    text = "state,action,next_state\n2,a,1\n1,b,0\n"
    ways = {
        "crlf": text.replace("\n", "\r\n").encode(),
        "comment": b"# exported\n# on Monday\n" + text.encode(),
        "mark": b"\xef\xbb\xbf" + text.encode(),
        "blank": text.encode() + b"\n\n",
        "gz": gzip.compress(text.encode()),
    }
    files = [tmp_path / "a.csv", tmp_path / ("b.csv.gz" if other == "gz" else "b.csv")]
    files[0].write_text(text)
    files[1].write_bytes(ways[other])
    with pytest.raises(tr.InputError, match="the same rows"):
        tr.read_data(files, walk())
    files[1].write_text(text.replace("1,b,0", "1,b,2"))
    if other != "gz":
        assert tr.read_data(files, walk()).rows == 4


def test_certificate_beside_a_model_that_the_log_chose_is_nominal(tmp_path: Path) -> None:
    data = tr.read_data(episodes(1, 100), walk(), ends="complete", order="as-read")
    result = tr.learn(problem(), data, delta=0.1, sets="tied", outcomes="none")
    tr.certify(result, tmp_path / "c.cert")
    words = {"property": 'Pmax=? [ F "up" ]', "data": data}
    assert tr.verify(tmp_path / "c.cert", model=walk(), **words).word == "proved"
    drafted = problem(data.counts.provenance).model
    assert tr.verify(tmp_path / "c.cert", model=drafted, **words).word == "nominal"
