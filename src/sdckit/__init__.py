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
    "Choice": "choosing",
    "Evaluation": "evaluation",
    "LimitsMissed": "choosing",
    "METHODS": "masking",
    "METRICS": "risk",
    "Original": "pairs",
    "Release": "choosing",
    "Sweep": "sweeping",
    "brmae": "loss.rank",
    "brmse": "loss.rank",
    "ci_overlap": "loss.moments",
    "covariance_loss": "loss.moments",
    "dbrl": "risk.linkage",
    "dbrl_mahalanobis": "risk.linkage",
    "dbrl_rank": "risk.linkage",
    "eigen": "loss.moments",
    "evaluate": "evaluation",
    "hellinger": "loss.marginal",
    "il1": "loss.cells",
    "il1s": "loss.cells",
    "il_correl": "loss.moments",
    "il_variables": "loss.boundedcells",
    "ks": "loss.marginal",
    "linkage": "risk.linkage",
    "linkage_outliers": "risk.linkage",
    "load_dataset": "datasets",
    "load_sample": "datasets",
    "mae": "loss.cells",
    "mask": "masking",
    "matching": "risk.linkage",
    "mse": "loss.cells",
    "mse_marginal": "loss.split",
    "mse_permutation": "loss.split",
    "pil": "loss.probabilistic",
    "pmse": "loss.propensity",
    "prepare": "pairs",
    "rank_table": "loss.rankmeans",
    "recommend": "searching",
    "rid": "risk.interval",
    "rmae": "loss.rankmeans",
    "rmdid": "risk.outlier",
    "rmse": "loss.rankmeans",
    "score": "risk.weighted",
    "sdid": "risk.interval",
    "show_progress": "progress",
    "sweep": "sweeping",
    "wasserstein": "loss.marginal",
    "window": "risk.linkage",
}

if TYPE_CHECKING:  # the same names for type checkers and editors
    from sdckit.choosing import Choice as Choice
    from sdckit.choosing import LimitsMissed as LimitsMissed
    from sdckit.choosing import Release as Release
    from sdckit.datasets import load_dataset as load_dataset
    from sdckit.datasets import load_sample as load_sample
    from sdckit.evaluation import Evaluation as Evaluation
    from sdckit.evaluation import evaluate as evaluate
    from sdckit.loss.boundedcells import il_variables as il_variables
    from sdckit.loss.cells import il1 as il1
    from sdckit.loss.cells import il1s as il1s
    from sdckit.loss.cells import mae as mae
    from sdckit.loss.cells import mse as mse
    from sdckit.loss.marginal import hellinger as hellinger
    from sdckit.loss.marginal import ks as ks
    from sdckit.loss.marginal import wasserstein as wasserstein
    from sdckit.loss.moments import ci_overlap as ci_overlap
    from sdckit.loss.moments import covariance_loss as covariance_loss
    from sdckit.loss.moments import eigen as eigen
    from sdckit.loss.moments import il_correl as il_correl
    from sdckit.loss.probabilistic import pil as pil
    from sdckit.loss.propensity import pmse as pmse
    from sdckit.loss.rank import brmae as brmae
    from sdckit.loss.rank import brmse as brmse
    from sdckit.loss.rankmeans import rank_table as rank_table
    from sdckit.loss.rankmeans import rmae as rmae
    from sdckit.loss.rankmeans import rmse as rmse
    from sdckit.loss.split import mse_marginal as mse_marginal
    from sdckit.loss.split import mse_permutation as mse_permutation
    from sdckit.masking import mask as mask
    from sdckit.pairs import Original as Original
    from sdckit.pairs import prepare as prepare
    from sdckit.progress import show_progress as show_progress
    from sdckit.registry import METHODS as METHODS
    from sdckit.registry import METRICS as METRICS
    from sdckit.risk.interval import rid as rid
    from sdckit.risk.interval import sdid as sdid
    from sdckit.risk.linkage import dbrl as dbrl
    from sdckit.risk.linkage import dbrl_mahalanobis as dbrl_mahalanobis
    from sdckit.risk.linkage import dbrl_rank as dbrl_rank
    from sdckit.risk.linkage import linkage as linkage
    from sdckit.risk.linkage import linkage_outliers as linkage_outliers
    from sdckit.risk.linkage import matching as matching
    from sdckit.risk.linkage import window as window
    from sdckit.risk.outlier import rmdid as rmdid
    from sdckit.risk.weighted import score as score
    from sdckit.searching import recommend as recommend
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
