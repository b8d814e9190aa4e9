"""README and pages are short and plain: `docs/_tools/prose.py` measures them."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable

import pytest
from command_reference import command_reference
from generated_parts import INTERNAL
from prose import measure, measure_text, pages

import tightrope

MOST_WORDS = 60_000
"""Of README and all pages together."""

LONGEST_README = 120


MOST_IN_HELP = 1
"""Private words in the help of all commands. This number may only shrink."""

MOST_IN_OUTPUT = 1
"""Private words in the outputs of `docs/reference/output.md`. This number may only shrink."""

MOST_IN_MESSAGES = 6
"""Private words in the messages of errors: "truth value" and two names of options. It may only shrink."""


KEYS = frozenset({"amended", "breakdown", "ledger", "misfit", "promise", "truth"})
"""Private words that are keys of JSON, which keep their names: attributes of the same name may have them."""

PRIVATE = re.compile(
    r"ledger|bettor|stake|suspect|misfit|breakdown(?!_point)|promise|amend|worth|truth|believ|nobody",
    re.IGNORECASE,
)


def test_every_page_is_within_the_rule() -> None:
    for page in pages():
        prose = measure(page)
        assert prose.is_within_the_rule, "\n".join(prose.findings())


@pytest.mark.parametrize("name", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_pages_for_engineers_are_within_the_rule(name: str) -> None:
    prose = measure(pages()[0].parent / name)
    assert prose.is_within_the_rule, "\n".join(prose.findings())


def test_the_pages_do_not_grow() -> None:
    assert sum(measure(page).words for page in pages()) <= MOST_WORDS
    readme = pages()[0].read_text(encoding="utf-8")
    assert readme.count("\n") <= LONGEST_README


def test_the_readme_shows_what_the_first_page_prints() -> None:
    (line,) = re.findall(r"^ +(PROVED: .*)$", pages()[0].read_text(encoding="utf-8"), re.MULTILINE)
    first_page = pages()[0].parent / "docs" / "start" / "five-minutes.md"
    assert f"\n{line}\n" in first_page.read_text(encoding="utf-8")


def test_the_help_gains_no_private_words() -> None:
    assert len(measure_text("help", command_reference()).banned) <= MOST_IN_HELP


def test_the_output_has_no_private_words() -> None:
    page = (pages()[0].parent / "docs" / "reference" / "output.md").read_text(encoding="utf-8")
    outputs = re.findall(r"^```text[^\n]*\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert len(outputs) >= 10
    assert len(measure_text("output", "\n".join(outputs).replace("    ", "")).banned) <= MOST_IN_OUTPUT


def messages() -> list[str]:
    """The texts in calls that make errors: `InputError(…)`, `Complaint(…)`, `CannotCertify(…)`."""
    found = []
    for path in (pages()[0].parent / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = getattr(node.func, "id", "") if isinstance(node, ast.Call) else ""
            if name in ("InputError", "Complaint", "CannotCertify"):
                parts = [part for part in ast.walk(node) if isinstance(part, ast.Constant)]
                found += [part.value for part in parts if isinstance(part.value, str) and " " in part.value]
    return found


def test_errors_have_no_private_words() -> None:
    assert len(messages()) > 1_000
    banned = [word for text in messages() for word in measure_text("message", text).banned]
    assert len(banned) <= MOST_IN_MESSAGES, banned


def test_public_functions_have_sections() -> None:
    """Parameters and Returns, which the reference shows; every public name has a docstring."""
    without = set()
    for name in tightrope.__all__:
        member = inspect.unwrap(getattr(tightrope, name))
        assert inspect.getdoc(member), name
        if inspect.isfunction(member):
            text, signature = inspect.getdoc(member) or "", inspect.signature(member)
            wanted = ["Parameters\n-"] * bool(signature.parameters) + ["Returns\n-"]
            if not all(section in text for section in wanted):
                without.add(name)
    assert without == set()


def public_methods() -> dict[str, Callable[..., object]]:
    """The methods that public classes define, or inherit within the package, by class and name."""
    members = [getattr(tightrope, name) for name in tightrope.__all__]
    owners = {owner for member in members if isinstance(member, type) for owner in member.__mro__}
    functions = [
        inspect.unwrap(getattr(member, "__func__", member))
        for owner in owners
        if owner.__module__.startswith("tightrope")
        for name, member in vars(owner).items()
        if not name.startswith("_") and inspect.isfunction(getattr(member, "__func__", member))
    ]
    return {function.__qualname__: function for function in functions}


def is_described(function: Callable[..., object]) -> bool:
    """Each parameter has an entry or is named in the text; a result has a section or a "Return"."""
    text, signature = inspect.getdoc(function) or "", inspect.signature(function)
    code, entries = re.findall(r"`[^`]*`", text), re.findall(r"^[\w*, ]+(?= :|$)", text, re.MULTILINE)
    described = set(re.findall(r"\w+", " ".join([*code, *entries])))
    returns = signature.return_annotation in ("None", None) or re.search(r"\b[Rr]eturn", text)
    return bool(text and returns) and set(signature.parameters) - {"self", "cls"} <= described


def test_public_methods_say_what_they_take_and_return() -> None:
    """Those that the reference shows: what only the package calls is listed, and exists."""
    methods = public_methods()
    assert len(methods) > 150
    assert set(methods) >= INTERNAL
    assert {name for name in set(methods) - INTERNAL if not is_described(methods[name])} == set()


def test_no_public_name_has_a_private_word() -> None:
    schemas = (pages()[0].parent / "docs" / "schemas").glob("*.json")
    texts = [schema.read_text(encoding="utf-8") for schema in schemas]
    assert all(any(f'"{key}":' in text for text in texts) for key in KEYS)
    names = set(tightrope.__all__)
    for name in tightrope.__all__:
        member = getattr(tightrope, name)
        if isinstance(member, type):
            names |= {f"{name}.{attribute}" for attribute in dir(member) if not attribute.startswith("_")}
    assert {name for name in names if PRIVATE.search(name) and name.rpartition(".")[2] not in KEYS} == set()


@pytest.mark.parametrize(
    ("text", "words", "findings"),
    [
        ("Learn a policy from a log.\n", 6, []),
        ("```sh\nnobody reads this " + "word " * 40 + "\n```\n", 0, []),
        ("| " + "word " * 40 + "|\n", 40, []),
        ("See `the ledger` of " + "x" * 90 + "\n", 4, ["line"]),
        ("- https://example.com/" + "x" * 90 + "\n", 0, []),
        ("a\n" * 6, 6, ["paragraph"]),
        ("- a\n" * 6, 6, []),
        ("The ledger says it.\n", 4, ["word"]),
        ("word " * 16 + "\n" + "word " * 15 + "\n", 31, ["sentence"]),
        ("Word " * 16 + "end.\n" + "Word " * 15 + "\n", 32, []),
    ],
)
def test_what_is_measured(text: str, words: int, findings: list[str]) -> None:
    prose = measure_text("page", text)
    assert prose.words == words
    assert [line.split(": ")[1] for line in prose.findings()] == findings
