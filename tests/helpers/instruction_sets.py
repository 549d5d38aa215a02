"""Sums of ranks and masked files with a seed, as a process on a lowered instruction set computes them.

As a script with the name of a file, it saves them there; without one, it prints the lowest settings.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

import sdckit as sdc
from contract import SHAPES, masked_by, needed, strong, suited
from sdckit.kernels.ranks import TIES, OrderedColumn, distance

SEED = 11
FILES = ("plain", "missing cells", "duplicates", "integers", "zeros", "columns of different size")
LEVELS = [
    level for level in __cpu_dispatch__ if __cpu_features__.get(level)
]  # of this machine, above the baseline
NUMPY = [f"NPY_DISABLE_CPU_FEATURES={' '.join(LEVELS[first:])}" for first in reversed(range(len(LEVELS)))]
NUMBA = "NUMBA_CPU_NAME=generic"
BLAS = "OPENBLAS_CORETYPE=Prescott"  # the oldest of its kinds of CPU


def columns():
    """Pairs of columns whose order is easily lost: ties, signs of zeros, neighbours of zero, last bits."""
    rng = np.random.default_rng(SEED)
    for n in (64, 1000, 5000):
        x = rng.normal(size=n)
        yield f"noise {n}", x, x + rng.normal(size=n)
        yield f"whole {n}", np.round(5 * x), np.round(5 * x + rng.normal(size=n))
        yield f"near zero {n}", rng.integers(-9, 9, n) * 5e-324, np.where(x < 0, -0.0, 0.0)
        yield f"last bits {n}", 1e9 + rng.integers(0, 99, n) * 2.0**-23, np.sort(x)


def results():
    """Doubled and fourfold sums for each pair of columns and rule; masked cells for each method and shape."""
    found = {}
    for name, x, y in columns():
        column = OrderedColumn(x)
        for ties in TIES:
            sums = distance(column, y, ties, np.random.default_rng(SEED))
            found[f"sums, {name}, {ties}"] = np.array([sums.absolute2, sums.squared4])
    for method in sdc.METHODS.values():
        options = strong(method)
        for shape in FILES:
            values = suited(method, SHAPES[shape](), options)
            if needed(method, options, values.shape[1]) <= len(values):
                found[f"{method.name}, {shape}"] = masked_by(method, values, options, SEED)
    return found


def results_under(setting, folder):
    """The same from a process with one more environment variable; and the CPU features that numpy used."""
    file = Path(folder) / "results.npz"
    name, value = setting.split("=")
    paths = os.pathsep.join(path for path in sys.path if path)
    subprocess.run(
        [sys.executable, __file__, file], env=os.environ | {name: value, "PYTHONPATH": paths}, check=True
    )
    with np.load(file) as found:
        return dict(found), json.loads(file.with_suffix(".json").read_text())


def save(file):
    np.savez(file, **results())
    used = [name for name, present in __cpu_features__.items() if present]
    Path(file).with_suffix(".json").write_text(json.dumps(used))


if __name__ == "__main__":
    if sys.argv[1:]:
        save(sys.argv[1])
    else:
        sys.stdout.write("".join(f"{setting}\n" for setting in [NUMBA, *NUMPY[-1:]]))
