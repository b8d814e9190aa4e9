"""Robust policies for Markov decision processes with unknown parameters, learned from data.

    import tightrope as tr

    model = tr.load("model.prism", const={"n": 50}, params={"p": (0.1, 0.9)})
    problem = tr.Problem(model, 'Pmax=? [ F "goal" ]')
    data = tr.read_data("log.parquet", model)
    result = tr.learn(problem, data, delta=0.001)

The public names are those of `__init__.pyi`. They are loaded when they are first used, so `import tightrope`
costs next to nothing: neither numpy nor numba is imported before a model is built.
"""

import lazy_loader

__version__ = "0.3.0.dev0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
