"""Write what follows from the program itself: `python tools/make_reference.py`.

From the registry, the commands and the docstrings, pages of `docs/reference`; from the registry and the list
of public names, `__init__.pyi` of the package and of the two families of metrics, which tell type checkers
and editors what Python finds when it runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import reference_commands
import reference_lists
import reference_python
import sdckit
from sdckit.core.registry import functions_of

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).parent.parent
PACKAGE = HERE / "src" / "sdckit"
PAGES: dict[str, Callable[[], str]] = {
    "commands": reference_commands.commands,
    "exit-codes": reference_commands.exit_codes,
    "metrics-and-methods": reference_lists.metrics_and_methods,
    "plans": reference_lists.plans,
    "job-file": reference_lists.job_file,
    "json": reference_lists.json,
    "python": reference_python.functions,
    "python-classes": reference_python.classes,
    "python-metrics": reference_python.metrics,
}


def pages() -> dict[Path, str]:
    """Return the generated pages of the reference by their files."""
    return {HERE / "docs" / "reference" / f"{name}.md": made() for name, made in PAGES.items()}


def stubs() -> dict[Path, str]:
    """Return the stubs: the names of each family, and all public names."""
    homes = {"loss": PACKAGE / "metrics" / "loss", "risk": PACKAGE / "risk"}
    families = {family: functions_of(family) for family in homes}
    public = {name: f"sdckit.{home}" for name, home in sdckit._MODULES.items()}  # noqa: SLF001 - our own
    metrics = {name: one for own in families.values() for name, one in own.items() if name not in public}
    return {
        PACKAGE / "__init__.pyi": stub(public, metrics, "__version__: str"),
        **{homes[family] / "__init__.pyi": stub({}, own) for family, own in families.items()},
    }


def stub(homes: dict[str, str], functions: dict[str, Callable[..., float]], *more: str) -> str:
    """Return the text of a stub: an import of each name from its home, then the aliases."""
    named = {name: function.__name__ for name, function in functions.items()}
    homes = homes | {function.__name__: function.__module__ for function in functions.values()}
    imports = sorted(f"from {home} import {name} as {name}" for name, home in homes.items())
    aliases = [f"{alias} = {name}" for alias, name in named.items() if alias != name]
    lines = [
        "# Made by tools/make_reference.py.",
        *imports,
        *([""] if aliases or more else []),
        *aliases,
        *more,
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    for path, text in {**pages(), **stubs()}.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
