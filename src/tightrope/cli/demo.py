"""`tightrope demo`: the rover story end to end, from an embedded model to a certified policy."""

from __future__ import annotations

import sys
import time
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

import tightrope as tr
from tightrope.cli import late
from tightrope.cli import output as screen
from tightrope.cli.options import option
from tightrope.cli.output import group, phase, phase_progress, print_json
from tightrope.io.output import claim

if TYPE_CHECKING:
    from tightrope.certify.certificate_file import CertificateFile
    from tightrope.io.results import ResultDocument

MODEL = "bench:rover(10,10)"
DELTA = 0.001

STORY = """\
A rover crosses a field of 10 by 10 cells. It must report its moves: after six unreported ones it is lost.
Sending succeeds with a probability that depends on the place and on six unknown weights of the radio
channel. It first drives at random; from this log tightrope learns a policy and a bound on its safety."""


def demo(
    output: Annotated[Path, option("-o --output", "Where data and results go.", "DIR")] = Path("demo-output"),
    episodes: Annotated[int, option("--episodes", "Number of random drives.", "N", min=1)] = 10_000,
    seed: Annotated[int, option("--seed", "Same seed, same drives.", "S", min=0)] = 1,
) -> None:
    """Run the rover example: build a model, simulate it, learn with every kind of sets but coupled.

    Writes the data, the results, the policies, a certificate and a report.

    Example: tightrope demo -o demo-output
    """
    begin, claimed = time.perf_counter(), claim(output, "demo")
    data, results_at, report = output / "data.parquet", output / "results", output / "report.html"
    certificate, results_file = output / "rover.cert", output / "results" / late.result_files.RESULT
    if not screen.common.json:
        typer.echo(STORY + "\n")
    with phase("building the model") as progress:
        done = drive(output, episodes, seed, progress)
    tightest = done.results[-1]
    if screen.common.json:
        facts = {
            "model": MODEL,
            "episodes": episodes,
            "steps": done.counts.steps,
            "guarantee": tightest.guarantee,
            "true_value_of_the_policy": done.earned,
            "optimum": done.optimum.to_json(),
            "all": [result.to_json() for result in done.results],
            "output": str(output),
            "report": str(report),
            "certificate": str(certificate),
            "files": [str(file) for file in (report, certificate, data, results_file)],
            "seconds": round(time.perf_counter() - begin, 6),
        }
        print_json(facts)
    else:
        show(done, results_at, seed)
    sys.stdout.flush()  # the answer comes before files, which may fail
    with phase_progress() as progress:
        with claimed.filling(f"results/{late.result_files.RESULT}") as folder:
            progress("write: the results")
            late.writing.write_counts(
                folder / data.name, done.counts, tightest.model.structure, extra=sampled(seed)
            )
            done.proof.save(folder / certificate.name)
            (folder / results_at.name).mkdir()
            late.result_files.fill_results(
                folder / results_at.name, done.results, done.content, progress=progress
            )
        progress("write: the report")
        late.write.write_report(
            results_at, report, certificate=certificate, what_if=tr.load_result(results_at)._what_if
        )
    if not screen.common.json:
        policy = results_at / tightest.decisions.sets.value / "robust-policy.json"
        typer.echo(f"report     {report}\nresults    {results_file}\npolicy     {policy}\ndata       {data}")
        typer.echo(f"check      tightrope verify {certificate} --model '{MODEL}' --data {data}")
        typer.echo(f"again      tightrope learn '{MODEL}' --data {data} --sets all")
        typer.echo(f"seconds    {time.perf_counter() - begin:.1f}")


class Done(NamedTuple):
    """The log, the results learned from it, and the policy's value at the true parameters."""

    counts: tr.Counts
    results: list[tr.LearningResult]
    content: ResultDocument
    proof: CertificateFile
    optimum: tr.Interval
    earned: float


def sampled(seed: int) -> dict[str, object]:
    """Where the log comes from."""
    return {"source": MODEL, "seed": seed, "policy": "uniform"}


def drive(output: Path, episodes: int, seed: int, progress: screen.PhaseProgress) -> Done:
    """Simulate, learn with every kind of sets but coupled, certify the last."""
    from tightrope.solver.solve import solve

    bench = tr.benchmark(MODEL)
    problem, model, truth = bench.problem, bench.model, bench.at_truth
    progress("simulating drives")
    stop = late.design.find_decided_states(problem.objective, model.states)
    assert isinstance(truth.model, tr.MDP)
    walk = tr.Simulator(truth.model, None, stop, bench.episode_cap, model.hash())
    counts = walk.episodes(episodes, seed)
    kinds = late.learn.ALL_KINDS[:-1]  # coupled sets gain little here, and take longer than all others
    results = list(tr.learn_all(problem, counts, delta=DELTA, kinds=kinds, progress=progress).values())
    optimum = tr.Interval.of(*solve(truth).bounds)
    earned = solve(truth, policy=results[-1].robust.policy).bounds[0]
    setting = late.result_files.Setting(
        model=MODEL,
        property=problem.text,
        delta=DELTA,
        data={"file": str(output / "data.parquet"), "sampled": sampled(seed)},
        command=["tightrope", *sys.argv[1:]],
        truth={name: late.instance.decimal_text(Fraction(value)) for name, value in bench.truth.items()},
        true_value=optimum,
    )
    content = late.result_files.document(results, counts, tr.LearnOptions(), setting)
    content.regions += late.result_files.regions_beside(content.regions, model, counts, DELTA)
    progress("the certificate")
    proof = late.certify.learned_file(results[-1], {"model": MODEL})
    content.certificate = late.results.CertificateFacts(proof.digest, str(output / "rover.cert"))
    return Done(counts, results, content, proof, optimum, earned)


def show(done: Done, results_at: Path, seed: int) -> None:
    """Print the results, and the policy's value at the true parameters."""
    tightest, episodes = done.results[-1], done.counts.design.episodes or 0
    model, text = tightest.model, tightest.problem.text
    typer.echo(
        f"model      {MODEL}: {group(model.states)} states, {group(model.transitions)} transitions, "
        f"{len(model.parameters.names)} unknown weights\n"
        f"data       {group(episodes)} random drives, {group(done.counts.steps)} steps (seed {seed})\n"
        f"question   {text}\n"
    )
    screen.show(
        tightest.headline(),
        late.result_display.show_comparison(text, done.results, done.optimum, str(results_at)),
    )
    typer.echo(
        "At the true parameters, which the learner did not see, this policy crosses with probability\n"
        f"{done.earned:.4f}; the best policy has {done.optimum.lower:.4f}.\n"
    )
