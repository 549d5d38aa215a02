"""A metric and a method in one module each, and the package as it stands with both of them added."""

from pathlib import Path

import sdckit

METRIC = '''"""A loss for the tests."""

import numpy as np

from sdckit.metrics.pair import metric, pooled_means, record_means
from sdckit.metrics.score import Score


def score_changed(pair, *, detail=False, per_record=False):
    cells = [(pair.cells(j)[0] != pair.cells(j)[1]).astype(float) for j in range(pair.p)]
    given = [pair.cells(j)[2] for j in range(pair.p)]
    weights = [np.ones(own.size) if weight is None else weight for own, weight in zip(cells, given)]
    sums = np.array([(own * weight).sum() for own, weight in zip(cells, weights)])
    value = pooled_means(sums, np.array([weight.sum() for weight in weights]))
    records = record_means(pair.original.n, [(pair.both(j), own) for j, own in enumerate(cells)])
    used = pair.counts.both
    return Score(value, used, np.zeros_like(used), records=records if per_record else None)


@metric(
    title="changed cells, whatever the change",
    family="loss",
    bounds=(0.0, 1.0),
    best=0.0,
    needs="cells",
    score=score_changed,
    explain=lambda score: f"{score.value.overall:.1%} of the cells changed",
    reference="this test",
)
def changed_cells(original, masked, *, weights=None):
    """Share of the cells that changed.

    0 means that no cell changed, 1 that all did.

    Parameters
    ----------
    original, masked, weights
        As for `mae`.

    Returns
    -------
    float

    References
    ----------
    This test.

    Examples
    --------
    >>> changed_cells([1, 2], [1, 3])
    0.5
    """
'''
METHOD = '''"""A masking for the tests."""

import numpy as np

from sdckit.core.registry import Parameter, method


@method(
    title="shrinking towards the mean",
    parameters=(Parameter("percent", float, 50.0, "how far", low=0, high=99, grid=(10, 50, 90)),),
    keeps=("column means",),
    default=True,
    reference="this test",
)
def shrunk(values, *, percent=50.0):
    """Move every value towards the mean of its column.

    Parameters
    ----------
    values, percent
        The matrix, and how much of the distance goes.

    Returns
    -------
    numpy.ndarray

    References
    ----------
    This test.

    Examples
    --------
    >>> shrunk(np.array([[1.0], [3.0]]))
    array([[1.5],
           [2.5]])
    """
    known = ~np.isnan(values)
    size = np.nanmax(np.abs(values), axis=0, initial=1e-300, where=known)
    means = np.divide(np.sum(values / size, axis=0, where=known), np.maximum(known.sum(axis=0), 1)) * size
    moved = values + (means - values) * percent / 100
    constant = np.array([np.unique(column[~np.isnan(column)]).size < 2 for column in values.T])
    return np.where(constant, values, moved)
'''


def linked_package(folder):
    """Lay out the package in a folder, every file a link, and add the two modules."""
    home, package = Path(sdckit.__file__).parent, folder / "sdckit"
    package.mkdir()
    for path in sorted(home.rglob("*")):
        place = package / path.relative_to(home)
        if "__pycache__" in path.parent.parts:
            continue
        if path.is_dir() and path.name != "__pycache__":  # which holds compiled kernels, and is shared
            place.mkdir()
        else:
            place.symlink_to(path)
    (package / "metrics" / "loss" / "changed.py").write_text(METRIC, encoding="utf-8")
    (package / "masking" / "shrinking.py").write_text(METHOD, encoding="utf-8")
    return folder
