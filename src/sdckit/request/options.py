"""The options of the commands: one record each, from which command line, job file and page are made."""

from __future__ import annotations

import ast
import re
import shlex
from dataclasses import dataclass, field, fields
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# The kinds of options, as `Request` is annotated with them; `KINDS` says what each is.
Text = str
Number = str
Name = str
Flag = bool
Paths = tuple[Path, ...]
Names = tuple[str, ...] | None  # None where nothing is given
Texts = Names
Codes = Names
Table = dict[str, str]
Limits = Table | None
Losses = Limits
Settings = Limits
Recodings = Limits
Grid = dict[str, Table] | None
Scenarios = dict[str, Any] | None
Seed = int | None

COMMANDS = ("mask", "evaluate", "sweep", "recommend")  # that a job may be for
MASKS = ("mask", "sweep", "recommend")
RELEASES = ("mask", "recommend")
SEARCHES = ("sweep", "recommend")
MEASURES = ("mask", "evaluate")
EVALUATE = ("evaluate",)
REPORTS = ("mask", "evaluate", "recommend")
DESCRIBES = ("describe", *COMMANDS)
LISTS = ("describe", *REPORTS, "run", "releases", "check", "metrics", "methods")  # commands that print tables
GONE = {  # keys of older jobs, which are ignored, and what to use in their place
    ("measures", "ranks"): 'metrics = ["rank_mae", "brmae"] and variables = true',
}
SECTIONS = {
    "input": "the files to read, and how",
    "roles": "what each column is",
    "recode": "columns that are published coarsened",
    "rules": "edit rules",
    "scenario": "another intruder",
    "masking": "how the file is masked, or was",
    "search": "which maskings are tried, and the limits",
    "measures": "what is measured, and how",
    "engine": "where the work is done",
    "output": "the files to write",
    "private": "files for you alone",
}
HIDDEN = ("private", "engine")  # sections with files and addresses that are nobody else's business


def _several(*kinds: str) -> dict[str, Any]:
    """Return the JSON schema of a list of values of these kinds, or of one of them."""
    return {"type": ["array", *kinds], "items": {"type": kinds[0] if len(kinds) == 1 else [*kinds]}}


def _table(*kinds: str) -> dict[str, Any]:
    """Return the JSON schema of a table of values of these kinds."""
    return {"type": "object", "additionalProperties": {"type": [*kinds]}}


_GRID = {"type": ["number", "string", "array"], "items": {"type": ["number", "string"]}}
_SCENARIO = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "what the intruder is called"},
        "known": _several("string") | {"description": "columns that he knows"},
        "max_risk": _table("number", "string") | {"description": "largest risks allowed"},
    },
    "required": ["name", "known"],
    "additionalProperties": False,
}


class Kind(NamedTuple):
    """What to give for an option of a kind: in a job, and its JSON schema; in the help, and as an example."""

    give: str
    schema: dict[str, Any]
    metavar: str  # unless the option has its own
    example: str = ""  # of an entry of a table


KINDS = {
    "text": Kind("a text in quotation marks", {"type": "string"}, "NAME"),
    "path": Kind("a path in quotation marks", {"type": "string"}, "FILE"),
    "paths": Kind("a list of paths", {"type": "array", "items": {"type": "string"}}, "FILE"),
    "flag": Kind("true or false", {"type": "boolean"}, ""),
    "number": Kind("a number", {"type": ["number", "string"]}, "N"),
    "name": Kind("the name of one column", {"type": "string"}, "A"),
    "names": Kind('names in a list, such as ["a", "b"]', _several("string"), "A,B"),
    "texts": Kind("texts in a list", _several("string"), "TEXT"),
    "codes": Kind('codes in a list, such as [-999, "NA"]', _several("string", "number"), "X"),
    "limits": Kind(
        "a table such as { linkage = 0.1 }", _table("number", "string"), "RISK=LIMIT", "linkage=0.1"
    ),
    "losses": Kind(
        "a table such as { suppressed = 0.01 }", _table("number", "string"), "LOSS=LIMIT", "suppressed=0.01"
    ),
    "settings": Kind("a table such as { k = 5 }", _table("number", "string", "boolean"), "NAME=VALUE", "k=5"),
    "recodings": Kind(
        'a table such as { age = 5, born = "year" }', _table("number", "string"), "A=HOW", "age=5"
    ),
    "grid": Kind(
        'a table such as { mdav = { k = "2:30" } }',
        {"type": "object", "additionalProperties": {"type": "object", "additionalProperties": _GRID}},
        "METHOD.PARAMETER=VALUES",
    ),
    "scenarios": Kind(
        "tables with name, known and max_risk", {"type": "array", "items": _SCENARIO}, "NAME=A,B:RISK=LIMIT"
    ),
}
TABLES = {name: kind.example for name, kind in KINDS.items() if kind.example}
METAVAR = {name: kind.metavar for name, kind in KINDS.items()}
REPEATED = ("paths", "names", "texts", "codes", "grid", "scenarios", *TABLES)  # kinds given several times


@dataclass(frozen=True)
class Option:
    """An option: of which kind, of which commands, as which flag and under which key of a job.

    `help` is what the command line says, by command where they differ. `key` is empty in a job whose whole
    section is the value, and `section` for an option that no job has. `needed` names the commands that cannot
    do without, `in_memory` those that have it only if all records are in memory, and `off_page` is True for
    what no screen of the page shows.
    """

    name: str
    default: Any
    kind: str
    commands: tuple[str, ...]
    help: str | Mapping[str, str] = ""
    text: str = ""
    section: str = ""
    key: str = ""
    needed: tuple[str, ...] = ()
    in_memory: tuple[str, ...] = ()
    argument: bool = False
    flags: tuple[str, ...] = ()
    metavar: str = ""
    hidden: tuple[str, ...] = ()
    unjobbed: str = ""
    off_page: bool = False

    @property
    def flag(self) -> str:
        """The option as errors name it, such as "--max-risk"."""
        return self.flags[0]

    @property
    def path(self) -> str:
        """The key as errors name it, such as "[search] grid"."""
        brackets = f"[[{self.section}]]" if self.kind == "scenarios" else f"[{self.section}]"
        return f"{brackets} {self.key}".rstrip()

    @property
    def jobs(self) -> tuple[str, ...]:
        """The commands whose jobs have it."""
        return tuple(one for one in self.commands if one in COMMANDS) if self.section else ()

    def help_of(self, command: str) -> str:
        """Return what the help of a command says about it."""
        return self.help if isinstance(self.help, str) else self.help.get(command, self.help.get("", ""))


def _option(
    commands: Sequence[str],
    job: str = "",
    help: str | Mapping[str, str] = "",  # noqa: A002 - click's word
    *,
    default: Any = None,
    flag: str | None = None,
    short: str = "",
    **more: Any,
) -> Any:
    """Return a field of `Request` with its record; `job` is its place in a job and what stands there.

    Without `help`, the command line says what the job says. The kind is the annotation of the field.
    """
    place, _, text = job.partition(": ")
    section, _, key = place.replace("[", "").partition("]")
    record = {"commands": tuple(commands), "help": help, "text": text, "flags": (flag, short), **more}
    return field(default=default, metadata=record | {"section": section, "key": key.strip(" ]")})


_flag = partial(_option, default=False)
_STRATA = "Column whose values form strata, each {}; repeatable."
_RULE = (
    'Rule of the records, such as "total = wages + other", "total = a + b +- 2" or "age >= 0"; discover '
    "finds exact totals and columns without negative values. "
)
_SURE = " Unless given, linkage_sure is a tenth of linkage; linkage_sure=1 allows all."
_GATE = " The exit code is 1 where it is exceeded."
_MISSING = (
    "Missing cells: pairwise leaves them out, penalise counts a suppressed one as a loss (bounded metrics "
    "only).  [default: {}]"
)


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a user asks for: a command with its options, by command line, job file or page.

    Names of columns are as they were given, until `resolved` says how the file spells them. Numbers are
    texts, which are checked when the request is run.
    """

    command: str

    data: Path = _option(DESCRIBES, "[input] data: the original file", needed=DESCRIBES, argument=True)
    masked: Paths = _option(
        EVALUATE, "[input] masked: the masked files", needed=EVALUATE, argument=True, default=()
    )
    na: Codes = _option(
        DESCRIBES,
        "[input] na: codes of missing cells",
        "Code of a missing cell, such as -999 or NA; repeatable.",
    )
    delimiter: Text | None = _option(
        DESCRIBES,
        "[input] delimiter: character between cells of CSV files",
        "Character between cells of CSV files.  [default: , or ; with --decimal-comma, a tab in .tsv]",
        metavar="C",
    )
    decimal_comma: Flag = _flag(DESCRIBES, "[input] decimal_comma: numbers look like 1,5")
    escape_formulas: Flag = _flag(
        DESCRIBES,
        "[input] escape_formulas: texts of CSV files that spreadsheets would run have ' before them",
        off_page=True,
    )
    encoding: Text = _option(DESCRIBES, "[input] encoding: encoding of CSV files", default="utf-8")
    table: Text | None = _option(
        DESCRIBES, "[input] table: sheet of an Excel file or data frame of an R file to read, if several"
    )
    columns: Names = _option(
        DESCRIBES,
        "[roles] columns: variables to mask",
        "Variables; by default all numeric columns without another role, less those that look like codes "
        "or identifiers; repeatable.",
    )
    key: Names = _option(
        DESCRIBES,
        "[roles] key: columns that identify records",
        "Column that identifies records, a direct identifier and no key variable (quasi-identifier); never "
        "masked; several (A,B or repeated) identify together.",
    )
    by: Names = _option(
        DESCRIBES,
        "[roles] by: columns whose values form strata",
        {
            "": _STRATA.format("masked and measured by itself"),
            "evaluate": _STRATA.format("measured by itself, and with --made-by also masked by itself"),
        },
    )
    untouched: Names = _option(DESCRIBES, "[roles] untouched: columns published as they are")
    known: Names = _option(
        DESCRIBES,
        "[roles] known: what the intruder knows",
        "What the intruder knows; repeatable.  [default: all published columns but --unknown ones]",
        off_page=True,
    )
    unknown: Names = _option(
        DESCRIBES, "[roles] unknown: published columns unknown to the intruder, as weights"
    )
    confidential: Names = _option(DESCRIBES, "[roles] confidential: columns that the intruder wants to learn")
    drop: Names = _option(DESCRIBES, "[roles] drop: columns that are not published")
    weights: Name | None = _option(DESCRIBES, "[roles] weights: column of survey weights; never masked")
    unit: Name | None = _option(
        DESCRIBES,
        "[roles] unit: column of households, firms or persons; its values repeat",
        in_memory=MEASURES,
    )
    recode: Recodings = _option(
        ("describe", *MASKS),
        "[recode]: how to coarsen columns that are not masked",
        "Coarsen a column that is not masked: age=5 (bands), income=round:100, town=rare:20 (merge rare "
        "categories), born=year, year:10, quarter or month; repeatable.",
        in_memory=("mask",),
    )
    rules: Texts = _option(
        COMMANDS,
        "[rules] rule: rules of the records",
        {
            "": f"{_RULE}Masked records are corrected to satisfy it; repeatable.",
            "evaluate": f"{_RULE}The attacks use it, and masked records that break it are counted; "
            "repeatable.",
        },
        flag="--rule",
        in_memory=EVALUATE,
    )
    scenario: Scenarios = _option(
        ("evaluate", "recommend"),
        "[[scenario]]: other intruders",
        "Another intruder who knows A and B only, and limits for him; repeatable.",
        in_memory=EVALUATE,
    )
    method: Text = _option(
        ("mask",), "[masking] method: how to mask", "How to mask; see `sdckit methods`.", needed=("mask",)
    )
    made_by: Text | None = _option(
        EVALUATE,
        "[masking] made_by: method that masked the file",
        "Method that masked the file, with --set for its parameters; attacks use what it discloses.",
        metavar="METHOD",
    )
    made_by_command: Text | None = _option(
        EVALUATE,
        help="In place of a method, a command of your own that masks {input} and writes {output}, with "
        '{seed} for its draws, such as "Rscript {here}/mask.R {input} {output} {seed}"; {here} is here. '
        "The intruder runs it up to 80 times, without a shell, in a private folder; its output is discarded.",
        metavar="TEXT",
        in_memory=EVALUATE,
        unjobbed="no job file starts a program",
    )
    made_by_seconds: Number | None = _option(
        EVALUATE,
        help="Seconds that a run of --made-by-command may take.  [default: 60]",
        unjobbed="no job file starts a program",
    )
    settings: Settings = _option(
        MEASURES,
        "[masking] set: parameters of the method",
        "Parameter of the method; with --by also one for each stratum, k=north:5,south:3; repeatable.",
        flag="--set",
    )
    window: Number | None = _option(
        EVALUATE,
        "[masking] window: largest move in ranks, a share of the records, if the method is not one of "
        "`sdckit methods`",
        metavar="SHARE",
    )
    stratified: Flag = _flag(
        EVALUATE,
        "[masking] stratified: each stratum was masked by itself",
        "Each stratum of --by was masked by itself, so that the window counts ranks within it; default "
        "with --made-by.",
    )
    unstratified: Flag = _flag(
        EVALUATE,
        "[masking] unstratified: the file was masked as a whole",
        "The file was masked as a whole, and strata of --by are only measured; default with --window.",
    )
    unpaired: Flag = _flag(
        EVALUATE,
        "[masking] unpaired: rows stand for no original record, as in synthetic data; measures that "
        "compare rows are left out",
        in_memory=EVALUATE,
    )
    limits: Limits = _option(
        ("evaluate", "recommend"),
        "[search] max_risk: largest risks allowed",
        {
            "": f"Largest risk allowed, such as linkage=0.1; repeatable.{_SURE}",
            "evaluate": f"Largest risk allowed, such as linkage=0.1; repeatable.{_GATE}",
        },
        needed=("recommend",),
        flag="--max-risk",
    )
    loss_limits: Losses = _option(
        ("evaluate", "recommend"),
        "[search] max_loss: largest losses allowed",
        {
            "": f"Largest loss allowed, such as suppressed=0.01; repeatable.{_SURE}",
            "evaluate": f"Largest loss allowed, such as suppressed=0.01; repeatable.{_GATE}",
        },
        flag="--max-loss",
    )
    minimise: Text = _option(
        ("recommend",), "[search] minimise: loss to minimise", metavar="LOSS", default="brmae"
    )
    methods: Texts = _option(
        SEARCHES,
        "[search] methods: methods to try with their default grids",
        "A method to try with its default grid, or all for every method; repeatable.",
        flag="--method",
        metavar="NAME",
    )
    grids: Grid = _option(
        SEARCHES,
        "[search] grid: values to try, by method",
        "Values to try: 2:30, 0.01:0.3:0.01 or 3,5,10; repeatable. A method alone has its default grid; "
        "without --grid and --method, the default methods are tried (see sdckit methods).",
        flag="--grid",
        off_page=True,
    )
    plan: Path | None = _option(
        ("sweep",), "[search] plan: file with the grids", "A TOML file with the grids; see the reference."
    )
    replications: Number | None = _option(
        SEARCHES,
        "[search] replications: draws of each random masking",
        {
            "": "Runs of each random masking.  [default: 1]",
            "recommend": "Draws of each random masking; the median counts.  [default: 3; 1 above 20,000 "
            "records]",
        },
        off_page=True,
    )
    draws: Text | None = _option(
        ("sweep",),
        "[search] draws: common or fresh",
        "common: a method's settings share random numbers; fresh: each has its own.  [default: common]",
        metavar="RULE",
    )
    workers: Number | None = _option(
        SEARCHES, "[search] workers: cores to use", "Cores to use.  [default: all]", off_page=True
    )
    metrics: Names = _option(
        ("mask", "evaluate", "sweep"),
        "[measures] metrics: metrics, all default ones if not given",
        "Metrics, all default ones if not given; see `sdckit metrics`; repeatable.",
    )
    ties: Text = _option(
        COMMANDS,
        "[measures] ties: how equal values are ranked: average, expected, random, first, last, min or max",
        default="average",
        metavar="RULE",
        off_page=True,
    )
    missing: Text | None = _option(
        COMMANDS,
        "[measures] missing: rule for missing cells",
        {"": _MISSING.format("pairwise")} | dict.fromkeys(SEARCHES, _MISSING.format("penalise")),
        metavar="RULE",
        off_page=True,
    )
    sample_queries: Number | None = _option(
        ("evaluate", *SEARCHES),
        "[measures] sample_queries: records to estimate on",
        {
            "": "Estimate linkage on N records drawn at random, each looked up among all others, with a 95 % "
            "interval.  [default: all records]",
            "recommend": "Judge settings by linkage estimated on N records at first, then on more until an "
            "interval settles the question; 0 looks up all. The file itself is measured in full.  [default: "
            "2048 of files above 20000]",
        },
        off_page=True,
    )
    known_share: Number | None = _option(
        EVALUATE,
        "[measures] known_share: share of the persons whom an intruder holds",
        "Also tell how many persons are found by an intruder who holds the originals of this share of them "
        "only, such as 0.75; in files of at most 3,000 records.",
        metavar="SHARE",
        in_memory=EVALUATE,
    )
    estimates: Texts = _option(
        COMMANDS,
        '[measures] estimates: what users of the file compute, such as "total(turnover) by sector" or '
        '"model: y ~ log(x)": its loss is measured, too',
        flag="--estimate",
        in_memory=MEASURES,
    )
    variables: Flag = _flag(
        ("evaluate", "sweep"),
        "[measures] variables: also each variable",
        {"": "Also show every variable.", "sweep": "Also a row for each variable."},
    )
    together: Flag = _flag(
        EVALUATE,
        "[measures] together: linkage of several releases together, for an intruder who can align their "
        "records",
        in_memory=EVALUATE,
    )
    detail: Flag = _flag(
        ("sweep",), "[measures] detail: also random-order levels and tie ranges; takes longer"
    )
    no_measure: Flag = _flag(
        ("mask",),
        "[measures] no_measure: only mask",
        "Only mask: print no loss and no risk; not with --release or --report.",
    )
    engine: Text | None = _option(
        MEASURES,
        "[engine] engine: memory, local or spark",
        "memory; local: Parquet files or folders in blocks of rows; spark: the same on a cluster. Risks "
        "take both files into memory.  [default: memory, or local for Parquet that does not fit there]",
    )
    memory: Text | None = _option(
        MEASURES,
        "[engine] memory: limit for the engine local",
        "Limit for --engine local, such as 4GB.  [default: what is at hand]",
        metavar="SIZE",
    )
    master: Text | None = _option(
        MEASURES,
        "[engine] master: address of a Spark cluster",
        "Spark cluster, such as spark://host:7077.  [default: on this machine]",
        metavar="ADDRESS",
    )
    scratch: Path | None = _option(
        MEASURES,
        "[engine] scratch: folder for intermediate files",
        "Folder for intermediate files, which are removed; on Spark one that all workers see.  [default: the "
        "system's]",
        metavar="DIR",
    )
    output: Path = _option(
        ("describe", *MASKS, "replay"),
        "[output] output: the file, or of a sweep the folder, to write",
        {"": "File to write.", "sweep": "Folder for the results.", "describe": "Start a job file (.toml)."},
        needed=(*MASKS, "replay"),
        short="-o",
    )
    release: Flag = _flag(
        ("mask",),
        "[output] release: a file that can be handed out; true unless it says false",
        "Write a file that can be handed out: rows shuffled, no key, fresh numbers of units.",
        in_memory=("mask",),
    )
    keep_order: Flag = _flag(
        RELEASES,
        "[output] keep_order: leave the rows of the release in the order of the original; the figures "
        "count what that tells",
        in_memory=("mask",),
    )
    numbered: Text | None = _option(
        RELEASES,
        "[output] numbered: name of a column of fresh record numbers",
        "Add a column of this name with fresh numbers of the records, in an order that tells nothing.",
        in_memory=("mask",),
        off_page=True,
    )
    decimals: Number = _option(
        RELEASES,
        "[output] decimals: decimals of masked cells: a number, original for the usual step of the column "
        "(100 for a column of hundreds), or none to leave them unrounded",
        default="original",
        off_page=True,
    )
    groups: Text | None = _option(
        ("mask",),
        "[output] groups: name of a column of group numbers",
        "Add a column with the number of each record's group, under this name.",
        in_memory=("mask",),
    )
    calibrate: Texts = _option(
        RELEASES,
        "[output] calibrate: totals of the original that hold in the file",
        "Change masked cells as little as possible so that a total of the original holds, such as "
        '"total(turnover) by sector"; repeatable.',
        in_memory=("mask",),
        off_page=True,
    )
    form: Text = _option(
        ("sweep",), "[output] format: format of the table, parquet or csv", flag="--format", default="parquet"
    )
    report: Path | None = _option(
        COMMANDS,
        "[output] report: HTML report",
        "Write a report: one HTML file that needs no network.",
        in_memory=MEASURES,
    )
    private: Path | None = _option(
        (*REPORTS, "replay", "releases", "check"),
        "[private] private: folder of the private record",
        "Folder of the private record of releases; keep it secret.  [default: in your state directory]",
        metavar="DIR",
    )
    crosswalk: Path | None = _option(
        RELEASES,
        "[private] crosswalk: original row of each published row",
        "Write the original row of each row of the release to a file for you alone; keep it secret.",
        in_memory=("mask",),
        off_page=True,
    )
    crosswalks: Paths = _option(
        EVALUATE,
        "[private] crosswalk: original row of each masked row",
        "The original row of each row of a shuffled release, as recommend and mask write it; one for each "
        "masked file.",
        flag="--crosswalk",
        in_memory=EVALUATE,
        default=(),
    )
    private_report: Path | None = _option(
        REPORTS,
        "[private] private_report: HTML report with exact statistics",
        "Write the report with exact statistics of the original and its hash, marked PRIVATE on every page; "
        "keep it secret.",
        in_memory=MEASURES,
    )
    folder: Path | None = _option(
        ("recommend",),
        "[private] folder: folder for the runs of the search",
        "Store finished runs: after Ctrl-C or a crash the same command resumes. Keep DIR secret: it holds "
        "the seed.",
        metavar="DIR",
    )
    records: Path | None = _option(
        EVALUATE,
        "[private] records: each record's risk and share of the losses",
        "Write each record's risk and share of the losses to a file for you alone; keep it secret.",
        in_memory=EVALUATE,
    )
    private_output: Flag = _flag(
        EVALUATE,
        "[private] private_output: also figures that one record dominates",
        "With --json or --csv, also figures that one record dominates, from which its value follows; not for "
        "publication.",
    )

    seed: Seed = _option(
        COMMANDS,
        help={
            "": "Seed of random draws, for work that must repeat; what is masked with it is not for "
            "publication.",
            "evaluate": "Seed for --ties random.",
        },
        hidden=("recommend",),  # refused with the reason
        unjobbed="a release draws its own random numbers",
    )
    save_job: Path | None = _option(
        COMMANDS,
        help="Write these options to a job file (.toml), for sdckit run.",
        unjobbed="it names the job itself",
    )
    overwrite: Flag = _flag(
        (*DESCRIBES, "run", "replay"),
        help={
            "": "Replace output files that exist.",
            "describe": "Replace a job file that exists.",
            "replay": "Replace an output file that exists.",
            "sweep": "Delete what an earlier sweep left in the folder and start again.",
        },
        unjobbed="give it to sdckit run",
    )
    as_json: Flag = _flag(LISTS, help="Print JSON.", flag="--json", unjobbed="give it to sdckit run")
    as_csv: Flag = _flag(LISTS, help="Print CSV.", flag="--csv", unjobbed="give it to sdckit run")
    quiet: Flag = _flag(
        (*COMMANDS, "run", "replay"),
        help={"": "Print no progress and no table.", "replay": "Print nothing."},
        short="-q",
        unjobbed="give it to sdckit run",
    )

    def given(self, option: Option) -> Any:
        """Return the value of an option, None where it is the default."""
        value = getattr(self, option.name)
        return None if value in (None, (), False, option.default) else value


def _record(one: Any) -> Option:
    """Return the record of a field of `Request`."""
    record: dict[str, Any] = dict(one.metadata)
    flag, short = record["flags"]
    kind = one.type.removesuffix(" | None").lower()
    if record["text"] and not record["help"]:
        said = record["text"] + "; repeatable" * (kind in REPEATED)
        record["help"] = f"{said[:1].upper()}{said[1:]}."
    record["flags"] = tuple(filter(None, [flag or f"--{one.name.replace('_', '-')}", short]))
    return Option(one.name, one.default, kind, **({"metavar": METAVAR.get(kind, "")} | record))


OPTIONS: dict[str, Option] = {one.name: _record(one) for one in fields(Request) if one.metadata}
JOB_OPTIONS = tuple(one for one in OPTIONS.values() if one.section)
SINGLE = tuple(one.name for one in OPTIONS.values() if one.kind == "name")  # roles of one column


@cache
def options_of(command: str) -> tuple[Option, ...]:
    """Return the options of a command."""
    return tuple(one for one in OPTIONS.values() if command in one.commands)


@cache
def job_options(command: str) -> tuple[Option, ...]:
    """Return the options that jobs of a command have."""
    return tuple(one for one in JOB_OPTIONS if command in one.jobs)


ARGUMENT = re.compile(  # of the library's functions, as its errors and notes name them
    r"\b(columns|confidential|data|decimal_comma|delimiter|drop|encoding|engine|estimates|groups|key"
    r"|made_by|max_loss|known|method|na|overwrite|private|recode|scratch|table|unit|unknown|untouched|weights)"
    r"=(True|\[.*?\]|'[^']*'|\"[^\"]*\")?"
)
OTHER_FLAGS = {"method": "--made-by", "made_by": "--made-by-command", "max_loss": "--max-loss"}


def with_flags(text: str) -> str:
    """Return an error or a note of the library with Python arguments in its remedy replaced by flags."""
    fact, mark, remedy = text.rpartition("; ")
    return f"{fact}{mark}{ARGUMENT.sub(_flag_for, remedy)}" if mark else text


def _flag_for(argument: re.Match[str]) -> str:
    """Return the flag for an argument of the library, such as --na NA for na=['NA']."""
    flag = OTHER_FLAGS.get(argument[1]) or OPTIONS[argument[1]].flag
    if argument[2] in {None, "True"}:
        return flag
    try:
        value = ast.literal_eval(argument[2])
    except (SyntaxError, ValueError):  # no argument, but a name that looks like one
        return argument[0]
    words = [value] if isinstance(value, str) else value
    return " ".join(f"{flag} {shlex.quote(word) if word.isprintable() else repr(word)}" for word in words)
