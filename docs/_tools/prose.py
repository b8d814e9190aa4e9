"""Measure the prose of README and pages: words, long lines, long sentences, long paragraphs, banned words.

    python docs/_tools/prose.py            # one line per page, most words first
    python docs/_tools/prose.py PAGE ...   # every finding of these pages

Words are counted outside code and generated parts; tables count. The length of a sentence is that of its
words with two letters or more, so that a formula is no long sentence. Pages under `docs/results/` hold
measurements, so only their length of lines is free: they are not measured at all.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
LONGEST_LINE = 100
LONGEST_SENTENCE = 30
LONG_SENTENCES = 0.05
"""The part of a page's sentences that may have more words than the longest."""
LONGEST_PARAGRAPH = 5

BANNED = {
    r"ledgers?": "confidence budget",
    r"bettors?": "betting strategy",
    r"stakes?": "initial wealth",
    r"at all times at once": "time-uniform",
    r"(hold|holds|held) together": "hold simultaneously",
    r"(not|is|are|be) kept": "satisfied, violated",
    r"worth": "value",
    r"binding": "active constraints",
    r"misfits?": "model error, model-fit test",
    r"breakdowns?(?! points?\b)": "breakdown point",
    r"suspects?": "anomaly",
    r"promises?|promised": "guaranteed bound",
    r"doctor says": "diagnosis",
    r"amend(s|ed|ment|ments)?": "revise",
    r"mend(s|ed|ing)?": "fix",
    r"outcomes of episodes": "observed returns",
    r"nobody|somebody|whoever|no one": "name the subject",
    r"world": "environment",
    r"truth": "true parameters",
    r"free rows": "unconstrained distributions",
    r"models? of numbers": "models without parameters",
    r"along (themselves|values)": "along the value gradient",
    r"believed?": "trusted",
    r"speaks?|spoke": "data do not speak",
    r"(an?|one|each|every|next|first|last) looks?|looks (are|were|have|cost)": "interim analysis",
}
"""Private words, as patterns, and what to write instead. Code, options and keys are in backticks."""


@dataclass(frozen=True)
class Prose:
    """What was found on a page."""

    name: str
    words: int
    sentences: int
    long_lines: list[str]
    long_sentences: list[str]
    long_paragraphs: list[str]
    banned: list[str]

    @property
    def is_within_the_rule(self) -> bool:
        few = len(self.long_sentences) <= LONG_SENTENCES * self.sentences
        return few and not (self.long_lines or self.long_paragraphs or self.banned)

    def findings(self) -> list[str]:
        """One line each; sentences only where they are too many."""
        few = len(self.long_sentences) <= LONG_SENTENCES * self.sentences
        kinds = {
            "line": self.long_lines,
            "sentence": [] if few else self.long_sentences,
            "paragraph": self.long_paragraphs,
            "word": self.banned,
        }
        return [f"{self.name}: {kind}: {text}" for kind, texts in kinds.items() for text in texts]


def pages() -> list[Path]:
    """README and all pages but measurements and generated ones."""
    found = sorted((ROOT / "docs").rglob("*.md"))
    return [ROOT / "README.md", *(page for page in found if page.parent.name not in ("results", "api"))]


def measure(page: Path) -> Prose:
    return measure_text(page.relative_to(ROOT).as_posix(), page.read_text(encoding="utf-8"))


def measure_text(name: str, text: str) -> Prose:
    lines = _outside_code(text)
    paragraphs = _paragraphs(lines)
    sentences = [s for paragraph in paragraphs for s in _sentences(" ".join(paragraph))]
    plain = _plain("\n".join(lines)).split("\n")
    return Prose(
        name,
        sum(len(_words(line)) for line in plain),
        len(sentences),
        [line for line in lines if _is_long(line)],
        [s for s in sentences if len(re.findall(r"\S*[^\W\d_]{2}\S*", s)) > LONGEST_SENTENCE],
        [" ".join(p)[:80] for p in paragraphs if len(p) > LONGEST_PARAGRAPH],
        [f"{word!r}: {BANNED[pattern]}" for pattern in BANNED for word in _found(pattern, plain)],
    )


def _outside_code(text: str) -> list[str]:
    text = re.sub(r"<!-- (table|notes).*?<!-- end of.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    lines, fence = [], ""
    for line in text.splitlines():
        mark = re.match(r"\s*(`{3,}|~{3,}|:{3,})", line)
        if mark and not fence:
            fence = mark[1]
        elif mark and line.strip() == fence:
            fence = ""
        elif not fence and not line.startswith("    "):
            lines.append(line)
    return lines


def _plain(text: str) -> str:
    """Without code, addresses and tags; a span of code or a link may go on in the next line."""
    text = re.sub(r"`+[^`\n]*\n?[^`\n]*`+", lambda span: "code" + "\n" * span[0].count("\n"), text)
    text = re.sub(r"!?\[([^\]]*)\](\([^)\s]*\))?", r"\1", text)
    return re.sub(r"https?://\S+|</?\w[^>\n]*>", "", text)


def _words(text: str) -> list[str]:
    return [word for word in text.split() if re.search(r"[^\W_]", word)]


def _is_table(line: str) -> bool:
    return line.lstrip().startswith("|")


def _is_long(line: str) -> bool:
    can_break = " " in line.strip().removeprefix("- ").removeprefix("* ")
    return len(line) > LONGEST_LINE and can_break and not _is_table(line)


def _paragraphs(lines: list[str]) -> list[list[str]]:
    """Paragraphs and items of lists; no headings and no tables."""
    found: list[list[str]] = [[]]
    for line in lines:
        if not line.strip() or _is_table(line) or line.startswith(("#", "---")):
            found.append([])
        elif re.match(r"\s*([-*+]|\d+\.) |: |> ", line):
            found.append([line.strip()])
        else:
            found[-1].append(line.strip())
    return [paragraph for paragraph in found if paragraph]


def _sentences(paragraph: str) -> list[str]:
    plain = re.sub(r"\b(e\.g|i\.e|cf|et al|resp|vs|Fig|Eq|No|pp|vol)\.", r"\1", _plain(paragraph))
    return [s for s in re.split(r"(?<=[.!?])[)\"*']*\s+(?=[\W_]*(?:[^\W_a-z]|code))", plain) if _words(s)]


def _found(pattern: str, lines: list[str]) -> list[str]:
    return [m[0] for m in re.finditer(rf"\b({pattern})\b", " ".join(lines), re.IGNORECASE)]


def table(found: list[Prose]) -> str:
    """A line per page, most words first, and the sums."""
    lines = [" words  long lines  long sentences  long paragraphs  banned  page"]
    for p in sorted(found, key=lambda prose: -prose.words):
        counts = [len(p.long_lines), len(p.long_sentences), len(p.long_paragraphs), len(p.banned)]
        lines.append(f"{p.words:6,}  {counts[0]:10}  {counts[1]:14}  {counts[2]:15}  {counts[3]:6}  {p.name}")
    lines.append(
        f"{sum(p.words for p in found):,} words on {len(found)} pages; "
        f"{sum(len(p.long_lines) for p in found):,} long lines, "
        f"{sum(len(p.long_sentences) for p in found):,} of {sum(p.sentences for p in found):,} "
        "sentences long, "
        f"{sum(len(p.banned) for p in found):,} banned words; "
        f"{sum(p.is_within_the_rule for p in found)} pages within the rule"
    )
    return "\n".join(lines)


def _main(names: list[str]) -> None:
    for name in names:
        prose = measure(Path(name).resolve())
        long = f"{len(prose.long_sentences)} of {prose.sentences} sentences long"
        sys.stdout.write("\n".join([f"{prose.name}: {prose.words} words, {long}", *prose.findings()]) + "\n")
    if not names:
        sys.stdout.write(table([measure(page) for page in pages()]) + "\n")


if __name__ == "__main__":
    _main(sys.argv[1:])
