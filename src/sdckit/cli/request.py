"""Check command-line options before any work, and convert them to arguments of the library."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from sdckit.cli import parsing, sweep_output, terminal
from sdckit.cli.made_by_command import WHO
from sdckit.cli.scenario_options import parse_scenarios
from sdckit.core import checks, randomness, registry
from sdckit.core.disclosure import Disclosure, disclosure_of
from sdckit.core.roles import OPTIONS
from sdckit.core.scenarios import checked_scenarios
from sdckit.core.settings import method_text
from sdckit.core.undecided import warn_of_masked_weights, warn_of_undecided
from sdckit.core.warning_texts import warn
from sdckit.estimation.compare import declared_of
from sdckit.estimation.parse import parse_estimates
from sdckit.io import atomic, text_numbers
from sdckit.io.dialect import Dialect
from sdckit.io.suffixes import SUFFIXES
from sdckit.kernels import tie_rules
from sdckit.masking import METHODS
from sdckit.metrics.doubts import published_names, require_published, warn_of_doubts, warn_of_published
from sdckit.metrics.evaluation import evaluate_pair, evaluate_releases
from sdckit.metrics.evaluation_together import metrics_together
from sdckit.metrics.made_by import add_masking
from sdckit.metrics.measuring import Measuring
from sdckit.metrics.original import Original
from sdckit.metrics.query_sample import Sampling, sampling_of
from sdckit.metrics.scenario_risks import require_columns
from sdckit.risk.intruder import checked_known_share
from sdckit.selection import sweeping
from sdckit.selection.limits import check_limits_and_loss, loss_limits, risk_limits
from sdckit.selection.plan import plan_of_file, plan_of_words, settings_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from pathlib import Path

    from sdckit.cli.made_by_command import MaskingCommand
    from sdckit.io.source import Source
    from sdckit.metrics.evaluation_result import Evaluation
    from sdckit.metrics.pair import Pair

SEVERAL = ("key", "by", "untouched", "unknown", "confidential", "drop")  # roles of any number of columns


@dataclass(frozen=True)
class CheckedOptions:
    """Checked command-line options that several commands share."""

    columns: list[str] | None
    key: list[str]
    weights: str | None
    by: list[str]
    untouched: list[str]
    known: list[str] | None
    unknown: list[str]
    confidential: list[str]
    unit: str | None
    drop: list[str]
    recode: dict[str, str]
    estimates: list[str]
    na: list[str] | None
    metrics: list[str] | None
    ties: str
    missing: str
    seed: int | None
    dialect: Dialect
    made_by: str | None = None  # method that masked a file made elsewhere
    made_with: dict[str, str] | None = None  # parameters of that method
    masking: MaskingCommand | None = None  # a command that masks the file again
    window: float | None = None
    stratified: bool | None = None  # None: True with a method, False with a window
    paired: bool = True
    rules: list[str] | None = None
    scenarios: dict[str, Any] = field(default_factory=dict)  # other intruders by name
    sampling: Sampling | None = None  # of the records on which linkage is estimated; None: all
    known_share: float | None = None  # of the persons, for an intruder who holds these only

    @property
    def role_columns(self) -> list[str]:
        """Names of the columns that have another role and so are neither masked nor measured."""
        single = [name for name in (self.weights, self.unit) if name]
        return [*self.key, *self.by, *self.untouched, *self.drop, *self.recode, *single]

    @property
    def roles(self) -> dict[str, Any]:
        """Options that give columns their roles, by argument name."""
        return {option: getattr(self, option) for option in OPTIONS} | {"recode": self.recode or None}

    @property
    def measuring_options(self) -> dict[str, Any]:
        """Options of `evaluate` that say how to measure, by argument name."""
        return {"metrics": self.metrics, "ties": self.ties, "missing": self.missing, "rng": self.seed}

    def with_columns_of(self, given: dict[str, Any], columns: Collection[str]) -> CheckedOptions:
        """Return these options with column names as the file, which has these columns, spells them."""
        return replace(self, **_role_options(given, columns))

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
        if self.columns is None:
            warn_of_masked_weights(original.columns)
        return original

    def warn_of_text(self, source: Source, action: str) -> list[str]:
        """Warn of text columns that are numeric but for a few words; return their names."""
        left = any(c.dtype.is_numeric() and c.name not in self.role_columns for c in source.frame)
        found = text_numbers.find_text_numbers(source, skip=self.role_columns)
        for name, (reason, remedy) in found.items():
            fact = f"column {name!r} is read as text because {reason}"
            if self.columns is None and not left:
                raise ValueError(f"no numeric column left: {fact}; {remedy}")
            if self.columns is None:
                warn(f"{fact} and is not {action}; {remedy}")
            elif name in self.columns:
                raise ValueError(f"{fact}; {remedy}")
        return list(found) if self.columns is None else []

    def disclosure(self, by: Sequence[str]) -> Disclosure:
        """Return what the options say about the masking of a file with these strata."""
        return disclosure_of(
            None,
            method=self.made_by,
            parameters=self.made_with,
            window=self.window,
            stratified=self.stratified,
            paired=self.paired,
            rules=self.rules,
            by=by,
        )

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
        return result_with_options(evaluate_pair(pair, known, how))

    def measure_together(self, pairs: Sequence[Pair]) -> Evaluation:
        """Return the linkage of several releases together, from their checked pairs."""
        known = [self.masked_again(pair) for pair in pairs]
        options = self.measuring_options | {"metrics": metrics_together(self.metrics)}
        how = Measuring.of(disclosure=known[0], **options)
        return result_with_options(evaluate_releases(pairs, known, how))

    def record_table(self, result: Evaluation, original: pl.DataFrame) -> pl.DataFrame:
        """Return a table of each record's losses, beside its key or its number from 1."""
        shares = pl.DataFrame() if result.records is None else result.records
        if self.key:
            return pl.concat([original.select(self.key), shares], how="horizontal")
        return shares.with_row_index("record", offset=1)

    @property
    def masking_text(self) -> str:
        """How the file was masked, as reports say it; never the words of a command, which may be private."""
        if self.masking is not None:
            return "a command of the user's own"
        return method_text(self.made_by, self.made_with or {}) if self.made_by else ""

    @property
    def facts(self) -> dict[str, str]:
        """Facts on how a report was made, such as the rule for ties, by name; never the seed."""
        return {
            "rule for ties": self.ties,
            "missing cells": self.missing,
            "strata": ", ".join(self.by),
            "weights": self.weights or "",
            "edit rules": "; ".join(self.rules or ()),
            "masked by": self.masking_text,
        }


def result_with_options(result: Evaluation) -> Evaluation:
    """Return an evaluation whose notes name options of the command line."""
    return replace(result, notes=tuple(terminal.with_options(note) for note in result.notes))


def check_options(given: dict[str, Any], default_rule: str = "pairwise") -> CheckedOptions:
    """Check the command-line options that several commands share and that need no data; return them.

    `default_rule` is the rule for missing cells where --missing is not given.
    """
    terminal.check_format(given)
    checked = CheckedOptions(
        **_role_options(given),
        na=[code for code in given["na"] if _is_number(code)] or None,
        metrics=parsing.parse_names(given["metrics"]),
        ties=checks.one_of("rule for ties", given["ties"], tie_rules.TIES),
        missing=checks.one_of("rule for missing cells", given["missing"] or default_rule, checks.MISSING),
        seed=given["seed"],
        dialect=Dialect(
            given["delimiter"],
            given["decimal_comma"],
            given["encoding"],
            missing=tuple(given["na"]),
            table=given["table"],
        ),
        made_by=given.get("made_by"),
        made_with=parsing.parse_settings(given["settings"]) or None if "made_by" in given else None,
        window=given.get("window") and checks.checked_share("window", given["window"]),
        stratified=True if given.get("stratified") else False if given.get("unstratified") else None,
        paired=not given.get("unpaired", False),
        rules=list(given["rules"]) or None,
        sampling=sampling_of(given.get("sample_queries")),
        known_share=checked_known_share(given.get("known_share")),
    )
    if checked.made_by is not None:
        record = registry.method_named(checked.made_by)
        pairs = record.keeps_pairing(record.defaults() | (checked.made_with or {}))
        checked = replace(checked, paired=checked.paired and pairs)
    chosen, _ = registry.metrics_for_rows(checked.metrics, paired=checked.paired)
    if given["missing"] == "penalise" and not any(metric.bounded for metric in chosen):
        raise ValueError(
            f"no metric here has a largest value ({', '.join(metric.name for metric in chosen)}), so "
            "missing cells have no penalty; add brmae or brmse, or use --missing pairwise"
        )
    checks.require_midranks_for_weights(checked.ties, checked.weights)
    randomness.generator(checked.seed)
    return checked


def check_sweep_options(given: dict[str, Any]) -> tuple[CheckedOptions, Any, dict[str, Any]]:
    """Check the options of `sweep`; return the shared ones, the plan, and the other ones.

    An option that the command line does not give is taken from the file of the plan.
    """
    plan: Any = _plan_from_options(given)
    if given["plan"] is not None:
        if plan:
            raise ValueError("--plan excludes --grid and --method; put all grids into one of them")
        plan, file_options = plan_of_file(given["plan"])
        missing = [name for name in file_options if given[name] in (None, ())]
        given |= {name: _as_given(name, file_options[name]) for name in missing}
    settings_of(plan)
    repeated = given["replications"]
    checks.one_of("format", given["form"], sweep_output.FORMATS)
    more = {
        "replications": 1 if repeated is None else checks.checked_count("replications", repeated),
        "draws": checks.one_of("rule for draws", given["draws"] or "common", sweeping.DRAWS),
        "workers": given["workers"] and checks.checked_count("workers", given["workers"]),
        "per_variable": given["variables"],
        "detail": given["detail"],
        "sample_queries": given["sample_queries"],
    }
    return check_options(given | {"as_json": False, "as_csv": False}, "penalise"), plan, more


def _as_given(option: str, value: Any) -> Any:
    """Return an entry of a plan's file as the command line would give that option."""
    if option in {"replications", "draws"}:
        return value
    if option == "recode":
        return tuple(f"{column}={way}" for column, way in value.items())
    if option == "estimates":
        return (value,) if isinstance(value, str) else tuple(value)
    names = [str(one) for one in value] if isinstance(value, list) else [str(value)]
    if option not in {"weights", "unit"}:
        return tuple(map(parsing.quoted_name, names) if isinstance(value, list) else names)
    if len(names) > 1:
        raise ValueError(f"{option} in the plan names {len(names)} columns; name one")
    return names[0] if names else None


def _plan_from_options(given: dict[str, Any]) -> dict[str, Any] | None:
    """Return the plan of methods and grids given by --method and --grid; None if neither is given."""
    named = (
        METHODS if "all" in given["methods"] else [registry.method_named(n).name for n in given["methods"]]
    )
    return dict.fromkeys(named, None) | plan_of_words(given["grids"]) or None


def check_search_options(given: dict[str, Any]) -> dict[str, Any]:
    """Check the options of `recommend` that need no data; return them as arguments of the library."""
    plan = _plan_from_options(given)
    settings_of(plan)
    checked_scenarios(parse_scenarios(given["scenario"]), limited=True)
    losses = parsing.parse_settings(given["loss_limits"], "--max-loss", "suppressed=0.01")
    limits = check_limits_and_loss(parse_limits(given["limits"]), given["minimise"], max_loss=losses)
    return {
        "plan": plan,
        "rules": list(given["rules"]) or None,
        "max_risk": risk_limits(limits),
        "max_loss": loss_limits(limits),
        "minimise": given["minimise"],
        "replications": None
        if given["replications"] is None
        else checks.checked_count("replications", given["replications"]),
        "decimals": check_decimals(given),
        "workers": given["workers"] and checks.checked_count("workers", given["workers"]),
        "sample_queries": given["sample_queries"],
    }


def _role_options(given: dict[str, Any], known: Collection[str] = ()) -> dict[str, Any]:
    """Return the options that name columns, split into names; `known` are the columns of the file."""
    return {
        "columns": parsing.parse_names(given["columns"], known),
        "known": parsing.parse_names(given["known"], known),
        **{name: parsing.parse_names(given[name], known) or [] for name in SEVERAL},
        **{name: parsing.parse_name(given[name], known) for name in ("weights", "unit")},
        "recode": parsing.parse_settings(given.get("recode", ()), "--recode", "age=5"),
        "estimates": _estimates(given.get("estimates", ())),
        "scenarios": parse_scenarios(given.get("scenario", ()), known),
    }


def _estimates(texts: Sequence[str]) -> list[str]:
    """Return the normal texts of declared estimates; raise ValueError for one that cannot be read."""
    return [one.text for one in parse_estimates(texts)] if texts else []


def check_decimals(given: dict[str, Any]) -> int | str | None:
    """Return the decimals of masked cells: a number, "original", or None (option value "none")."""
    return checks.checked_decimals(None if given["decimals"].lower() == "none" else given["decimals"])


def parse_limits(words: Sequence[str]) -> dict[str, str]:
    """Parse words of the form RISK=LIMIT; return a dict of texts."""
    return parsing.parse_settings(words, "--max-risk", "linkage=0.1")


def check_evaluate_options(given: dict[str, Any], masked: Sequence[Path], *, paired: bool) -> None:
    """Raise an error for options of `evaluate` that exclude each other."""
    if given["settings"] and not given["made_by"]:
        raise ValueError("--set needs a method; name it with --made-by")
    if given["window"] and given["made_by"]:
        raise ValueError("--window follows from --made-by; drop one of them")
    if given["stratified"] and given["unstratified"]:
        raise ValueError("--stratified and --unstratified exclude each other; drop one of them")
    if given["stratified"] and not given["by"]:
        raise ValueError("--stratified needs strata; name their column with --by")
    checked_scenarios(parse_scenarios(given["scenario"]))
    for option in ("records", "variables", "scenario", "private_report"):
        if given[option] and len(masked) > 1:
            fact = f"--{option.replace('_', '-')} is for one masked file and there are {len(masked)}"
            raise ValueError(f"{fact}; evaluate them one by one")
    _check_together(given, masked)
    why = "--unpaired" if given["unpaired"] else f"--made-by {given['made_by']}"
    for option in [name for name in ("records", "window") if given[name] and not paired]:
        raise ValueError(f"--{option} compares rows, and by {why} they are not paired; drop one of them")
    if len({path.resolve() for path in masked}) < len(masked):
        raise ValueError("a masked file is named twice; name each once")


def _check_together(given: dict[str, Any], masked: Sequence[Path]) -> None:
    """Raise an error for options that do not fit releases that are evaluated together, if they are."""
    if not given["together"]:
        return
    if len(masked) == 1:
        raise ValueError("--together needs at least two masked files and there is 1; name the others")
    if given["report"]:
        raise ValueError("--together and --report exclude each other; drop one of them")
    if sampling_of(given["sample_queries"]):
        raise ValueError("--together and --sample-queries exclude each other; drop one of them")
    if given["known_share"]:
        raise ValueError("--together and --known-share exclude each other; drop one of them")
    metrics_together(parsing.parse_names(given["metrics"]))


def check_report(
    report: Path | None, inputs: Iterable[Path], *, overwrite: bool, new: Path | None = None
) -> None:
    """Raise an error for a report that could not be written; its folder `new` need not exist yet."""
    if report is None:
        return
    if new is not None and not new.exists() and report.parent.resolve() == new.resolve():
        report = new.absolute().parent / report.name  # only its suffix can be checked
        overwrite = True
    check_output(report, inputs, overwrite=overwrite, suffixes=atomic.PAGE_SUFFIXES)


def check_output(
    output: Path, inputs: Iterable[Path], *, overwrite: bool, suffixes: Sequence[str] = SUFFIXES
) -> None:
    """Raise an error for an output file that could not be written, or that is an input file."""
    for data in inputs:
        if data.exists() and output.exists() and data.samefile(output):
            raise ValueError(f"'{output}' is the input file, which is never changed; choose another output")
    atomic.check_target(output, overwrite, suffixes)


def _is_number(code: str) -> bool:
    """Return True if the text is a finite number."""
    try:
        return math.isfinite(float(code))
    except ValueError:
        return False
