"""A request checked as far as it can be without its data, and then with the columns of its file."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from sdckit.core import checks, randomness, registry
from sdckit.core.checks import warn
from sdckit.core.registry import method_text
from sdckit.core.roles import OPTIONS, warn_of_masked_weights, warn_of_undecided
from sdckit.core.scenarios import checked_risk_limits, checked_scenarios
from sdckit.estimation.compare import declared_of
from sdckit.estimation.parse import parse_estimates
from sdckit.evaluation.measure import (
    Measuring,
    add_masking,
    evaluate_pair,
    evaluate_releases,
    metrics_together,
    require_columns,
)
from sdckit.io import atomic
from sdckit.io.formats import SUFFIXES, Dialect
from sdckit.io.text_numbers import find_text_numbers
from sdckit.kernels.ranks import TIES
from sdckit.masking import METHODS
from sdckit.masking.disclosure import Disclosure, Method, disclosure_of
from sdckit.metrics.doubts import published_names, require_published, warn_of_doubts, warn_of_published
from sdckit.metrics.original import Original
from sdckit.metrics.score import Sampling, sampling_of
from sdckit.request.made_by_command import WHO
from sdckit.request.options import SINGLE, with_flags
from sdckit.request.words import spelled, spelled_as, split_names
from sdckit.risk.intruder import checked_known_share
from sdckit.selection.limits import check_limits_and_loss, check_loss_limits, loss_limits, risk_limits
from sdckit.selection.microdata import Microdata
from sdckit.selection.plan import plan_of_file, settings_of
from sdckit.selection.task import DRAWS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from pathlib import Path

    from sdckit.evaluation.result import Evaluation
    from sdckit.io.files import Source
    from sdckit.metrics.pair import Pair
    from sdckit.request.made_by_command import MaskingCommand
    from sdckit.request.options import Request

FORMATS = ("parquet", "csv")
SEARCHES = ("sweep", "recommend")
EXCLUSIVE = (  # options of `evaluate`
    ("stratified", "unstratified"),
    *(("together", other) for other in ("report", "sample_queries", "known_share")),
)


@dataclass(frozen=True)
class Checked:
    """A request whose options were checked, and what follows from them.

    `request` names columns as the file spells them, once the file is known.
    """

    request: Request
    estimates: tuple[str, ...]  # normal texts of declared estimates
    metrics: list[str] | None
    missing: str
    window: float | None
    paired: bool  # False if rows of the masked file stand for no original record
    sampling: Sampling | None  # of the records on which linkage is estimated; None: all
    known_share: float | None  # of the persons, for an intruder who holds these only
    masking: MaskingCommand | None = None  # a command that masks the file again

    def with_columns_of(self, request: Request, columns: Collection[str]) -> Checked:
        """Return the same for the names of columns as the file, which has these columns, spells them."""
        return replace(self, request=spelled_as(request, columns))

    @property
    def key(self) -> list[str]:
        """Columns that identify records."""
        return list(self.request.key or ())

    @property
    def drop(self) -> list[str]:
        """Columns that are not published."""
        return list(self.request.drop or ())

    @property
    def rules(self) -> list[str] | None:
        """Rules of the records."""
        return list(self.request.rules or ()) or None

    @property
    def scenarios(self) -> dict[str, Any]:
        """Other intruders by name."""
        return self.request.scenario or {}

    @property
    def dialect(self) -> Dialect:
        """How CSV files are read, and which sheet or data frame."""
        return dialect_of(self.request)

    @property
    def roles(self) -> dict[str, Any]:
        """Options that give columns their roles, by argument name."""
        found: dict[str, Any] = {}
        for name in OPTIONS:
            value = getattr(self.request, name)
            several = name not in {"columns", "known", *SINGLE}
            found[name] = list(value or ()) if several else list(value) if isinstance(value, tuple) else value
        found["na"] = [code for code in self.request.na or () if checks.as_number(code) is not None] or None
        return found | {"recode": self.request.recode or None, "estimates": list(self.estimates)}

    @property
    def measuring_options(self) -> dict[str, Any]:
        """Options of `evaluate` that say how to measure, by argument name."""
        given = self.request
        return {"metrics": self.metrics, "ties": given.ties, "missing": self.missing, "rng": given.seed}

    def prepare(self, source: Source, action: str, *, announce: bool = True) -> Original:
        """Return the original with its roles checked; `action`, such as "masked", is for warnings.

        With `announce`, a warning names the columns whose role is undecided.
        """
        read_as_text = self.warn_of_text(source, action)
        original = Original.of(source.frame, **self.roles, labelled=source.labelled, warn=False)
        original.kept["marks"] = source.missing_marks()
        declared_of(original)  # raises an error for an estimate that the data do not allow
        if action == "masked":
            original.require_unique_key()
        if announce:
            warn_of_undecided(one for one in original.roles.undecided if one.column not in read_as_text)
        if self.request.columns is None:
            warn_of_masked_weights(original.columns)
        return original

    def warn_of_text(self, source: Source, action: str) -> list[str]:
        """Warn of text columns that are numeric but for a few words; return their names."""
        given = self.request
        others = [
            name
            for role in (given.key, given.by, given.untouched, given.drop, given.recode)
            for name in role or ()
        ]
        others += [name for name in (given.weights, given.unit) if name]
        left = any(c.dtype.is_numeric() and c.name not in others for c in source.frame)
        found = find_text_numbers(source, skip=others)
        for name, (reason, remedy) in found.items():
            fact = f"column {name!r} is read as text because {reason}"
            if given.columns is None and not left:
                raise ValueError(f"no numeric column left: {fact}; {remedy}")
            if given.columns is None:
                warn(f"{fact} and is not {action}; {remedy}")
            elif name in given.columns:
                raise ValueError(f"{fact}; {remedy}")
        return list(found) if given.columns is None else []

    def microdata(self, original: Original, name: str = "data") -> Microdata:
        """Return prepared data with the rules, intruders and ways of measuring that these options state."""
        return Microdata(
            original,
            rules=self.rules,
            intruders=self.scenarios,
            ties=self.request.ties,
            missing=self.missing,
            name=name,
        )

    @property
    def method(self) -> Method:
        """How a file was masked, as far as the request says."""
        given = self.request
        return Method(
            given.made_by,
            window=self.window,
            # None: True with a method, False with a window
            stratified=True if given.stratified else False if given.unstratified else None,
            paired=self.paired,
            **(given.settings or {} if given.command == "evaluate" else {}),
        )

    def disclosure(self, by: Sequence[str]) -> Disclosure:
        """Return what the request says about the masking of a file with these strata."""
        return disclosure_of(None, self.method, rules=self.rules, by=by)

    def checked_pair(self, pair: Pair) -> Pair:
        """Return a pair unchanged after warning of what looks wrong with the masked file."""
        require_published(pair.original.roles, published_names(pair))
        warn_of_doubts(pair, paired=self.disclosure(pair.original.roles.by).paired)
        warn_of_published(pair)
        return pair

    def masked_again(self, pair: Pair) -> Disclosure:
        """Let the intruder run the command, if there is one; return what is known of the masking."""
        return add_masking(pair, self.disclosure(pair.original.roles.by), self.masking, who=WHO)

    def measure(self, pair: Pair, *, per_record: bool = False) -> Evaluation:
        """Return the losses and risks of a pair of original and masked data under these options."""
        others = checked_scenarios(self.scenarios)
        require_columns(others, pair.original)
        known = self.masked_again(self.checked_pair(pair))
        options = self.measuring_options | {"scenarios": others, "sampling": self.sampling}
        options |= {"known_share": self.known_share}
        how = Measuring.of(disclosure=known, per_record=per_record, **options)
        return notes_with_flags(evaluate_pair(pair, known, how))

    def measure_together(self, pairs: Sequence[Pair]) -> Evaluation:
        """Return the linkage of several releases together, from their checked pairs."""
        known = [self.masked_again(pair) for pair in pairs]
        options = self.measuring_options | {"metrics": metrics_together(self.metrics)}
        how = Measuring.of(disclosure=known[0], **options)
        return notes_with_flags(evaluate_releases(pairs, known, how))

    def record_table(self, result: Evaluation, original: pl.DataFrame) -> pl.DataFrame:
        """Return a table of each record's losses, beside its key or its number from 1."""
        shares = pl.DataFrame() if result.records is None else result.records
        if self.key:
            return pl.concat([original.select(self.key), shares], how="horizontal")
        return shares.with_row_index("record", offset=1)

    def facts(self, masked: Iterable[str] = ()) -> dict[str, str]:
        """Return facts on how a report was made, such as the rule for ties, by name; never the seed.

        `masked` are the masked variables. The words of a command, which may be private, are left out.
        """
        given = self.request
        made_by = method_text(given.made_by, given.settings or {}) if given.made_by else ""
        names = ", ".join(masked)
        return {
            "rule for ties": given.ties,
            "missing cells": self.missing,
            "strata": ", ".join(given.by or ()),
            "weights": given.weights or "",
            "edit rules": "; ".join(given.rules or ()),
            "masked by": made_by if self.masking is None else "a command of the user's own",
        } | ({"variables": names} if names else {})


def notes_with_flags(result: Evaluation) -> Evaluation:
    """Return an evaluation whose notes name options of the command line."""
    return replace(result, notes=tuple(with_flags(note) for note in result.notes))


def dialect_of(request: Request) -> Dialect:
    """Return how a request reads files."""
    return Dialect(
        request.delimiter,
        request.decimal_comma,
        request.encoding,
        missing=tuple(request.na or ()),
        table=request.table,
        escape_formulas=request.escape_formulas,
    )


def check(request: Request) -> Checked:
    """Check the options of a request that several commands share and that need no data."""
    given = spelled_as(request, ())
    checks.one_of("rule for ties", given.ties, TIES)
    default = "penalise" if given.command in SEARCHES else "pairwise"
    missing = checks.one_of("rule for missing cells", given.missing or default, checks.MISSING)
    dialect_of(given)
    paired = not given.unpaired
    if given.made_by is not None:
        record = registry.method_named(given.made_by)
        paired = paired and record.keeps_pairing(record.defaults() | (given.settings or {}))
    checked = Checked(
        given,
        estimates=tuple(one.text for one in parse_estimates(given.estimates)) if given.estimates else (),
        metrics=None if given.metrics is None else list(given.metrics),
        missing=missing,
        window=checks.checked_share("window", given.window) if given.window is not None else None,
        paired=paired,
        sampling=sampling_of(given.sample_queries),
        known_share=checked_known_share(given.known_share),
    )
    chosen, _ = registry.metrics_for_rows(checked.metrics, paired=paired)
    if given.missing == "penalise" and not any(metric.bounded for metric in chosen):
        raise ValueError(
            f"no metric here has a largest value ({', '.join(metric.name for metric in chosen)}), so "
            "missing cells have no penalty; add brmae or brmse, or use --missing pairwise"
        )
    checks.require_midranks_for_weights(given.ties, given.weights)
    randomness.generator(given.seed)
    return checked


def with_plan(request: Request) -> tuple[Request, Any]:
    """Return a request of `sweep` with what the file of its plan adds, and the plan.

    An option that the request does not give is taken from that file.
    """
    plan: Any = plan_of(request)
    if request.plan is not None:
        if plan:
            raise ValueError("--plan excludes --grid and --method; put all grids into one of them")
        plan, found = plan_of_file(request.plan)
        missing = {name: value for name, value in found.items() if getattr(request, name) is None}
        request = replace(request, **{name: _of_plan(name, value) for name, value in missing.items()})
    settings_of(plan)
    return request, plan


def _of_plan(option: str, value: Any) -> Any:
    """Return an entry of a plan's file as a request has it."""
    if option in {"replications", "draws"}:
        return value
    if option == "recode":
        return {column: str(way) for column, way in value.items()}
    if option == "estimates":
        return (value,) if isinstance(value, str) else tuple(value)
    names = [str(one) for one in value] if isinstance(value, list) else [str(value)]
    if option == "na":
        return tuple(names)
    if option not in SINGLE:
        return tuple(names if isinstance(value, list) else split_names(names[0]))
    if len(names) > 1:
        raise ValueError(f"{option} in the plan names {len(names)} columns; name one")
    return names[0] if names else None


def plan_of(request: Request) -> dict[str, Any] | None:
    """Return the plan of the methods and grids of a request; None if it names none."""
    given = request.methods or ()
    named = METHODS if "all" in given else [registry.method_named(name).name for name in given]
    return dict.fromkeys(named, None) | (request.grids or {}) or None


def sweep_options(request: Request) -> dict[str, Any]:
    """Check the options of a sweep that need no data; return them as arguments of the library."""
    checks.one_of("format", request.form, FORMATS)
    return {
        "replications": count_of(request, "replications") or 1,
        "draws": checks.one_of("rule for draws", request.draws or "common", DRAWS),
        "workers": count_of(request, "workers"),
        "per_variable": request.variables,
        "detail": request.detail,
        "sample_queries": request.sample_queries,
    }


def search_options(request: Request) -> dict[str, Any]:
    """Check the options of `recommend` that need no data; return them as arguments of the library."""
    plan = plan_of(request)
    settings_of(plan)
    checked_scenarios(spelled_as(request, ()).scenario, limited=True)
    limits = check_limits_and_loss(request.limits or {}, request.minimise, max_loss=request.loss_limits or {})
    return {
        "plan": plan,
        "max_risk": risk_limits(limits),
        "max_loss": loss_limits(limits),
        "minimise": request.minimise,
        "replications": count_of(request, "replications"),
        "decimals": decimals_of(request),
        "workers": count_of(request, "workers"),
        "sample_queries": request.sample_queries,
    }


def count_of(request: Request, option: str) -> int | None:
    """Return a whole number of at least 1 that an option gives; None where it gives none."""
    given = getattr(request, option)
    return None if given is None else checks.checked_count(option, given)


def decimals_of(request: Request) -> int | str | None:
    """Return the decimals of masked cells: a number, "original", or None (option value "none")."""
    return checks.checked_decimals(None if request.decimals.lower() == "none" else request.decimals)


def check_evaluate(request: Request, *, paired: bool) -> None:
    """Raise an error for options of `evaluate` that exclude each other."""
    masked, given = request.masked, request.made_by
    wrong = {
        "--set needs a method; name it with --made-by": request.settings and not given,
        "--window follows from --made-by; drop one of them": request.window and given,
        "--stratified needs strata; name their column with --by": request.stratified and not request.by,
        "--together needs at least two masked files and there is 1; name the others": (
            request.together and len(masked) == 1
        ),
        "a masked file is named twice; name each once": len({path.resolve() for path in masked})
        < len(masked),
    }
    for one, other in EXCLUSIVE:
        both = getattr(request, one) and getattr(request, other) not in {None, False, "0"}  # 0: all records
        wrong[f"{_flag(one)} and {_flag(other)} exclude each other; drop one of them"] = both
    for text in (text for text, holds in wrong.items() if holds):
        raise ValueError(text)
    checked_scenarios(spelled_as(request, ()).scenario)
    for option in ("records", "variables", "scenario", "private_report"):
        if getattr(request, option) and len(masked) > 1:
            fact = f"{_flag(option)} is for one masked file and there are {len(masked)}"
            raise ValueError(f"{fact}; evaluate them one by one")
    if request.together:
        metrics_together(None if request.metrics is None else spelled(request.metrics))
    why = "--unpaired" if request.unpaired else f"--made-by {request.made_by}"
    for option in [name for name in ("records", "window") if getattr(request, name) and not paired]:
        raise ValueError(f"--{option} compares rows, and by {why} they are not paired; drop one of them")


def _flag(name: str) -> str:
    """Return an option as the command line has it, such as "--sample-queries"."""
    return f"--{name.replace('_', '-')}"


def check_output(
    output: Path, inputs: Iterable[Path], *, overwrite: bool, suffixes: Sequence[str] = SUFFIXES
) -> None:
    """Raise an error for an output file that could not be written, or that is an input file."""
    for data in inputs:
        if data.exists() and output.exists() and data.samefile(output):
            raise ValueError(f"'{output}' is the input file, which is never changed; choose another output")
    atomic.check_target(output, overwrite, suffixes)


def limits_of_request(request: Request) -> dict[str, float]:
    """Return the limits on risks and losses, by metric; raise ValueError for wrong ones."""
    found = (checked_risk_limits(request.limits) if request.limits else {}) | check_loss_limits(
        request.loss_limits
    )
    if request.together:
        metrics_together(list(found) or None)
    return found


@contextmanager
def warnings_named_after(file: str) -> Iterator[None]:
    """Begin the errors and warnings that are raised in a `with` block with the name of a file."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            yield
        except (ValueError, TypeError) as error:
            raise ValueError(f"'{file}': {error}") from error
    for entry in seen:
        warnings.warn(f"'{file}': {entry.message}", stacklevel=2)
