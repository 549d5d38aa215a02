"""Convert command-line options to checked arguments of the library, before any work."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from sdckit.cli import parsing, sweep_output, terminal
from sdckit.core import checks, randomness, registry
from sdckit.core.disclosure import disclosure_of
from sdckit.core.settings import method_text
from sdckit.core.text import plural
from sdckit.io import atomic, text_numbers
from sdckit.io.dialect import Dialect
from sdckit.kernels import tie_rules
from sdckit.masking import METHODS
from sdckit.metrics.evaluation import Evaluation, Measuring, evaluate_pair
from sdckit.metrics.original import Original
from sdckit.selection import sweeping
from sdckit.selection.limits import check_limits_and_loss
from sdckit.selection.plan import plan_of_file, plan_of_words, settings_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from pathlib import Path

    from sdckit.io.source import Source
    from sdckit.kernels.jit import Ints
    from sdckit.metrics.pair import Pair

REPORTS = (".html", ".htm")


@dataclass(frozen=True)
class Request:
    """Checked options that `mask` and `evaluate` share."""

    columns: list[str] | None
    key: list[str]
    weights: str | None
    by: list[str]
    na: list[str] | None
    metrics: list[str] | None
    ties: str
    missing: str
    seed: int | None
    dialect: Dialect
    made_by: str | None = None  # the method behind a file made elsewhere,
    made_with: dict[str, str] | None = None  # and its parameters
    window: float | None = None
    stratified: bool = False
    paired: bool = True
    rules: list[str] | None = None
    categories: tuple[str, ...] = ()  # numeric columns whose every value has a label

    @property
    def role_columns(self) -> list[str]:
        """Columns that are neither masked nor measured."""
        return [*self.key, *self.by, *([self.weights] if self.weights else [])]

    @property
    def how(self) -> dict[str, Any]:
        """Options of `evaluate` that say how to measure."""
        return {"metrics": self.metrics, "ties": self.ties, "missing": self.missing, "rng": self.seed}

    def within(self, given: dict[str, Any], source: Source) -> Request:
        """The same for a file whose names may begin or end with blanks, and whose values may have labels."""
        asked = replace(self, **_roles(given, source.frame.columns))
        return replace(asked, categories=tuple(c for c in source.labelled if c not in asked.role_columns))

    def prepared(self, source: Source, done: str) -> Original:
        """The original with every role checked; `done` says what is done with its variables."""
        self.warn_of_text(source, done)
        original = Original.of(
            source.frame,
            columns=self.columns,
            key=self.key,
            weights=self.weights,
            by=self.by,
            na=self.na,
            leave_out=self.categories,
        )
        if done == "masked":
            original.require_unique_key()
        return original

    def warn_of_text(self, source: Source, done: str) -> None:
        """Name the text columns that are numeric but for a few words; refuse those that are needed."""
        left = any(c.dtype.is_numeric() and c.name not in self.role_columns for c in source.frame)
        for name, (reason, remedy) in text_numbers.find_text_numbers(source, skip=self.role_columns).items():
            fact = f"column {name!r} is read as text because {reason}"
            if self.columns is None and not left:
                raise ValueError(f"no numeric column left: {fact}; {remedy}")
            if self.columns is None:
                warnings.warn(f"{fact} and is not {done}; {remedy}", stacklevel=2)
            elif name in self.columns:
                raise ValueError(f"{fact}; {remedy}")
        if self.columns is None and self.categories:
            found = terminal.listed([repr(name) for name in self.categories])
            fact = f"taken for categories, as each value has a label, and not {done}: {found}"
            warnings.warn(f"{fact}; name them with --columns to have them {done}", stacklevel=2)

    def measure(self, pair: Pair, *, per_record: bool) -> Evaluation:
        """Compare two files."""
        known = disclosure_of(
            None,
            method=self.made_by,
            parameters=self.made_with,
            window=self.window,
            stratified=self.stratified,
            paired=self.paired,
            rules=self.rules,
            by=self.by,
        )
        return evaluate_pair(pair, known, Measuring.of(disclosure=known, per_record=per_record, **self.how))

    def records(self, result: Evaluation, ours: pl.DataFrame) -> pl.DataFrame:
        """Each record's losses beside its key, or its number where there is none."""
        shares = pl.DataFrame() if result.records is None else result.records
        if self.key:
            return pl.concat([ours.select(self.key), shares], how="horizontal")
        return shares.with_row_index("record", offset=1)

    @property
    def facts(self) -> dict[str, str]:
        """Return the facts on how a report was made; never the seed."""
        return {
            "rule for ties": self.ties,
            "missing cells": self.missing,
            "strata": ", ".join(self.by),
            "weights": self.weights or "",
            "edit rules": "; ".join(self.rules or ()),
            "masked by": method_text(self.made_by, self.made_with or {}) if self.made_by else "",
        }


def understood(given: dict[str, Any]) -> Request:
    """Check all options that need no data, and return them as a `Request`."""
    terminal.check_format(given)
    asked = Request(
        **_roles(given),
        na=[code for code in given["na"] if _is_number(code)] or None,
        metrics=parsing.names(given["metrics"]),
        ties=checks.one_of("rule for ties", given["ties"], tie_rules.TIES),
        missing=checks.one_of("rule for missing cells", given["missing"], checks.MISSING),
        seed=given["seed"],
        dialect=Dialect(
            given["delimiter"], given["decimal_comma"], given["encoding"], missing=tuple(given["na"])
        ),
        made_by=given.get("made_by"),
        made_with=settings(given["settings"]) or None if "made_by" in given else None,
        window=given.get("window") and checks.checked_share("window", given["window"]),
        stratified=given.get("stratified", False),
        paired=not given.get("unpaired", False),
        rules=list(given["rules"]) or None,
    )
    if asked.made_by is not None:
        record = registry.method_named(asked.made_by)
        pairs = record.keeps_pairing(record.defaults() | (asked.made_with or {}))
        asked = replace(asked, paired=asked.paired and pairs)
    chosen, _ = registry.metrics_for_rows(asked.metrics, paired=asked.paired)
    if asked.missing == "penalise" and not any(metric.bounded for metric in chosen):
        raise ValueError(
            f"none of the metrics {', '.join(metric.name for metric in chosen)} has a largest value, so that "
            "missing cells have no penalty; add brmae or brmse, or use --missing pairwise"
        )
    checks.require_midranks_for_weights(asked.ties, asked.weights)
    randomness.generator(asked.seed)
    return asked


def understood_sweep(given: dict[str, Any]) -> tuple[Request, Any, dict[str, Any]]:
    """Check the options of a sweep: the shared ones, its plan, and the rest.

    What the plan's file says counts where the command line is silent.
    """
    plan: Any = _plan(given)
    if given["plan"] is not None:
        if plan:
            raise ValueError("--plan excludes --grid and --method; put all grids into one of them")
        plan, said = plan_of_file(given["plan"])
        said |= {"metrics": [said["metrics"]]} if "metrics" in said else {}
        given |= {name: value for name, value in said.items() if given[name] in (None, ())}
    settings_of(plan)
    repeated = given["replications"]
    checks.one_of("format", given["form"], sweep_output.FORMATS)
    more = {
        "replications": 1 if repeated is None else checks.checked_count("replications", repeated),
        "draws": checks.one_of("rule for draws", given["draws"] or "common", sweeping.DRAWS),
        "workers": given["workers"] and checks.checked_count("workers", given["workers"]),
        "per_variable": given["variables"],
        "detail": given["detail"],
    }
    return understood(given | {"as_json": False, "as_csv": False}), plan, more


def _plan(given: dict[str, Any]) -> dict[str, Any] | None:
    """Return the plan given by --method and --grid; None where neither is given."""
    named = (
        METHODS if "all" in given["methods"] else [registry.method_named(n).name for n in given["methods"]]
    )
    return dict.fromkeys(named, None) | plan_of_words(given["grids"]) or None


def understood_search(given: dict[str, Any]) -> dict[str, Any]:
    """Check the options of a search that need no data."""
    plan = _plan(given)
    settings_of(plan)
    return {
        "plan": plan,
        "rules": list(given["rules"]) or None,
        "max_risk": check_limits_and_loss(limits(given["limits"]), given["minimise"]),
        "minimise": given["minimise"],
        "replications": checks.checked_count("replications", given["replications"]),
        "decimals": decimals(given),
        "workers": given["workers"] and checks.checked_count("workers", given["workers"]),
    }


def _roles(given: dict[str, Any], known: Collection[str] = ()) -> dict[str, Any]:
    weights = given["weights"]
    return {
        "columns": parsing.names(given["columns"], known),
        "key": parsing.names(given["key"], known) or [],
        "weights": weights if weights is None or weights in known else weights.strip(),
        "by": parsing.names(given["by"], known) or [],
    }


def settings(words: Sequence[str], option: str = "--set", example: str = "k=5") -> dict[str, str]:
    """Parse words of the form NAME=VALUE, such as the parameters of a method."""
    found: dict[str, str] = {}
    for word in words:
        cut = word.partition if option == "--set" else word.rpartition  # options of metrics have a = too
        name, _, value = (part.strip() for part in cut("="))
        if not name or not value:
            raise ValueError(
                f"{option} {word!r} has no name or no value; write NAME=VALUE, such as {example}"
            )
        if name in found:
            raise ValueError(f"{option} gives {name!r} twice; give it once")
        found[name] = value
    return found


def decimals(given: dict[str, Any]) -> int | str | None:
    """Check the decimals of a release; "none" leaves them as they are."""
    return checks.checked_decimals(None if given["decimals"] == "none" else given["decimals"])


def limits(words: Sequence[str]) -> dict[str, str]:
    """Parse limits of risk, RISK=LIMIT each."""
    return settings(words, "--max-risk", "linkage=0.1")


def check_evaluation(given: dict[str, Any], masked: Sequence[Path], *, paired: bool) -> None:
    """Raise an error for options of `evaluate` that exclude each other."""
    if given["settings"] and not given["made_by"]:
        raise ValueError("--set gives parameters of no method; name the method with --made-by")
    if given["window"] and given["made_by"]:
        raise ValueError("--window follows from --made-by; drop one of them")
    if given["ranks"] and given["as_csv"]:
        raise ValueError("--ranks is another table than --csv prints; drop one of them or use --json")
    for option in ("records", "ranks", "variables"):
        if given[option] and len(masked) > 1:
            fact = f"--{option} is for one masked file and there are {len(masked)}"
            raise ValueError(f"{fact}; evaluate them one by one")
    why = "--unpaired" if given["unpaired"] else f"--made-by {given['made_by']}"
    for option in [name for name in ("records", "ranks", "window") if given[name] and not paired]:
        raise ValueError(f"--{option} is about single records, which {why} says are new; drop one")
    if len({path.resolve() for path in masked}) < len(masked):
        raise ValueError("a masked file is named twice; name each once")


def check_report(
    report: Path | None, inputs: Iterable[Path], *, overwrite: bool, new: Path | None = None
) -> None:
    """Raise an error for a report that could not be written; its folder may be new."""
    if report is None:
        return
    if new is not None and not new.exists() and report.parent.resolve() == new.resolve():
        report = new.absolute().parent / report.name  # only its suffix is in question
        overwrite = True
    check_output(report, inputs, overwrite=overwrite, suffixes=REPORTS)


def check_output(
    output: Path, inputs: Iterable[Path], *, overwrite: bool, suffixes: Sequence[str] = atomic.SUFFIXES
) -> None:
    """Raise an error for an output that could not be written, or that is an input."""
    for data in inputs:
        if data.exists() and output.exists() and data.samefile(output):
            raise ValueError(f"'{output}' is the input file, which is never changed; choose another output")
    atomic.check_target(output, overwrite, suffixes)


def masked_columns(pair: Pair, columns: Sequence[str], *, whole: bool) -> str:
    """Return which columns were masked and which not; long lists are shortened unless `whole`."""
    same, cells = _same_cells(pair)
    idle = [name for name, s, n in zip(pair.columns, same, cells, strict=True) if s == n]
    lists = {
        "masked": [name for name in pair.columns if name not in idle],
        "not changed by the method": idle,
        "left as they were": [name for name in columns if name not in pair.columns],
    }
    return "; ".join(
        f"{what}: {terminal.listed(found, whole=whole)}"
        for what, found in lists.items()
        if found or what == "masked"
    )


def untouched(pair: Pair) -> str:
    """Count the cells that are as in the original."""
    same, cells = _same_cells(pair)
    columns = f"{len(cells)} masked {plural(len(cells), 'column')}"
    return f"{same.sum()} of {cells.sum()} cells in {columns} are as in the original"


def _same_cells(pair: Pair) -> tuple[Ints, Ints]:
    """Return, per column, the cells equal to the original and the cells with a value."""
    return (pair.original.values == pair.masked).sum(axis=0), (~pair.original.missing).sum(axis=0)


def roles_told(masked: Iterable[str], columns: Iterable[str]) -> dict[str, str]:
    """Which variables were masked and which columns are published as they were, for a report."""
    masked = list(masked)
    kept = [name for name in columns if name not in masked]
    return {"variables": ", ".join(masked), "published as they were": ", ".join(kept) or "none"}


def _is_number(code: str) -> bool:
    try:
        return math.isfinite(float(code))
    except ValueError:
        return False
