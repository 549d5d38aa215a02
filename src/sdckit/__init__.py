"""Mask numeric microdata and measure what the masking cost, on one scale from 0 to 1.

>>> import sdckit as sdc
>>> original = sdc.load_sample()
>>> masked = sdc.mask(original, "mdav", k=5, by="sector", weights="weight")
>>> result = sdc.evaluate(original, masked, weights="weight")
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Where each public name lives. Modules are loaded when first used, so that importing the package,
# and with it `sdckit --help`, takes no time.
_HOMES = {
    "METHODS": "masking",
    "METRICS": "risk",
    "Evaluation": "evaluation",
    "Original": "pairs",
    "Sweep": "sweeping",
    "brmae": "loss.rank",
    "brmse": "loss.rank",
    "evaluate": "evaluation",
    "il1": "loss.cells",
    "il1s": "loss.cells",
    "load_dataset": "datasets",
    "load_sample": "datasets",
    "mae": "loss.cells",
    "mask": "masking",
    "mse": "loss.cells",
    "prepare": "pairs",
    "rank_table": "loss.rankmeans",
    "rmae": "loss.rankmeans",
    "rmse": "loss.rankmeans",
    "show_progress": "progress",
    "sweep": "sweeping",
}

if TYPE_CHECKING:  # the same names for type checkers and editors
    from sdckit.datasets import load_dataset as load_dataset
    from sdckit.datasets import load_sample as load_sample
    from sdckit.evaluation import Evaluation as Evaluation
    from sdckit.evaluation import evaluate as evaluate
    from sdckit.loss.cells import il1 as il1
    from sdckit.loss.cells import il1s as il1s
    from sdckit.loss.cells import mae as mae
    from sdckit.loss.cells import mse as mse
    from sdckit.loss.rank import brmae as brmae
    from sdckit.loss.rank import brmse as brmse
    from sdckit.loss.rankmeans import rank_table as rank_table
    from sdckit.loss.rankmeans import rmae as rmae
    from sdckit.loss.rankmeans import rmse as rmse
    from sdckit.masking import mask as mask
    from sdckit.pairs import Original as Original
    from sdckit.pairs import prepare as prepare
    from sdckit.progress import show_progress as show_progress
    from sdckit.registry import METHODS as METHODS
    from sdckit.registry import METRICS as METRICS
    from sdckit.sweeping import Sweep as Sweep
    from sdckit.sweeping import sweep as sweep


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'sdckit' has no attribute {name!r}")
    value = getattr(import_module(f"sdckit.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return ["__version__", *_HOMES]
