"""The options of the commands: one record each, from which command line, job file and page are made."""

from __future__ import annotations

import ast
import re
import shlex
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Names = tuple[str, ...] | None  # None where nothing is given
Table = dict[str, str]

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
    "name": {"type": "string", "description": "what the intruder is called"},
    "known": _several("string") | {"description": "columns that he knows"},
    "max_risk": _table("number", "string") | {"description": "largest risks allowed"},
}
KINDS: dict[str, tuple[str, dict[str, Any]]] = {  # what to give in a job, and its JSON schema
    "text": ("a text in quotation marks", {"type": "string"}),
    "path": ("a path in quotation marks", {"type": "string"}),
    "paths": ("a list of paths", {"type": "array", "items": {"type": "string"}}),
    "flag": ("true or false", {"type": "boolean"}),
    "number": ("a number", {"type": ["number", "string"]}),
    "name": ("the name of one column", {"type": "string"}),
    "names": ('names in a list, such as ["a", "b"]', _several("string")),
    "texts": ("texts in a list", _several("string")),
    "codes": ('codes in a list, such as [-999, "NA"]', _several("string", "number")),
    "limits": ("a table such as { linkage = 0.1 }", _table("number", "string")),
    "losses": ("a table such as { suppressed = 0.01 }", _table("number", "string")),
    "settings": ("a table such as { k = 5 }", _table("number", "string", "boolean")),
    "recodings": ('a table such as { age = 5, born = "year" }', _table("number", "string")),
    "grid": (
        'a table such as { mdav = { k = "2:30" } }',
        {
            "type": "object",
            "additionalProperties": {"type": "object", "additionalProperties": _GRID},
        },
    ),
    "scenarios": (
        "tables with name, known and max_risk",
        {
            "type": "array",
            "items": {
                "type": "object",
                "properties": _SCENARIO,
                "required": ["name", "known"],
                "additionalProperties": False,
            },
        },
    ),
}
TABLES = {"limits": "linkage=0.1", "losses": "suppressed=0.01", "settings": "k=5", "recodings": "age=5"}
REPEATED = ("paths", "names", "texts", "codes", "grid", "scenarios", *TABLES)  # kinds given several times


@dataclass(frozen=True)
class Option:
    """An option: of which kind, of which commands, as which flag and under which key of a job.

    `help` is what the command line says, by command where they differ. `key` is empty in a job whose whole
    section is the value, and `section` for an option that no job has. `needed` names the commands that cannot
    do without, `in_memory` those that have it only if all records are in memory, `page` is True for what a
    screen of the page shows.
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
    page: bool = False

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
    kind: str,
    commands: Sequence[str],
    text: str = "",
    job: str = "",
    help: str | Mapping[str, str] = "",  # noqa: A002 - click's word
    *,
    default: Any = None,
    flag: str | None = None,
    short: str = "",
    **more: Any,
) -> Any:
    """Return a field of `Request` with its record; `job` is such as "[roles] key", "" if no job has it."""
    section, _, key = job.replace("[", "").partition("]")
    record: dict[str, Any] = {"kind": kind, "commands": tuple(commands), "help": help, "text": text}
    record |= {"section": section, "key": key.strip(" ]"), "flags": (flag, short), **more}
    if default is None:
        default = False if kind == "flag" else () if kind == "paths" else None
    return field(default=default, metadata=record)


def _names(text: str, key: str, help: str | Mapping[str, str], metavar: str = "A,B", **more: Any) -> Any:  # noqa: A002
    """Return the field of a role of several columns."""
    return _option("names", DESCRIBES, text, f"[roles] {key}", help, metavar=metavar, **more)


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

    data: Path = _option(
        "path",
        DESCRIBES,
        "the original file",
        "[input] data",
        needed=DESCRIBES,
        argument=True,
        page=True,
    )
    masked: tuple[Path, ...] = _option(
        "paths", EVALUATE, "the masked files", "[input] masked", needed=EVALUATE, argument=True
    )
    na: tuple[str, ...] | None = _option(
        "codes",
        DESCRIBES,
        "codes of missing cells",
        "[input] na",
        "Code of a missing cell, such as -999 or NA; repeatable.",
        metavar="X",
        page=True,
    )
    delimiter: str | None = _option(
        "text",
        DESCRIBES,
        "character between cells of CSV files",
        "[input] delimiter",
        "Character between cells of CSV files.  [default: , or ; with --decimal-comma, a tab in .tsv]",
        metavar="C",
        page=True,
    )
    decimal_comma: bool = _option(
        "flag",
        DESCRIBES,
        "numbers look like 1,5",
        "[input] decimal_comma",
        "Numbers look like 1,5.",
        page=True,
    )
    encoding: str = _option(
        "text",
        DESCRIBES,
        "encoding of CSV files",
        "[input] encoding",
        "Encoding of CSV files.",
        default="utf-8",
        metavar="NAME",
        page=True,
    )
    table: str | None = _option(
        "text",
        DESCRIBES,
        "sheet of an Excel file or data frame of an R file",
        "[input] table",
        "Sheet of an Excel file or data frame of an R file to read, if several.",
        metavar="NAME",
        page=True,
    )
    columns: Names = _names(
        "variables to mask",
        "columns",
        "Variables; by default all numeric columns without another role, less those that look like codes "
        "or identifiers; repeatable.",
        page=True,
    )
    key: Names = _names(
        "columns that identify records",
        "key",
        "Column that identifies records, a direct identifier and no key variable (quasi-identifier); never "
        "masked; several (A,B or repeated) identify together.",
        metavar="A",
        page=True,
    )
    by: Names = _names(
        "columns whose values form strata",
        "by",
        {
            "": _STRATA.format("masked and measured by itself"),
            "evaluate": _STRATA.format("measured by itself, and with --made-by also masked by itself"),
        },
        metavar="A",
        page=True,
    )
    untouched: Names = _names(
        "columns published as they are", "untouched", "Columns published as they are; repeatable.", page=True
    )
    known: Names = _names(
        "what the intruder knows",
        "known",
        "What the intruder knows; repeatable.  [default: all published columns but --unknown ones]",
    )
    unknown: Names = _names(
        "published columns unknown to the intruder",
        "unknown",
        "Published columns unknown to the intruder, as weights; repeatable.",
        page=True,
    )
    confidential: Names = _names(
        "columns that the intruder wants to learn",
        "confidential",
        "Columns that the intruder wants to learn; repeatable.",
        page=True,
    )
    drop: Names = _names(
        "columns that are not published", "drop", "Columns that are not published; repeatable.", page=True
    )
    weights: str | None = _option(
        "name",
        DESCRIBES,
        "column of survey weights",
        "[roles] weights",
        "Column of survey weights; never masked.",
        metavar="A",
        page=True,
    )
    unit: str | None = _option(
        "name",
        DESCRIBES,
        "column of households, firms or persons",
        "[roles] unit",
        "Column of households, firms or persons; its values repeat.",
        metavar="A",
        in_memory=MEASURES,
        page=True,
    )
    recode: Table | None = _option(
        "recodings",
        ("describe", *MASKS),
        "how to coarsen columns that are not masked",
        "[recode]",
        "Coarsen a column that is not masked: age=5 (bands), income=round:100, town=rare:20 (merge rare "
        "categories), born=year, year:10, quarter or month; repeatable.",
        metavar="A=HOW",
        in_memory=("mask",),
        page=True,
    )
    rules: tuple[str, ...] | None = _option(
        "texts",
        COMMANDS,
        "rules of the records",
        "[rules] rule",
        {
            "": f"{_RULE}Masked records are corrected to satisfy it; repeatable.",
            "evaluate": f"{_RULE}The attacks use it, and masked records that break it are counted; "
            "repeatable.",
        },
        flag="--rule",
        metavar="TEXT",
        in_memory=EVALUATE,
        page=True,
    )
    scenario: dict[str, Any] | None = _option(
        "scenarios",
        ("evaluate", "recommend"),
        "other intruders",
        "[[scenario]]",
        "Another intruder who knows A and B only, and limits for him; repeatable.",
        metavar="NAME=A,B:RISK=LIMIT",
        in_memory=EVALUATE,
        page=True,
    )
    method: str = _option(
        "text",
        ("mask",),
        "how to mask",
        "[masking] method",
        "How to mask; see `sdckit methods`.",
        needed=("mask",),
        metavar="NAME",
        default="",
    )
    made_by: str | None = _option(
        "text",
        EVALUATE,
        "method that masked the file",
        "[masking] made_by",
        "Method that masked the file, with --set for its parameters; attacks use what it discloses.",
        metavar="METHOD",
    )
    made_by_command: str | None = _option(
        "text",
        EVALUATE,
        help="In place of a method, a command of your own that masks {input} and writes {output}, with "
        '{seed} for its draws, such as "Rscript {here}/mask.R {input} {output} {seed}"; {here} is here. '
        "The intruder runs it up to 80 times, without a shell, in a private folder; its output is discarded.",
        metavar="TEXT",
        in_memory=EVALUATE,
        unjobbed="no job file starts a program",
    )
    made_by_seconds: str | None = _option(
        "number",
        EVALUATE,
        help="Seconds that a run of --made-by-command may take.  [default: 60]",
        metavar="N",
        unjobbed="no job file starts a program",
    )
    settings: Table | None = _option(
        "settings",
        MEASURES,
        "parameters of the method",
        "[masking] set",
        "Parameter of the method; with --by also one for each stratum, k=north:5,south:3; repeatable.",
        flag="--set",
        metavar="NAME=VALUE",
    )
    window: str | None = _option(
        "number",
        EVALUATE,
        "largest move in ranks, a share of the records",
        "[masking] window",
        "Largest move in ranks, a share of the records, if the method is not one of `sdckit methods`.",
        metavar="SHARE",
    )
    stratified: bool = _option(
        "flag",
        EVALUATE,
        "each stratum was masked by itself",
        "[masking] stratified",
        "Each stratum of --by was masked by itself, so that the window counts ranks within it; default "
        "with --made-by.",
    )
    unstratified: bool = _option(
        "flag",
        EVALUATE,
        "the file was masked as a whole",
        "[masking] unstratified",
        "The file was masked as a whole, and strata of --by are only measured; default with --window.",
    )
    unpaired: bool = _option(
        "flag",
        EVALUATE,
        "rows stand for no original record",
        "[masking] unpaired",
        "Rows stand for no original record, as in synthetic data; measures that compare rows are left out.",
        in_memory=EVALUATE,
    )
    limits: Table | None = _option(
        "limits",
        ("evaluate", "recommend"),
        "largest risks allowed",
        "[search] max_risk",
        {
            "": f"Largest risk allowed, such as linkage=0.1; repeatable.{_SURE}",
            "evaluate": f"Largest risk allowed, such as linkage=0.1; repeatable.{_GATE}",
        },
        needed=("recommend",),
        flag="--max-risk",
        metavar="RISK=LIMIT",
        page=True,
    )
    loss_limits: Table | None = _option(
        "losses",
        ("evaluate", "recommend"),
        "largest losses allowed",
        "[search] max_loss",
        {
            "": f"Largest loss allowed, such as suppressed=0.01; repeatable.{_SURE}",
            "evaluate": f"Largest loss allowed, such as suppressed=0.01; repeatable.{_GATE}",
        },
        flag="--max-loss",
        metavar="LOSS=LIMIT",
        page=True,
    )
    minimise: str = _option(
        "text",
        ("recommend",),
        "loss to minimise",
        "[search] minimise",
        "Loss to minimise.",
        metavar="LOSS",
        default="brmae",
        page=True,
    )
    methods: tuple[str, ...] | None = _option(
        "texts",
        SEARCHES,
        "methods to try with their default grids",
        "[search] methods",
        "A method to try with its default grid, or all for every method; repeatable.",
        flag="--method",
        metavar="NAME",
        page=True,
    )
    grids: dict[str, Table] | None = _option(
        "grid",
        SEARCHES,
        "values to try, by method",
        "[search] grid",
        "Values to try: 2:30, 0.01:0.3:0.01 or 3,5,10; repeatable. A method alone has its default grid; "
        "without --grid and --method, the default methods are tried (see sdckit methods).",
        flag="--grid",
        metavar="METHOD.PARAMETER=VALUES",
    )
    plan: Path | None = _option(
        "path",
        ("sweep",),
        "file with the grids",
        "[search] plan",
        "A TOML file with the grids; see the reference.",
    )
    replications: str | None = _option(
        "number",
        SEARCHES,
        "draws of each random masking",
        "[search] replications",
        {
            "": "Runs of each random masking.  [default: 1]",
            "recommend": "Draws of each random masking; the median counts.  [default: 3; 1 above 20,000 "
            "records]",
        },
        metavar="N",
    )
    draws: str | None = _option(
        "text",
        ("sweep",),
        "common or fresh",
        "[search] draws",
        "common: a method's settings share random numbers; fresh: each has its own.  [default: common]",
        metavar="RULE",
    )
    workers: str | None = _option(
        "number",
        SEARCHES,
        "cores to use",
        "[search] workers",
        "Cores to use.  [default: all]",
        metavar="N",
    )
    metrics: Names = _option(
        "names",
        ("mask", "evaluate", "sweep"),
        "metrics",
        "[measures] metrics",
        "Metrics, all default ones if not given; see `sdckit metrics`; repeatable.",
        metavar="A,B",
    )
    ties: str = _option(
        "text",
        COMMANDS,
        "how equal values are ranked",
        "[measures] ties",
        "How equal values are ranked: average, expected, random, first, last, min or max.",
        default="average",
        metavar="RULE",
    )
    missing: str | None = _option(
        "text",
        COMMANDS,
        "rule for missing cells",
        "[measures] missing",
        {"": _MISSING.format("pairwise")} | dict.fromkeys(SEARCHES, _MISSING.format("penalise")),
        metavar="RULE",
    )
    sample_queries: str | None = _option(
        "number",
        ("evaluate", *SEARCHES),
        "records to estimate on",
        "[measures] sample_queries",
        {
            "": "Estimate linkage on N records drawn at random, each looked up among all others, with a 95 % "
            "interval.  [default: all records]",
            "recommend": "Judge settings by linkage estimated on N records at first, then on more until an "
            "interval settles the question; 0 looks up all. The file itself is measured in full.  [default: "
            "2048 of files above 20000]",
        },
        metavar="N",
    )
    known_share: str | None = _option(
        "number",
        EVALUATE,
        "share of the persons whom an intruder holds",
        "[measures] known_share",
        "Also tell how many persons are found by an intruder who holds the originals of this share of them "
        "only, such as 0.75; in files of at most 3,000 records.",
        metavar="SHARE",
        in_memory=EVALUATE,
    )
    estimates: tuple[str, ...] | None = _option(
        "texts",
        COMMANDS,
        "what users of the file compute",
        "[measures] estimates",
        'What users of the file compute, such as "total(turnover) by sector" or "model: y ~ log(x)": its '
        "loss is measured, too; repeatable.",
        flag="--estimate",
        metavar="TEXT",
        in_memory=MEASURES,
        page=True,
    )
    variables: bool = _option(
        "flag",
        ("evaluate", "sweep"),
        "also each variable",
        "[measures] variables",
        {"": "Also show every variable.", "sweep": "Also a row for each variable."},
    )
    together: bool = _option(
        "flag",
        EVALUATE,
        "linkage of several releases together",
        "[measures] together",
        "Linkage of several releases together, for an intruder who can align their records.",
        in_memory=EVALUATE,
    )
    detail: bool = _option(
        "flag",
        ("sweep",),
        "also random-order levels and tie ranges",
        "[measures] detail",
        "Also random-order levels and tie ranges; takes longer.",
    )
    no_measure: bool = _option(
        "flag",
        ("mask",),
        "only mask",
        "[measures] no_measure",
        "Only mask: print no loss and no risk; not with --release or --report.",
    )
    engine: str | None = _option(
        "text",
        MEASURES,
        "memory, local or spark",
        "[engine] engine",
        "memory; local: Parquet files or folders in blocks of rows; spark: the same on a cluster. Risks "
        "take both files into memory.  [default: memory, or local for Parquet that does not fit there]",
        metavar="NAME",
    )
    memory: str | None = _option(
        "text",
        MEASURES,
        "limit for the engine local",
        "[engine] memory",
        "Limit for --engine local, such as 4GB.  [default: what is at hand]",
        metavar="SIZE",
    )
    master: str | None = _option(
        "text",
        MEASURES,
        "address of a Spark cluster",
        "[engine] master",
        "Spark cluster, such as spark://host:7077.  [default: on this machine]",
        metavar="ADDRESS",
    )
    scratch: Path | None = _option(
        "path",
        MEASURES,
        "folder for intermediate files",
        "[engine] scratch",
        "Folder for intermediate files, which are removed; on Spark one that all workers see.  [default: the "
        "system's]",
        metavar="DIR",
    )
    output: Path = _option(
        "path",
        ("describe", *MASKS, "replay"),
        "the file, or of a sweep the folder, to write",
        "[output] output",
        {"": "File to write.", "sweep": "Folder for the results.", "describe": "Start a job file (.toml)."},
        needed=(*MASKS, "replay"),
        short="-o",
        page=True,
    )
    release: bool = _option(
        "flag",
        ("mask",),
        "a file that can be handed out; true unless it says false",
        "[output] release",
        "Write a file that can be handed out: rows shuffled, no key, fresh numbers of units.",
        in_memory=("mask",),
    )
    keep_order: bool = _option(
        "flag",
        RELEASES,
        "leave the rows in the order of the original",
        "[output] keep_order",
        "Leave the rows of the release in the order of the original; the figures count what that tells.",
        in_memory=("mask",),
        page=True,
    )
    numbered: str | None = _option(
        "text",
        RELEASES,
        "name of a column of fresh record numbers",
        "[output] numbered",
        "Add a column of this name with fresh numbers of the records, in an order that tells nothing.",
        metavar="NAME",
        in_memory=("mask",),
    )
    decimals: str = _option(
        "number",
        RELEASES,
        "decimals of masked cells",
        "[output] decimals",
        "Decimals of masked cells: a number, original for the usual step of the column (100 for a column of "
        "hundreds), or none to leave them unrounded.",
        metavar="N",
        default="original",
    )
    groups: str | None = _option(
        "text",
        ("mask",),
        "name of a column of group numbers",
        "[output] groups",
        "Add a column with the number of each record's group, under this name.",
        metavar="NAME",
        in_memory=("mask",),
    )
    calibrate: tuple[str, ...] | None = _option(
        "texts",
        RELEASES,
        "totals of the original that hold in the file",
        "[output] calibrate",
        "Change masked cells as little as possible so that a total of the original holds, such as "
        '"total(turnover) by sector"; repeatable.',
        metavar="TEXT",
        in_memory=("mask",),
    )
    form: str = _option(
        "text",
        ("sweep",),
        "parquet or csv",
        "[output] format",
        "parquet or csv.",
        flag="--format",
        metavar="NAME",
        default="parquet",
    )
    report: Path | None = _option(
        "path",
        COMMANDS,
        "HTML report",
        "[output] report",
        "Write a report: one HTML file that needs no network.",
        metavar="FILE",
        in_memory=MEASURES,
        page=True,
    )
    private: Path | None = _option(
        "path",
        (*REPORTS, "replay", "releases", "check"),
        "folder of the private record",
        "[private] private",
        "Folder of the private record of releases; keep it secret.  [default: in your state directory]",
        metavar="DIR",
        page=True,
    )
    crosswalk: Path | None = _option(
        "path",
        RELEASES,
        "original row of each published row",
        "[private] crosswalk",
        "Write the original row of each row of the release to a file for you alone; keep it secret.",
        metavar="FILE",
        in_memory=("mask",),
    )
    crosswalks: tuple[Path, ...] = _option(
        "paths",
        EVALUATE,
        "original row of each masked row",
        "[private] crosswalk",
        "The original row of each row of a shuffled release, as recommend and mask write it; one for each "
        "masked file.",
        flag="--crosswalk",
        metavar="FILE",
        in_memory=EVALUATE,
    )
    private_report: Path | None = _option(
        "path",
        REPORTS,
        "HTML report with exact statistics",
        "[private] private_report",
        "Write the report with exact statistics of the original and its hash, marked PRIVATE on every page; "
        "keep it secret.",
        metavar="FILE",
        in_memory=MEASURES,
        page=True,
    )
    folder: Path | None = _option(
        "path",
        ("recommend",),
        "folder for the runs of the search",
        "[private] folder",
        "Store finished runs: after Ctrl-C or a crash the same command resumes. Keep DIR secret: it holds "
        "the seed.",
        metavar="DIR",
        page=True,
    )
    records: Path | None = _option(
        "path",
        EVALUATE,
        "each record's risk and share of the losses",
        "[private] records",
        "Write each record's risk and share of the losses to a file for you alone; keep it secret.",
        in_memory=EVALUATE,
    )
    private_output: bool = _option(
        "flag",
        EVALUATE,
        "also figures that one record dominates",
        "[private] private_output",
        "With --json or --csv, also figures that one record dominates, from which its value follows; not for "
        "publication.",
    )

    seed: int | None = _option(
        "seed",
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
        "path",
        COMMANDS,
        help="Write these options to a job file (.toml), for sdckit run.",
        metavar="FILE",
        unjobbed="it names the job itself",
    )
    overwrite: bool = _option(
        "flag",
        (*DESCRIBES, "run", "replay"),
        help={
            "": "Replace output files that exist.",
            "describe": "Replace a job file that exists.",
            "replay": "Replace an output file that exists.",
            "sweep": "Delete what an earlier sweep left in the folder and start again.",
        },
        unjobbed="give it to sdckit run",
    )
    as_json: bool = _option(
        "flag", LISTS, help="Print JSON.", flag="--json", unjobbed="give it to sdckit run"
    )
    as_csv: bool = _option("flag", LISTS, help="Print CSV.", flag="--csv", unjobbed="give it to sdckit run")
    quiet: bool = _option(
        "flag",
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
    record = dict(one.metadata)
    flag, short = record["flags"]
    flag = flag or f"--{one.name.replace('_', '-')}"
    return Option(one.name, one.default, **record | {"flags": (flag, *([short] if short else ()))})


OPTIONS: dict[str, Option] = {one.name: _record(one) for one in fields(Request) if one.metadata}
JOB_OPTIONS = tuple(one for one in OPTIONS.values() if one.section)


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
