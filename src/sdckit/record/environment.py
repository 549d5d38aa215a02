"""Versions, kernels and CPU features under which a release was made, and what differs from them now."""

from __future__ import annotations

import platform
from importlib import metadata
from typing import TYPE_CHECKING

from sdckit.core.text import shortened
from sdckit.core.version import VERSION
from sdckit.kernels.jit import digest_of_kernels

if TYPE_CHECKING:
    from sdckit.record.entry import Entry

PACKAGES = ("numpy", "numba", "llvmlite", "scipy", "polars", "randomgen", "pyreadstat", "scikit-learn")


def versions() -> dict[str, str]:
    """Return the versions of Python, of this package, and of those that its results depend on."""
    return {"sdckit": VERSION, "python": platform.python_version()} | {
        name: _version(name) for name in PACKAGES
    }


def _version(package: str) -> str:
    """Return the version of an installed package, "none" if it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "none"


def kernels() -> str:
    """Return the digest of the sources of all kernels."""
    return digest_of_kernels()


def cpu_features() -> list[str]:
    """Return the name of the CPU and the features for which kernels are compiled."""
    from llvmlite import binding  # type: ignore[import-untyped] # noqa: PLC0415 - only for releases

    found = binding.get_host_cpu_features()
    return [platform.machine(), *sorted(name for name in found if found[name])]


def differences(entry: Entry) -> list[str]:
    """Return what differs between now and the time of a release, in words; empty if nothing is known to."""
    now = versions()
    changed = [
        f"{name} {entry.versions.get(name, 'none')} then and {now.get(name, 'none')} now"
        for name in sorted({*now, *entry.versions})
        if now.get(name) != entry.versions.get(name)
    ]
    if kernels() != entry.kernels:
        changed.append("other sources of kernels")
    features = set(cpu_features()) ^ set(entry.cpu)
    if features:
        changed.append(f"CPU features ({shortened(sorted(features))})")
    return changed
