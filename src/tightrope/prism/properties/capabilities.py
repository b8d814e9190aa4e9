"""What works with what: the kinds of queries, and the models and tasks that take each of them.

The table is the only place that says so. Refusals take their words from it, `tightrope questions` and the
page on properties show it, and tests walk through it. A new kind of query is a member of `QueryKind`, a row
here, its reading in `shape.kind_of`, and the file that answers it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from tightrope.errors import InputError


class QueryKind(Enum):
    """What a property asks for."""

    PLAIN = "plain"
    LTL = "LTL"
    LONG_RUN = "long-run average, steady state"
    INSTANTANEOUS = "reward of one moment"
    LATE_REWARD = "late rewards"
    CO_SAFE_REWARD = "rewards until a path is satisfied"
    REWARD_BOUNDED = "bounds on what is earned"
    CONDITIONAL = "conditional probability"
    QUANTILE = "quantiles"
    CVAR = "CVaR of costs"
    MULTI_OBJECTIVE = "several objectives"
    CTL = "CTL"
    NESTED = "operators inside formulas"
    COMPOSED = "filters, arithmetic, state expressions"


class Task(Enum):
    """What is done with a query, by the command and option that does it."""

    CHECK = "check"
    DOMAIN = "check --sets"
    POLICY = "check --policy"
    POLICY_OUT = "check --policy-out"
    CERTIFICATE = "check --certificate"
    LEARN = "learn"
    LEARN_POLICY = "learn --policy"
    LEARN_CERTIFICATE = "learn --certificate"
    REPORT = "report"
    ONLINE = "online"
    PLAN = "plan"
    WATCH = "watch --result"
    PYTHON = "Python"

    @property
    def word(self) -> str:
        """The option, or the command where there is none."""
        return self.value.rpartition(" ")[2]


class ModelKind(Enum):
    """What a query is about; a parametric model is a plain one at a point."""

    PLAIN = "plain models"
    INTERVAL = "interval models"
    CONTINUOUS = "continuous time"
    RATE_INTERVALS = "intervals of rates"
    AUTOMATON = "Markov automata"
    OBSERVED = "partial observation"


_WHY = {
    Task.POLICY_OUT: (
        "such an answer comes from several policies, or from one with memory",
        "leave --policy-out out; `learn -o DIR` writes the policies of multi(…)",
    ),
    Task.CERTIFICATE: (
        "certificates are about one P or R over a path or a reward, or one average, without operators inside",
        "leave --certificate out: the answer is proved without one, or ask for its parts",
    ),
    Task.LEARN_CERTIFICATE: (
        "certificates of learned results are about one P over any path, one R over a reward, or one average",
        "leave --certificate out: the answer is proved without one",
    ),
    Task.WATCH: (
        "single episodes do not show its value",
        "watch the model alone, without --result, or use a result for one P or R property",
    ),
}
"""Why a task does not take a kind of query, and what to do instead."""

_ALWAYS = (
    Task.CHECK,
    Task.DOMAIN,
    Task.POLICY,
    Task.LEARN,
    Task.LEARN_POLICY,
    Task.REPORT,
    Task.ONLINE,
    Task.PLAN,
    Task.PYTHON,
)
"""Tasks that take every kind."""

_DISCRETE = (ModelKind.PLAIN, ModelKind.INTERVAL)
_POSSIBLE = (*_DISCRETE, ModelKind.CONTINUOUS, ModelKind.AUTOMATON)
"""Models whose possible transitions are known; intervals of rates have self-loops that may vanish."""
_TIMED = (ModelKind.CONTINUOUS, ModelKind.RATE_INTERVALS, ModelKind.AUTOMATON)


@dataclass(frozen=True)
class Variant:
    """A part of a kind that users ask for by its own name, and the tasks and models that refuse it."""

    name: str
    example: str
    refused: tuple[Task, ...] = ()
    not_of: tuple[ModelKind, ...] = ()


@dataclass(frozen=True)
class Capability:
    """A kind of query: the words of its refusal, the tasks and models that take it."""

    kind: QueryKind
    subject: str
    examples: tuple[str, ...]
    exactness: str = "certified bounds"
    tasks: tuple[Task, ...] = ()
    models: tuple[ModelKind, ...] = tuple(kind for kind in ModelKind if kind is not ModelKind.OBSERVED)
    variants: tuple[Variant, ...] = ()
    """Rows of their own in the table, where tasks distinguish them."""

    def takes(self, task: Task) -> bool:
        """Whether a task goes with such queries."""
        return task in _ALWAYS or task in self.tasks


CAPABILITIES = {
    row.kind: row
    for row in (
        Capability(
            QueryKind.PLAIN,
            "one P or R over a simple path or a reward is",
            ('Pmax=? [ F "goal" ]', 'R{"cost"}min=? [ F "goal" ]', "R=? [ C<=10 ]", "R=? [ Cdiscount=0.9 ]"),
            "certified bounds, certificate",
            tuple(Task),
            tuple(ModelKind),
            variants=(
                Variant("probability of reaching, until", 'Pmax=? [ F "goal" ]'),
                Variant("expected reward", 'R{"cost"}min=? [ F "goal" ]'),
                Variant("finite horizon", 'R{"cost"}=? [ C<=10 ]', not_of=(ModelKind.AUTOMATON,)),
                Variant("discounted reward", "R=? [ Cdiscount=0.9 ]", (Task.WATCH,), _TIMED),
            ),
        ),
        Capability(
            QueryKind.LTL,
            "general LTL (temporal operators inside others, or combined) is",
            ('Pmax=? [ (G F "a") & (F G "b") ]', 'P=? [ F ("a" & (X "b")) ]'),
            "certified bounds, certificate",
            (Task.POLICY_OUT, Task.CERTIFICATE, Task.LEARN_CERTIFICATE),
            _POSSIBLE,
        ),
        Capability(
            QueryKind.LONG_RUN,
            "long-run averages are",
            ('R{"cost"}max=? [ S ]', 'S=? [ "up" ]'),
            "certified bounds, certificate",
            (Task.POLICY_OUT, Task.CERTIFICATE, Task.LEARN_CERTIFICATE),
        ),
        Capability(
            QueryKind.INSTANTANEOUS,
            "instantaneous rewards I=k are",
            ("R=? [ I=10 ]",),
            models=(*_DISCRETE, ModelKind.CONTINUOUS, ModelKind.RATE_INTERVALS),
        ),
        Capability(
            QueryKind.LATE_REWARD,
            "rewards from a step on, C>=k and C[a,b], are",
            ("R=? [ C[2,5] ]", "R=? [ C>=2 ]"),
            models=_DISCRETE,
        ),
        Capability(
            QueryKind.CO_SAFE_REWARD,
            "rewards until a path formula is satisfied are",
            ('R=? [ (F "a") & (F "b") ]',),
        ),
        Capability(
            QueryKind.REWARD_BOUNDED,
            "bounds on rewards are",
            ('Pmax=? [ F{"cost"}<=5 "goal" ]',),
            models=_DISCRETE,
        ),
        Capability(
            QueryKind.CONDITIONAL,
            "conditional probabilities are",
            ('Pmax=? [ F "a" || F "b" ]',),
            models=_POSSIBLE,
        ),
        Capability(
            QueryKind.QUANTILE,
            "quantiles are",
            ('quantile(min k, Pmax>=0.9 [ F{"cost"}<=k "goal" ])',),
            "certified bounds on k",
            models=_DISCRETE,
        ),
        Capability(QueryKind.CVAR, "CVaR is", ('CVaR{"cost",0.9}min=? [ F "goal" ]',), models=_DISCRETE),
        Capability(
            QueryKind.MULTI_OBJECTIVE,
            "several objectives, multi(…), are",
            ('multi(Pmax=? [ G (F "a") ], P<=0.05 [ F "crash" ])',),
            "certified bounds, true or false, a curve",
            models=_POSSIBLE,
        ),
        Capability(QueryKind.CTL, "A and E are", ('A [ G !"crash" ]', "E [ a U b ]"), "exact, by the graph"),
        Capability(
            QueryKind.NESTED,
            "operators inside other formulas are",
            ('Pmax=? [ F P>=0.5 [ "up" U "goal" ] ]',),
            "exact or *not decided*",
        ),
        Capability(
            QueryKind.COMPOSED,
            "filters, arithmetic and state expressions are",
            ('filter(avg, P=? [ F "goal" ], x>2)', "1 - P=? [ F a ] * 2", "x + 1"),
            "bounds of the parts, carried through",
        ),
    )
}


def supports(kind: QueryKind, task: Task) -> bool:
    """Whether a task takes queries of a kind."""
    return CAPABILITIES[kind].takes(task)


def has_own_certificate(kind: QueryKind) -> bool:
    """Whether certificates cover such queries although they are no single objective of the solver's."""
    return kind is not QueryKind.PLAIN and supports(kind, Task.CERTIFICATE)


def require_task(kind: QueryKind, text: str, task: Task) -> None:
    """Refuse a query, in the words of the table, where a task does not take its kind."""
    if not supports(kind, task):
        reason, instead = _WHY[task]
        raise InputError(f"{task.word} cannot be used with {text}: {reason}", hint=instead)


def capability_rows() -> list[dict[str, str]]:
    """The table in words, a row per kind of query: what the page and the command show."""
    rows = []
    for row in CAPABILITIES.values():
        for one in row.variants or (Variant(row.kind.value, row.examples[0]),):
            takes = {task: row.takes(task) and task not in one.refused for task in Task}
            cells = {"property": one.name, "example": one.example}
            cells |= {task.value: "yes" if takes[task] else "–" for task in Task}
            answers = {model: model in row.models and model not in one.not_of for model in ModelKind}
            cells |= {model.value: "yes" if answers[model] else "–" for model in ModelKind}
            rows.append({**cells, "answer": row.exactness})
    return rows


def count_cells(*left_out: Task) -> tuple[int, int]:
    """How many cells of the tasks work, without those of some of them, and how many there are."""
    cells = [row[task.value] for row in capability_rows() for task in Task if task not in left_out]
    return cells.count("yes"), len(cells)


def counted() -> dict[str, tuple[int, int]]:
    """The share of cells that work: of one column for every command, and of those of all options."""
    return {
        "commands": count_cells(Task.POLICY, Task.POLICY_OUT, Task.LEARN_CERTIFICATE),
        "all": count_cells(),
    }


def capability_table() -> str:
    """The table as Markdown, for the page on properties."""
    rows = capability_rows()
    cells = [[*rows[0]], ["---"] * len(rows[0])]
    for row in rows:
        example = f"`{row['example']}`".replace("|", "\\|")
        cells.append([example if name == "example" else text for name, text in row.items()])
    return "\n".join(f"| {' | '.join(line)} |" for line in cells) + "\n"
