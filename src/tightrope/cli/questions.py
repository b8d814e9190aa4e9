"""From `--prop` (a property, or a file of them) to questions about a model.

Shared by the commands that answer questions. A benchmark brings its own property and terminal
reward; `--const` values that a property file declares are the file's, the others the model's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tightrope.cli.model_source import LoadedModel
from tightrope.cli.output import warn
from tightrope.errors import InputError, Location
from tightrope.model.mdp import IntervalMDP
from tightrope.numerics.text_reading import plain_suffix
from tightrope.prism.parse.parser import parse_properties
from tightrope.prism.parse.property_syntax import PropertyFile
from tightrope.prism.properties.boundary import BoundaryOf
from tightrope.prism.properties.query import Query, read_query
from tightrope.prism.properties.resolve import PropertyOptions

PROPERTY_SUFFIXES = (".props", ".prop", ".pctl", ".prctl")


@dataclass(frozen=True)
class PropertyTexts:
    """Parsed properties, before there is a model to ask."""

    files: tuple[PropertyFile, ...]

    def model_constants(self, constants: Mapping[str, str]) -> list[str]:
        """The `--const` values that are not a property file's, as the option's texts."""
        declared = {constant.name for file in self.files for constant in file.constants}
        return [f"{name}={text}" for name, text in constants.items() if name not in declared]

    def boundary(self, constants: Mapping[str, str]) -> BoundaryOf:
        """Where a build for these properties may stop."""
        return BoundaryOf(self.files, constants)

    def queries(
        self,
        loaded: LoadedModel,
        constants: Mapping[str, str],
        discount: float | None = None,
        terminal_reward: str | None = None,
        is_uncertain: bool = False,
    ) -> list[Query]:
        """What every property asks of the model; a benchmark's own where none was given."""
        files = self.files
        if not files:
            files = (parse_properties(loaded.property_text(None), "the benchmark's property"),)
            if terminal_reward is None and loaded.benchmark is not None:
                terminal_reward = loaded.benchmark.terminal_reward
        options = PropertyOptions(
            constants=constants,
            is_interval=is_uncertain or isinstance(loaded.model, IntervalMDP),
            discount=discount,
            terminal_reward=terminal_reward,
        )
        structure = loaded.model.structure
        queries = [read_query(one, file, structure, options) for file in files for one in file.properties]
        if not queries:
            raise InputError("there is no property to check", Location(files[0].file))
        return queries


def read_own_properties(source: str) -> PropertyTexts:
    """The properties that a JANI file brings along, each with how it was read; none for other models."""
    if not is_jani(source):
        return PropertyTexts(())
    from tightrope.io.jani import read_properties as read_jani_properties

    files = []
    for found in read_jani_properties(source):
        if found.text is None:
            warn(f"the property '{found.name}' of {source} is left out: {found.reason}")
            continue
        warn(f"the property '{found.name}' of {source} is read as  {found.text}")
        files.append(parse_properties(found.text, f"property '{found.name}'"))
    return PropertyTexts(tuple(files))


def is_jani(source: str) -> bool:
    """Whether a model's name is that of a JANI file which is there."""
    return plain_suffix(Path(source)) == ".jani" and Path(source).is_file()


def read_properties(texts: Sequence[str] | None) -> PropertyTexts:
    """Parse every `--prop`: a property file by its name, anything else as a property."""
    files = []
    for text in texts or ():
        path = Path(text)
        if path.suffix in PROPERTY_SUFFIXES:
            try:
                source = path.read_text(encoding="utf-8")
            except OSError as error:
                raise InputError(f"cannot be read: {error.strerror}", Location(text)) from None
            except UnicodeDecodeError:
                raise InputError("this is not a text file in UTF-8", Location(text)) from None
            files.append(parse_properties(source, text))
        else:
            files.append(parse_properties(text, "--prop"))
    return PropertyTexts(tuple(files))
