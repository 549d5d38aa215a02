"""Mask numeric microdata and measure what the masking cost, on one scale from 0 to 1.

>>> import sdckit as sdc
>>> data = sdc.Microdata(sdc.load_sample(), key="firm", by="sector", weights="weight")
>>> release = data.release("mdav", k=5)
>>> masked, loss, risk = release.data, release.evaluation["brmae"], release.evaluation["linkage"]

To measure such a table again, give the release, which knows its order and what its masking discloses:
`data.evaluate(release)`.
Each metric is a function here and in its family's namespace: `sdc.brmae` is `sdc.loss.brmae`. Only
`sdc.estimates` is another function, which returns a table, than the loss `sdc.loss.estimates`.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from sdckit.core.version import VERSION

__version__ = VERSION

# Where each public name lives, the metrics apart, which `METRICS` lists. Modules are loaded when first used,
# so that importing the package, and with it `sdckit --help`, takes no time. `tools/make_reference.py` writes
# the same names for type checkers and editors into `__init__.pyi`.
_MODULES = {
    "Calibration": "selection.calibration",
    "Choice": "selection.choice",
    "Description": "core.description",
    "Disclosure": "masking.disclosure",
    "Estimates": "estimation.compare",
    "Evaluation": "evaluation.result",
    "Intruder": "core.scenarios",
    "LimitsMissed": "selection.limits",
    "Local": "engines.opening",
    "METHODS": "masking",
    "METRICS": "metrics",
    "Method": "masking.disclosure",
    "Microdata": "selection.microdata",
    "NotApplicable": "core.checks",
    "Release": "selection.release",
    "Spark": "engines.opening",
    "Sweep": "selection.sweep_result",
    "calibrate": "selection.calibration",
    "describe": "selection.plain",
    "estimates": "estimation.compare",
    "evaluate": "selection.plain",
    "load_dataset": "io.datasets",
    "load_sample": "io.datasets",
    "loss": "metrics",
    "mask": "selection.plain",
    "recode": "core.recode",
    "recommend": "selection.plain",
    "release": "selection.plain",
    "risk": "metrics",
    "score": "risk.trade_off_score",
    "show_progress": "progress",
    "sweep": "selection.plain",
}
_GONE = {  # names of version 0.1, and what to use in their place
    "Original": 'sdc.Microdata(data, key="id") holds data with the roles of their columns',
    "compare": 'sdc.estimates(original, masked, ["mean(wages)"]) compares what users of a file compute',
    "prepare": 'sdc.Microdata(data, key="id") holds data with the roles of their columns',
    "rank_table": 'sdc.evaluate(x, y, metrics=["rank_mae", "brmae"]).table has a row for each variable',
}


def _metrics() -> dict[str, Any]:
    """Return the public function of each metric, by name and by alias."""
    metrics = import_module("sdckit.metrics")
    families = (metrics.loss, metrics.risk)
    return {name: getattr(family, name) for family in families for name in family.__all__}


def _public_names() -> list[str]:
    """Return the names that `from sdckit import *` binds."""
    return sorted({*_MODULES, *_metrics()})


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return _public_names()
    if name in _GONE:
        raise AttributeError(f"sdc.{name} is gone: {_GONE[name]}")
    if name in _MODULES:
        value = getattr(import_module(f"sdckit.{_MODULES[name]}"), name)
    elif name.startswith("_") or find_spec(f"sdckit.{name}") or name not in _metrics():
        raise AttributeError(f"module 'sdckit' has no attribute {name!r}")
    else:
        value = _metrics()[name]
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return ["__version__", *_public_names()]
