"""Write `docs/reference/licences.md` from the metadata of packages: `python tools/make_licences.py`.

Run it in an environment with the extras of the package. It fails for a licence that is not known to go with
the MIT licence of sdckit.
"""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import PackageNotFoundError, metadata, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

REPOSITORY = Path(__file__).parent.parent
TARGET = REPOSITORY / "docs" / "reference" / "licences.md"
EXTRAS = ("datasets", "models", "stats", "formats", "app", "spark")
PERMISSIVE = (
    "MIT",
    "BSD",
    "Apache",
    "ISC",
    "PSF",
    "Python Software Foundation",
    "Unlicense",
    "Zlib",
    "CC0",
    "NCSA",
)
WEAK = ("MPL", "Mozilla")  # its conditions are on its own files only, which we do not change
HEAD = """\
# Licences of the packages that sdckit uses

Made by `python tools/make_licences.py` from the metadata of installed packages. sdckit itself is under the
MIT licence and contains no code of these packages: they are installed beside it. All of them may be used and
passed on together with software under the MIT licence.
"""


def lines_of(extra: str) -> list[str]:
    """Return what the project declares for its base ("") or for an extra."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found: list[str] = project["optional-dependencies"][extra] if extra else project["dependencies"]
    return found


def needed_by(lines: list[str]) -> set[str]:
    """Return the names of packages that requirements ask for here, by themselves or by what they need."""
    found: set[str] = set()
    waiting = [(line, ("",)) for line in lines]
    while waiting:
        text, extras = waiting.pop()
        one = Requirement(text)
        wanted = one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in extras)
        name = canonicalize_name(one.name)
        if wanted and name not in found:
            found.add(name)
            waiting += [(line, ("", *one.extras)) for line in requirements_of(name)]
    return found


def requirements_of(name: str) -> list[str]:
    """Return what an installed package requires."""
    try:
        return requires(name) or []
    except PackageNotFoundError:
        raise SystemExit(f"{name} is not installed; install sdckit with its extras") from None


def licence_of(name: str) -> str:
    """Return the licence of an installed package in few words."""
    about = metadata(name)
    classes = [
        line.split(" :: ")[-1] for line in about.get_all("Classifier", []) if line.startswith("License")
    ]
    named = [about.get("License-Expression"), *classes, (about.get("License") or "").split("\n")[0]]
    texts = [text for text in named if text and text not in {"OSI Approved", "Other/Proprietary License"}]
    return texts[0] if texts else "unknown"


def is_compatible(licence: str) -> bool:
    """Return True if every part of a licence is one that software under the MIT licence may be used with."""
    parts = re.split(r" AND |; ", licence.strip("()"))
    return all(any(word in part for word in (*PERMISSIVE, *WEAK)) for part in parts)


def page() -> str:
    """Return the text of the page; fail if a licence is not known to be compatible."""
    base = needed_by(lines_of(""))
    users = {name: ["base"] for name in base}
    for extra in EXTRAS:
        for name in needed_by(lines_of(extra)) - base:
            users.setdefault(name, []).append(extra)
    found = {name: licence_of(name) for name in sorted(users)}
    if strange := {name: text for name, text in found.items() if not is_compatible(text)}:
        raise SystemExit(f"not known to be compatible with the MIT licence: {strange}")
    lines = [f"| {name} | {found[name]} | {', '.join(users[name])} |" for name in found]
    return "\n".join([HEAD, "| package | licence | installed with |", "|---|---|---|", *lines, ""])


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
