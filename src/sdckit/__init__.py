"""Mask numeric microdata and measure what the masking cost, on one scale from 0 to 1.

>>> import sdckit as sdc
>>> original = sdc.load_sample()
>>> masked = sdc.mask(original, "mdav", k=5, by="sector", weights="weight")
>>> result = sdc.evaluate(original, masked, weights="weight")
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sdckit.core.version import VERSION

__version__ = VERSION

# Where each public name lives. Modules are loaded when first used, so that importing the package,
# and with it `sdckit --help`, takes no time.
_HOMES = {
    "Choice": "selection.choice",
    "Disclosure": "core.disclosure",
    "Evaluation": "metrics.evaluation",
    "LimitsMissed": "selection.limits",
    "METHODS": "masking",
    "METRICS": "metrics.risk",
    "NotApplicable": "core.checks",
    "Original": "metrics.original",
    "Release": "selection.release",
    "Sweep": "selection.sweeping",
    "brmae": "metrics.loss.rank",
    "brmse": "metrics.loss.rank",
    "ci_overlap": "metrics.loss.moments",
    "covariance_loss": "metrics.loss.moments",
    "dbrl": "metrics.risk.linkage",
    "dbrl_mahalanobis": "metrics.risk.linkage",
    "dbrl_rank": "metrics.risk.linkage",
    "eigen": "metrics.loss.moments",
    "evaluate": "metrics.evaluation",
    "hellinger": "metrics.loss.distributions",
    "il1": "metrics.loss.cells",
    "il1s": "metrics.loss.cells",
    "il_correl": "metrics.loss.moments",
    "il_variables": "metrics.loss.bounded_cells",
    "ks": "metrics.loss.distributions",
    "linkage": "metrics.risk.linkage",
    "linkage_outliers": "metrics.risk.linkage",
    "load_dataset": "io.datasets",
    "load_sample": "io.datasets",
    "mae": "metrics.loss.cells",
    "mask": "masking",
    "matching": "metrics.risk.linkage",
    "mse": "metrics.loss.cells",
    "mse_marginal": "metrics.loss.mse_split",
    "mse_permutation": "metrics.loss.mse_split",
    "pil": "metrics.loss.probabilistic",
    "pmse": "metrics.loss.propensity",
    "prepare": "metrics.original",
    "rank_table": "metrics.loss.rank_means",
    "recommend": "selection.bisection",
    "release": "selection.release",
    "rid": "metrics.risk.interval",
    "rmae": "metrics.loss.rank_means",
    "rmdid": "metrics.risk.robust_interval",
    "rmse": "metrics.loss.rank_means",
    "score": "metrics.risk.trade_off_score",
    "sdid": "metrics.risk.interval",
    "show_progress": "progress",
    "sweep": "selection.sweeping",
    "wasserstein": "metrics.loss.distributions",
    "window": "metrics.risk.linkage",
}

if TYPE_CHECKING:  # the same names for type checkers and editors
    from sdckit.core.checks import NotApplicable as NotApplicable
    from sdckit.core.disclosure import Disclosure as Disclosure
    from sdckit.core.registry import METHODS as METHODS
    from sdckit.core.registry import METRICS as METRICS
    from sdckit.io.datasets import load_dataset as load_dataset
    from sdckit.io.datasets import load_sample as load_sample
    from sdckit.masking import mask as mask
    from sdckit.metrics.evaluation import Evaluation as Evaluation
    from sdckit.metrics.evaluation import evaluate as evaluate
    from sdckit.metrics.loss.bounded_cells import il_variables as il_variables
    from sdckit.metrics.loss.cells import il1 as il1
    from sdckit.metrics.loss.cells import il1s as il1s
    from sdckit.metrics.loss.cells import mae as mae
    from sdckit.metrics.loss.cells import mse as mse
    from sdckit.metrics.loss.distributions import hellinger as hellinger
    from sdckit.metrics.loss.distributions import ks as ks
    from sdckit.metrics.loss.distributions import wasserstein as wasserstein
    from sdckit.metrics.loss.moments import ci_overlap as ci_overlap
    from sdckit.metrics.loss.moments import covariance_loss as covariance_loss
    from sdckit.metrics.loss.moments import eigen as eigen
    from sdckit.metrics.loss.moments import il_correl as il_correl
    from sdckit.metrics.loss.mse_split import mse_marginal as mse_marginal
    from sdckit.metrics.loss.mse_split import mse_permutation as mse_permutation
    from sdckit.metrics.loss.probabilistic import pil as pil
    from sdckit.metrics.loss.propensity import pmse as pmse
    from sdckit.metrics.loss.rank import brmae as brmae
    from sdckit.metrics.loss.rank import brmse as brmse
    from sdckit.metrics.loss.rank_means import rank_table as rank_table
    from sdckit.metrics.loss.rank_means import rmae as rmae
    from sdckit.metrics.loss.rank_means import rmse as rmse
    from sdckit.metrics.original import Original as Original
    from sdckit.metrics.original import prepare as prepare
    from sdckit.metrics.risk.interval import rid as rid
    from sdckit.metrics.risk.interval import sdid as sdid
    from sdckit.metrics.risk.linkage import dbrl as dbrl
    from sdckit.metrics.risk.linkage import dbrl_mahalanobis as dbrl_mahalanobis
    from sdckit.metrics.risk.linkage import dbrl_rank as dbrl_rank
    from sdckit.metrics.risk.linkage import linkage as linkage
    from sdckit.metrics.risk.linkage import linkage_outliers as linkage_outliers
    from sdckit.metrics.risk.linkage import matching as matching
    from sdckit.metrics.risk.linkage import window as window
    from sdckit.metrics.risk.robust_interval import rmdid as rmdid
    from sdckit.metrics.risk.trade_off_score import score as score
    from sdckit.progress import show_progress as show_progress
    from sdckit.selection.bisection import recommend as recommend
    from sdckit.selection.choice import Choice as Choice
    from sdckit.selection.limits import LimitsMissed as LimitsMissed
    from sdckit.selection.release import Release as Release
    from sdckit.selection.release import release as release
    from sdckit.selection.sweeping import Sweep as Sweep
    from sdckit.selection.sweeping import sweep as sweep


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'sdckit' has no attribute {name!r}")
    value = getattr(import_module(f"sdckit.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return ["__version__", *_HOMES]
