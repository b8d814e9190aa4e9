"""Robust policies for Markov decision processes with unknown parameters, learned from data.

    import tightrope as tr

    model = tr.load("model.prism", const={"n": 50}, params={"p": (0.1, 0.9)})
    problem = tr.Problem(model, 'Pmax=? [ F "goal" ]')
    data = tr.read_data("log.parquet", model)
    result = tr.learn(problem, data, delta=0.001)

`__init__.pyi` lists the public names. They are loaded at first use; `import tightrope` imports neither numpy
nor numba. Calls that do not match a public signature raise a readable error (`errors.in_words`).
"""

from types import FunctionType
from typing import Any

import lazy_loader

__version__ = "0.3.0.dev0"

MOVED = {"plot_learning_curve": "plot_curve", "from_stormpy": "load"}
"""Names of earlier versions, and what does the same."""

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    from tightrope.errors import TightropeError, in_words, word_methods

    try:
        value = _load(name)
    except AttributeError:
        if name.startswith("_") or name in __all__:
            raise
        from difflib import get_close_matches

        near = [MOVED[name]] if name in MOVED else get_close_matches(name, __all__, 1)
        hint = f"; did you mean `{near[0]}`?" if near else ""
        raise AttributeError(f"tightrope has no name `{name}`{hint}") from None
    if isinstance(value, FunctionType):
        value = in_words(value)
        value.__module__ = __name__  # where pickles find it
    elif isinstance(value, type) and not issubclass(value, TightropeError):
        word_methods(value)
    elif callable(value) and type(value).__module__.startswith(__name__):
        word_methods(type(value))
    if name in __all__:
        globals()[name] = value
    return value
