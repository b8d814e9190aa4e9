"""`tightrope demo`: the rover story end to end, from an embedded model to a certified policy."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

import tightrope as tr
from tightrope.cli import output as screen
from tightrope.cli.options import option
from tightrope.cli.output import group, phase, phase_progress, print_json

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
    from tightrope.ambiguity.sets import SetsKind
    from tightrope.benchmarks.suite import load, parse_bench, question
    from tightrope.certify.certify import learned_file
    from tightrope.cli.result_display import show_comparison
    from tightrope.data.design import find_decided_states
    from tightrope.data.writing import write_counts
    from tightrope.io.output import claim
    from tightrope.io.results import CertificateFacts, Interval
    from tightrope.learning.learn import ALL_KINDS
    from tightrope.learning.result_files import RESULT, Setting, document, fill_results, regions_beside
    from tightrope.report.write import write_report
    from tightrope.solver.solve import solve

    # Coupled sets gain little on this model, and would take longer than all others together.
    kinds = tuple(kind for kind in ALL_KINDS if kind is not SetsKind.COUPLED)
    begin = time.perf_counter()
    claimed = claim(output, "demo")
    data, results_at = output / "data.parquet", output / "results"
    if not screen.common.json:
        typer.echo(STORY + "\n")
    with phase("building the model") as progress:
        instance = parse_bench(MODEL)
        model = load(instance)
        request = question(instance, model.structure)
        progress("simulating drives")
        truth = model.instantiate(instance.truth)
        stop = find_decided_states(request.objective, model.states)
        counts = tr.Simulator(truth, None, stop, instance.episode_cap, model.hash()).episodes(episodes, seed)
        about: dict[str, object] = {"source": MODEL, "seed": seed, "policy": "uniform"}
        results = tr.learn_all(
            tr.Problem(model, request), counts, delta=DELTA, kinds=kinds, progress=progress
        )
        best = solve(truth, request.objective)
        initial = model.initial
        optimum = Interval(float(best.lower[initial]), float(best.upper[initial]))
        tightest = list(results.values())[-1]
        earned = solve(truth, request.objective, policy=tightest.robust.policy)
        setting = Setting(
            model=MODEL,
            property=request.text,
            delta=DELTA,
            data={"file": str(data), "sampled": about},
            command=["tightrope", *sys.argv[1:]],
            truth=dict(pair.split("=", 1) for pair in instance.truth_text.split(",")),
            true_value=optimum,
        )
        ordered = list(results.values())
        content = document(ordered, counts, tr.LearnOptions(), setting)
        content.regions += regions_beside(content.regions, model, counts, DELTA)
        progress("the certificate")
        certificate = output / "rover.cert"
        about_it = {"model": MODEL, "model_hash": model.hash(), "property": request.text}
        proof = learned_file(tightest, counts, about_it)
        content.certificate = CertificateFacts(proof.digest, str(certificate))
    report = output / "report.html"
    results_file = results_at / RESULT
    if screen.common.json:
        facts = {
            "model": MODEL,
            "episodes": episodes,
            "steps": counts.steps,
            "guarantee": tightest.guarantee,
            "true_value_of_the_policy": float(earned.lower[initial]),
            "optimum": optimum.to_json(),
            "all": [result.to_json() for result in ordered],
            "output": str(output),
            "report": str(report),
            "certificate": str(certificate),
            "files": [str(file) for file in (report, certificate, data, results_file)],
            "seconds": round(time.perf_counter() - begin, 6),
        }
        print_json(facts)
    else:
        typer.echo(
            f"model      {MODEL}: {group(model.states)} states, {group(model.transitions)} transitions, "
            f"{len(model.parameters.names)} unknown weights\n"
            f"data       {group(episodes)} random drives, {group(counts.steps)} steps (seed {seed})\n"
            f"question   {request.text}\n"
        )
        content_shown = show_comparison(request.text, ordered, optimum, str(results_at))
        screen.show(tightest.headline(), content_shown)
        typer.echo(
            "At the true parameters, which the learner did not see, this policy crosses with probability\n"
            f"{float(earned.lower[initial]):.4f}; the best policy has {optimum.lower:.4f}.\n"
        )
    sys.stdout.flush()  # the answer comes before files, which may fail
    with phase_progress() as progress:
        with claimed.filling(f"results/{RESULT}") as folder:
            progress("write: the results")
            write_counts(folder / data.name, counts, model.structure, extra=about)
            proof.save(folder / certificate.name)
            (folder / results_at.name).mkdir()
            fill_results(folder / results_at.name, ordered, content, progress=progress)
        progress("write: the report")
        write_report(results_at, report, certificate=certificate, what_if=tr.load_result(results_at)._what_if)
    if not screen.common.json:
        typer.echo(
            f"report     {report}\n"
            f"results    {results_file}\n"
            f"policy     {results_at / tightest.decisions.sets.value / 'robust-policy.json'}\n"
            f"data       {data}\n"
            f"check      tightrope verify {certificate} --model '{MODEL}' --data {data}\n"
            f"again      tightrope learn '{MODEL}' --data {data} --sets all\n"
            f"seconds    {time.perf_counter() - begin:.1f}"
        )
