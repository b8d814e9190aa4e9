"""Entry point: run the chosen command and turn every failure into a message and an exit code.

| exit code | meaning |
|---|---|
| 0 | answered, and certified where there is something to certify |
| 1 | the tool could not certify (`CannotCertify`), or ran out of memory |
| 2 | wrong input: a model, a property, a file or an option; a file cannot be read or written |
| 70 | an internal error: a bug in tightrope |
| 130 | interrupted (Ctrl-C) |
| 141 | output pipe closed |

Tracebacks are shown only if the environment variable `TIGHTROPE_DEBUG` is 1. Only the module of the chosen
command is imported.
"""

from __future__ import annotations

import gc
import inspect
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from functools import cache
from io import TextIOWrapper
from typing import Annotated, Any, TextIO, cast

import typer
from typer.core import TyperGroup
from typer.main import get_command

from tightrope import __version__
from tightrope.cli.commands import COMMANDS
from tightrope.cli.flags import as_flags, likely_option
from tightrope.errors import TightropeError, shown

CANNOT_ANSWER = 1
WRONG_INPUT = 2
INTERNAL_ERROR = 70
INTERRUPTED = 130
READER_GONE = 141
COMPLETION = "_TIGHTROPE_COMPLETE"
"""Set by shells that ask what may follow (`tightrope --install-completion`)."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave the process with its exit code."""
    # matrices here are small: threads of BLAS would only wait for each other; a user's own setting stays
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    gc.set_threshold(100_000, 50, 50)  # imports make many objects and hardly any circles
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal may not know θ
    code = run(sys.argv[1:] if arguments is None else arguments)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = READER_GONE
    if code == READER_GONE:  # Python's own flush at exit would complain
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    gc.freeze()  # else Python looks through all objects for circles once more: 0.1 s for nothing
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run the command line; the exit code."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = _show_warning
            if COMPLETION in os.environ:
                return _complete()
            group = build_command(arguments)
            with _spelt_out(group, arguments) as words:
                result = group.main(args=list(words), prog_name="tightrope", standalone_mode=False)
    except typer.TyperException as error:
        return _usage_error(error)
    except TightropeError as error:
        _say(f"error: {as_flags(str(error))}")
        return error.exit_code
    except (KeyboardInterrupt, typer.Abort):
        _say("interrupted")
        return INTERRUPTED
    except (BrokenPipeError, SystemExit):  # typer leaves by SystemExit on a broken pipe, else never
        return READER_GONE
    except MemoryError:
        _say("error: out of memory\nhint: a smaller instance of the model may fit")
        return CANNOT_ANSWER
    except RecursionError as error:
        if os.environ.get("TIGHTROPE_DEBUG") == "1":
            return _internal_error(error)
        _say("error: the input is nested too deeply\nhint: use less nesting")
        return WRONG_INPUT
    except OSError as error:
        name = f"{shown(str(error.filename))}: " if error.filename else ""
        _say(f"error: {name}{error.strerror or error}")
        return WRONG_INPUT
    except Exception as error:
        return _internal_error(error)
    return result if isinstance(result, int) else 0


@contextmanager
def _spelt_out(group: TyperGroup, arguments: Sequence[str]) -> Iterator[Sequence[str]]:
    """The arguments of a command, what all commands take done (`tightrope.cli.everywhere`)."""
    name = _named(arguments)
    if name is None or name not in group.commands:
        yield arguments
        return
    from tightrope.cli.everywhere import streaming, take_common

    with streaming(name, take_common(group.commands[name], name, arguments)) as words:
        yield words


def _complete() -> int:
    """Answer a shell that asks what may follow."""
    from tightrope.cli.everywhere import completed_command

    try:
        load_group.__wrapped__(completed_command()).main(args=[], prog_name="tightrope")
    except SystemExit as left:
        return left.code if isinstance(left.code, int) else 0
    return 0


def build_app(chosen: str | None) -> typer.Typer:
    """The app, with the command of that name loaded and the others as summaries."""
    epilog = None
    if chosen is not None:
        from tightrope.cli.everywhere import HELP

        epilog = HELP
        if "NO_COLOR" in os.environ:
            from typer import rich_utils

            rich_utils.COLOR_SYSTEM = None  # no bold type either
    app = typer.Typer(
        name="tightrope",
        add_completion=chosen is None or COMPLETION in os.environ,
        context_settings={"help_option_names": ["-h", "--help"]},
        rich_markup_mode=None if chosen is None else "rich",  # the list of commands is there at once
    )
    app.callback(invoke_without_command=True)(_root)
    for command in COMMANDS:
        function = command.load() if command.name == chosen else _stand_in
        app.command(command.name, help=_help(function), short_help=command.summary, epilog=epilog)(function)
    return app


def build_command(arguments: Sequence[str]) -> TyperGroup:
    """What parses these arguments: the command that they name is loaded."""
    return load_group(_named(arguments))


def _named(arguments: Sequence[str]) -> str | None:
    """The command that arguments name."""
    return next((argument for argument in arguments if not argument.startswith("-")), None)


@cache
def load_group(chosen: str | None) -> TyperGroup:
    """The app as what parses arguments."""
    group = cast(TyperGroup, get_command(build_app(chosen)))
    for command in (group, *group.commands.values()):
        vars(command)["get_params"] = _with_conversions(command.get_params)
    return group


def _with_conversions(get_params: Callable[[Any], list[Any]]) -> Callable[[object], list[object]]:
    def get(context: object) -> list[object]:
        parameters = get_params(context)
        for parameter in parameters:
            if "process_value" not in vars(parameter):
                parameter.process_value = _converting(parameter)
        return parameters

    return get


def _converting(parameter: Any) -> Callable[[object, object], object]:
    """How a parameter's value becomes what the command takes: as typer does it, which loads pydantic to that
    end, except where nothing is to be converted. Typer (0.29) has no setting for that; it is 7 % of the CPU
    time of a small `info`."""
    convert, descriptor = parameter.process_value, getattr(parameter, "type_descriptor", None)
    kind = getattr(descriptor, "annotation", None)

    def process(context: object, value: Any) -> object:
        is_single = parameter.nargs == 1 and not parameter.multiple
        if value is None and not parameter.required and parameter.nargs == 1:
            value = None if is_single else ()
            return value if parameter.callback is None else parameter.callback(context, parameter, value)
        if parameter.callback is None and value:
            if is_single and (isinstance(value, Enum) or (kind is float and isinstance(value, float))):
                return value
            if is_single and kind is str and isinstance(value, str):
                return value
            if parameter.multiple and kind == list[str]:
                return list(value)
        return convert(context, value)

    return process


def _help(function: Callable[..., None]) -> str:
    """The docstring with one line a paragraph, for the terminal to wrap, and brackets as they are written."""
    paragraphs = inspect.cleandoc(function.__doc__ or "").split("\n\n")
    text = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
    return re.sub(r"\[(?=[a-zA-Z/@#])", r"\\[", text)


def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and leave.")] = False,
) -> None:
    """Robust policies for uncertain Markov decision processes, with bounds that can be checked."""
    if version:
        typer.echo(f"tightrope {__version__}")
        raise typer.Exit()
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _stand_in() -> None:
    """Stands for the commands that are only listed."""


def _usage_error(error: typer.TyperException) -> int:
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "tightrope"
    name, likely = getattr(error, "option_name", ""), list[str]()
    if context is not None and name.startswith("--"):
        likely = likely_option(name[2:], [each for option in context.command.params for each in option.opts])
        vars(error)["possibilities"] = None
    text = re.sub(
        r"Input should be (a )?(?:valid )?(.*?)(, unable.*)?$", r"it must be \1\2", error.format_message()
    ).replace("Value error, ", "")
    text = "error: " + text.replace("a integer", "an integer")
    _say("\nhint: ".join([text, *likely, f"'{path} --help' lists what it accepts"]))
    return WRONG_INPUT


def _internal_error(error: Exception) -> int:
    if os.environ.get("TIGHTROPE_DEBUG") == "1":
        import traceback

        traceback.print_exception(error, file=sys.stderr)
    _say(
        f"internal error: {type(error).__name__}: {error}\n"
        "This is a bug in tightrope. Please report it with the command you ran and what it prints under\n"
        "TIGHTROPE_DEBUG=1, which shows where it happened."
    )
    return INTERNAL_ERROR


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """A warning in the words of its author, without the line of code it came from."""
    _say(f"warning: {as_flags(str(message))}")


def _say(text: str) -> None:
    try:
        typer.echo(shown(text, "\t\n"), err=True)
    except BrokenPipeError:
        return
