"""What a user asked for, by options or by a job file."""

from __future__ import annotations

import math
import os
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from sdckit.cli import parsing, terminal
from sdckit.cli.made_by_command import WHO
from sdckit.cli.parsing import parse_settings
from sdckit.cli.terminal import table_of
from sdckit.core import checks, randomness, registry
from sdckit.core.checks import warn
from sdckit.core.disclosure import Disclosure, Method, disclosure_of
from sdckit.core.registry import method_text
from sdckit.core.roles import OPTIONS, warn_of_masked_weights, warn_of_undecided
from sdckit.core.scenarios import checked_scenarios
from sdckit.estimation.compare import declared_of
from sdckit.estimation.parse import parse_estimates
from sdckit.io import atomic, files
from sdckit.io import atomic as output_folder
from sdckit.io.atomic import sweep_drafts
from sdckit.io.formats import SUFFIXES, Dialect
from sdckit.io.text_numbers import find_text_numbers
from sdckit.job.fields import Field, fields_of
from sdckit.job.toml import Job
from sdckit.kernels.ranks import TIES
from sdckit.masking import METHODS
from sdckit.metrics.doubts import published_names, require_published, warn_of_doubts, warn_of_published
from sdckit.metrics.evaluation import (
    Measuring,
    add_masking,
    evaluate_pair,
    evaluate_releases,
    metrics_together,
    require_columns,
)
from sdckit.metrics.original import Original
from sdckit.metrics.score import Sampling, sampling_of
from sdckit.report import charts
from sdckit.risk.intruder import checked_known_share
from sdckit.selection.limits import check_limits_and_loss, loss_limits, risk_limits
from sdckit.selection.microdata import Microdata
from sdckit.selection.plan import plan_of_file, plan_of_words, settings_of
from sdckit.selection.runner import PLAN
from sdckit.selection.sweep_result import overview
from sdckit.selection.task import DRAWS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    import click
    from rich.table import Table

    from sdckit.cli.made_by_command import MaskingCommand
    from sdckit.io.files import Source
    from sdckit.metrics.evaluation_result import Evaluation
    from sdckit.metrics.pair import Pair
    from sdckit.selection.sweep_result import Sweep


PRIVATE = "private"
EXACT = "estimates.csv"  # in the private folder
FORMATS = ("parquet", "csv")


def check_folder(folder: Path, data: Path) -> None:
    """Raise an error unless the folder is new, empty or of an earlier sweep, and holds no input."""
    sweep_drafts(folder)
    begun = folder.is_dir() and {file.name for file in folder.iterdir()} == {PRIVATE}
    if not begun:  # else a sweep was killed before it wrote a result
        output_folder.check_folder(folder, f"{PRIVATE}/{PLAN}")
    for file in (path for form in FORMATS for path in _output_files(folder, form)):
        if file.exists() and data.exists() and file.samefile(data):
            raise ValueError(f"'{file}' is the input, which is never changed; choose another folder with -o")


def _output_files(folder: Path, form: str) -> list[Path]:
    """Return the paths of table, summary and chart in a folder; `form` is the table's suffix."""
    return [folder / f"sweep.{form}", folder / "summary.csv", folder / "sweep.svg"]


def write_files(found: Sweep, folder: Path, form: str) -> list[Path]:
    """Write table, summary and chart of a sweep, all or none; delete an earlier table in another format.

    Exact losses over declared estimates go to the private folder.
    """
    table, summary, picture = _output_files(folder, form)
    public, private = found.public(), folder / PRIVATE / EXACT
    exact = found.table.filter(pl.col("metric").is_in(list(registry.estimate_losses())))
    with ExitStack() as drafted:  # which are renamed when all of them are whole
        drafted.enter_context(files.write_draft(table, public.table, overwrite=True))
        drafted.enter_context(files.write_draft(summary, public.summary, overwrite=True))
        draft = drafted.enter_context(atomic.atomic(picture, overwrite=True))
        draft.write_text(charts.svg(public.plot()), encoding="utf-8")
        if exact.height:
            drafted.enter_context(files.write_draft(private, exact, overwrite=True, private=True))
    if not exact.height:
        private.unlink(missing_ok=True)
    for other in FORMATS:
        if other != form:
            (folder / f"sweep.{other}").unlink(missing_ok=True)
    return [table, summary, picture]


def overview_table(found: Sweep) -> Table:
    """Return a rich table of each method's measures at both ends of its grid: medians of replications."""
    names, rows = overview(found.summary)
    return table_of(names, rows, right=2)


FORM = "write NAME=COLUMNS:RISK=LIMIT, such as press=sex,age:linkage=0.1"


def parse_scenarios(words: Sequence[str], known: Collection[str] = ()) -> dict[str, Any]:
    """Return scenarios by name from words such as "press=sex,age:linkage=0.1"; `known` are columns.

    The limits after the colon may be left out; a name of a column with a colon is put in quotation marks.
    """
    found: dict[str, Any] = {}
    for word in words:
        name, equals, rest = word.partition("=")
        if not name.strip() or not equals:
            raise ValueError(f"--scenario {word!r} has no name or no columns; {FORM}")
        if name.strip() in found:
            raise ValueError(f"--scenario gives {name.strip()!r} twice; give it once")
        columns, limits = _split_at_colon(rest)
        entry = {"known": parsing.parse_names([columns], known), "max_risk": _parse_limits(word, limits)}
        found[name.strip()] = entry
    return found


def _split_at_colon(text: str) -> tuple[str, str]:
    """Return what stands before and after the first colon that is not in quotation marks."""
    quoted = False
    for place, letter in enumerate(text):
        quoted ^= letter == '"'
        if letter == ":" and not quoted:
            return text[:place], text[place + 1 :]
    return text, ""


def _parse_limits(word: str, text: str) -> dict[str, str]:
    """Return limits by risk from a text such as "linkage=0.1,uniques=0.2"."""
    limits = {}
    for part in parsing.parse_names([text]) or []:
        risk, _, limit = (piece.strip() for piece in part.rpartition("="))  # names of metrics may contain =
        if not risk or not limit:
            raise ValueError(f"--scenario {word!r} has a limit without a name or a number; {FORM}")
        limits[risk] = limit
    return limits


PATHS = ("path", "paths")
TABLES = ("limits", "losses", "settings", "recodings")
ARGUMENTS = {"evaluate": {"data": "original"}}  # arguments that are not named like their key
RELEASE = ("output", "release")  # a job hands its file out unless it says otherwise


def job_of_options(
    command: click.Command, given: Mapping[str, Any], folder: Path = Path(), columns: Collection[str] = ()
) -> Job:
    """Return the job that does what a command does with these options; defaults are left out.

    `given` has options and arguments by the names that click knows them by, `columns` are those of the file.
    Relative paths become relative to `folder`, the one of the job file.
    """
    name = str(command.name)
    defaults = {parameter.name: parameter.default for parameter in command.params}
    content: dict[str, Any] = {"command": name}
    for entry in fields_of(name):
        value = given[_parameter_name(name, entry)]
        is_release = (entry.section, entry.key) == RELEASE
        if value in (None, (), False, defaults.get(entry.name)) and not is_release:
            continue
        found = _value_of(entry, value, folder, columns)
        if not entry.key:
            content[entry.section] = found
        else:
            content.setdefault(entry.section, {})[entry.key] = found
    return Job(name, content, folder)


def input_section(data: Path, given: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return the section on the input of a job in a folder: the original file, and how to read it."""
    defaults = (None, (), False, "utf-8")
    fields = [entry for entry in fields_of("recommend") if entry.section == "input" and entry.key != "data"]
    values = {entry.key: (entry, given[entry.name]) for entry in fields if given[entry.name] not in defaults}
    others = {key: _value_of(entry, value, folder, ()) for key, (entry, value) in values.items()}
    return {"data": _relative(data, folder)} | others


def words_of_job(job: Job, command: click.Command) -> list[str]:
    """Return the arguments and options of the command line that a job stands for."""
    options, arguments = [], {}
    flags = {parameter.name: parameter for parameter in command.params}
    for entry, value in job.values():
        parameter = flags[_parameter_name(job.command, entry)]
        words = _words_of(entry, value, job.folder)
        if parameter.param_type_name == "argument":
            arguments[parameter.name] = words
        elif entry.kind == "flag":
            options += [parameter.opts[-1]] * bool(value)
        else:
            options += [f"{_long_name(parameter)}={word}" for word in words]
    if job.command == "mask" and "release" not in job.content.get("output", {}):
        options.append("--release")
    ordered = [arguments.get(p.name, []) for p in command.params if p.param_type_name == "argument"]
    return [*options, "--", *(word for words in ordered for word in words)]


def _parameter_name(command: str, field: Field) -> str:
    """Return the name that click knows the option or argument of a field by."""
    return ARGUMENTS.get(command, {}).get(field.name, field.name)


def _long_name(parameter: click.Parameter) -> str:
    """Return an option as it is written out, such as --max-risk."""
    return next(name for name in parameter.opts if name.startswith("--"))


def _value_of(field: Field, given: Any, folder: Path, columns: Collection[str]) -> Any:
    """Return an option as a job has it."""
    if field.kind in PATHS:
        found = [_relative(Path(path), folder) for path in (given if field.kind == "paths" else [given])]
        return found if field.kind == "paths" else found[0]
    if field.kind in TABLES:
        option = "--set" if field.kind == "settings" else "--max-risk"  # where the equals sign is looked for
        return {name: plain_value(text) for name, text in parse_settings(given, option).items()}
    convert: dict[str, Callable[[], Any]] = {
        "names": lambda: parsing.parse_names(given, columns),
        "name": lambda: parsing.parse_name(given, columns),
        "grid": lambda: _grid_value(given),
        "scenarios": lambda: [_scenario_value(*one) for one in parse_scenarios(given, columns).items()],
        "codes": lambda: [plain_value(code) for code in given],
        "texts": lambda: list(given),
        "number": lambda: plain_value(str(given)),
    }
    return convert.get(field.kind, lambda: given)()


def _grid_value(words: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the grids of --grid by method and parameter."""
    plan = plan_of_words(words)
    return {method: {name: plain_value(text) for name, text in grid.items()} for method, grid in plan.items()}


def _scenario_value(name: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return a scenario as a job has it."""
    limits = {risk: plain_value(limit) for risk, limit in entry["max_risk"].items()}
    return {"name": name, "known": entry["known"] or []} | ({"max_risk": limits} if limits else {})


def plain_value(text: str) -> int | float | str:
    """Return a text as the number it spells if the number is written back as the same text, else the text."""
    for kind in (int, float):
        try:
            number = kind(text)
            if math.isfinite(number) and repr(number) == text:
                return number
        except (OverflowError, ValueError):  # no number, or a whole one beyond all floating ones
            continue
    return text


def _relative(path: Path, folder: Path) -> str:
    """Return a path relative to the folder of a job; an absolute path stays as it is."""
    if path.is_absolute() or folder == Path():
        return str(path)
    return str(path.absolute()) if folder.is_absolute() else os.path.relpath(path, folder)


def _words_of(field: Field, value: Any, folder: Path) -> list[str]:
    """Return the values of an option as the command line gives them, one for each time it is given."""
    if field.kind in PATHS:
        return [str(folder / path) for path in _several(value)]
    if field.kind == "names":
        return [parsing.quoted_name(name) for name in _several(value)]
    if field.kind in TABLES:
        return [f"{name}={_word(one)}" for name, one in value.items()]
    if field.kind == "grid":
        return [word for method, grid in value.items() for word in _grid_words(method, grid)]
    if field.kind == "scenarios":
        return [_scenario_word(entry) for entry in value]
    return [_word(one) for one in _several(value)]


def _several(value: Any) -> Sequence[Any]:
    """Return a list unchanged, and one value as a list."""
    return value if isinstance(value, list) else [value]


def _word(value: Any) -> str:
    """Return a value of TOML as a word of the command line."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _grid_words(method: str, grid: Mapping[str, Any]) -> list[str]:
    """Return the words of --grid for one method."""
    lists = {name: ",".join(map(_word, _several(values))) for name, values in grid.items()}
    return [f"{method}.{name}={text}" for name, text in lists.items()] or [method]


def _scenario_word(entry: Mapping[str, Any]) -> str:
    """Return the word of --scenario for one scenario of a job."""
    if "=" in entry["name"]:
        raise ValueError(f"[[scenario]] name is {entry['name']!r}, with an equals sign; give another name")
    known = ",".join(map(_quoted, _several(entry["known"])))
    limits = [parsing.quoted_name(f"{risk}={_word(one)}") for risk, one in entry.get("max_risk", {}).items()]
    return f"{entry['name']}={known}" + (f":{','.join(limits)}" if limits else "")


def _quoted(name: str) -> str:
    """Return the name of a column for --scenario: in quotation marks where it has a colon, too."""
    quoted = parsing.quoted_name(name)
    return f'"{name}"' if ":" in name and quoted == name else quoted


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
        found = find_text_numbers(source, skip=self.role_columns)
        for name, (reason, remedy) in found.items():
            fact = f"column {name!r} is read as text because {reason}"
            if self.columns is None and not left:
                raise ValueError(f"no numeric column left: {fact}; {remedy}")
            if self.columns is None:
                warn(f"{fact} and is not {action}; {remedy}")
            elif name in self.columns:
                raise ValueError(f"{fact}; {remedy}")
        return list(found) if self.columns is None else []

    def microdata(self, original: Original, name: str = "data") -> Microdata:
        """Return prepared data with the rules, intruders and ways of measuring that these options state."""
        return Microdata(
            original,
            rules=self.rules,
            intruders=self.scenarios,
            ties=self.ties,
            missing=self.missing,
            name=name,
        )

    @property
    def method(self) -> Method:
        """How a file was masked, as far as these options say."""
        return Method(
            self.made_by,
            window=self.window,
            stratified=self.stratified,
            paired=self.paired,
            **(self.made_with or {}),
        )

    def disclosure(self, by: Sequence[str]) -> Disclosure:
        """Return what the options say about the masking of a file with these strata."""
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
        ties=checks.one_of("rule for ties", given["ties"], TIES),
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
    checks.one_of("format", given["form"], FORMATS)
    more = {
        "replications": 1 if repeated is None else checks.checked_count("replications", repeated),
        "draws": checks.one_of("rule for draws", given["draws"] or "common", DRAWS),
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
