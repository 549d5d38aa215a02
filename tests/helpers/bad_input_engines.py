"""What users get wrong about data read in blocks: the files, the command, what its one line must say."""

import polars as pl

from bad_input import parquet

RECORDS = pl.DataFrame(
    {
        "id": range(60),
        "region": ["north", "south"] * 30,
        "income": [100.5 + (37 * i) % 60 for i in range(60)],
        "age": [20 + (7 * i) % 50 for i in range(60)],
    }
)
MASKED = RECORDS.with_columns(pl.col("income") + pl.Series([0.5, -1.0] * 30))
HALVES = RECORDS[:30], RECORDS[30:]
WHOLE = parquet(RECORDS)
LOCAL = "--engine local --scratch scratch"
FILES = {
    "data.parquet": WHOLE,
    "masked.parquet": parquet(MASKED),
    "data.csv": RECORDS.write_csv(),
    "parts/a.parquet": parquet(HALVES[0]),
    "parts/b.parquet": parquet(HALVES[1]),
    "scratch/.keep": "",
}


def evaluate(more="", *, data="data.parquet", masked="masked.parquet", where=LOCAL):
    return f"evaluate {data} {masked} {where} {more}".split()


def mask(more="", *, data="data.parquet", output="out.parquet", method="noise", where=LOCAL):
    return f"mask {data} -o {output} --method {method} --key id {where} {more}".split()


def needs_memory(option):
    return f"--{option} needs all records in memory and the engine is local; drop it or use --engine memory$"


TWO_SCHEMAS = {"two/a.parquet": WHOLE, "two/b.parquet": parquet(RECORDS.cast({"age": pl.String}))}
TWO_TEXT = r"'two/a.parquet' has column 'age' as Int64 and 'two/b.parquet' has column 'age' as String; give"
AGAIN = {"again/a.parquet": parquet(HALVES[0]), "again/b.parquet": parquet(HALVES[0])}
DAMAGED = {"cut.parquet": WHOLE[:-100], "text.parquet": "income,age\n1,2\n"}
EXISTS = "exists already; choose another name or overwrite it \\(--overwrite\\)"
LIMIT = "a memory limit is for the engine local and the engine is"

ENGINE_CASES = {
    "two schemas": (TWO_SCHEMAS, evaluate(data="two"), TWO_TEXT),
    "two schemas to mask": (TWO_SCHEMAS, mask(data="two"), TWO_TEXT),
    "two schemas in memory": (TWO_SCHEMAS, evaluate(data="two", where="--engine memory"), TWO_TEXT),
    "key in two files": (
        AGAIN,
        evaluate("--key id", data="again"),
        "key 'id' repeats in 30 records of the original data; use a unique key",
    ),
    "key in two files to mask": (
        AGAIN,
        mask(data="again"),
        "key 'id' repeats in 30 records of the original data; use a unique key$",
    ),
    "key that is missing to mask": (
        {"data.parquet": parquet(RECORDS.with_columns(pl.col("id").replace({7: None})))},
        mask(),
        "key 'id' is missing in 1 record of the original data; complete it or drop these records$",
    ),
    "key in one file only": (
        {"masked.parquet": parquet(MASKED.with_columns(pl.col("id") + 1))},
        evaluate("--key id"),
        "key .id. does not match: 1 of 60 original records are not among the 60 masked ones; compare",
    ),
    "unknown engine": (evaluate(where="--engine lokal"), r"unknown engine 'lokal' \(did you mean 'local'"),
    "unknown engine to mask": (mask(where="--engine duckdb"), "unknown engine 'duckdb'; choose from: mem"),
    "a master here": (
        evaluate("--master spark://h:7077"),
        "a master is for the engine spark and the engine is local; leave one of them out",
    ),
    "no amount of memory": (evaluate("--memory much"), "memory is 'much'; give a number with MB, GB"),
    "an amount without unit": (mask("--memory 4"), "memory is '4'; give a number with MB, GB"),
    "too little memory": (
        evaluate("--memory 20MB"),
        r"memory is 20 MB, too little for this program and its rows; give at least \d+",
    ),
    "too little memory to mask": (mask("--memory 20MB"), "memory is 20 MB, too little .*; give at least"),
    "a limit in memory": (evaluate(where="--engine memory --memory 4GB"), f"{LIMIT} memory; leave"),
    "a limit on Spark": (mask(where="--engine spark --memory 4GB"), f"{LIMIT} spark; leave one"),
    "no scratch folder": (
        mask(where="--engine local --scratch no"),
        "no folder 'no' for .*; .* with --scratch$",
    ),
    "cut off": (DAMAGED, evaluate(data="cut.parquet"), r"'cut.parquet' is no whole Parquet file \(cut off"),
    "cut off and masked": (DAMAGED, evaluate(masked="cut.parquet"), "'cut.parquet' is no whole Parquet file"),
    "cut off to mask": (DAMAGED, mask(data="cut.parquet"), "'cut.parquet' is no whole Parquet file"),
    "text with the suffix": (DAMAGED, mask(data="text.parquet"), "'text.parquet' is no whole Parquet file"),
    "no such file": (evaluate(masked="msk.parquet"), "no file 'msk.parquet'; check its name"),
    "no such folder": (mask(data="prts"), "no file 'prts'; check its name"),
    "folder without Parquet": (mask(data="scratch"), "the folder 'scratch' holds no Parquet file; name"),
    "text in blocks": (
        evaluate(data="data.csv"),
        "'data.csv' is no Parquet file; write it as Parquet, or use --engine memory",
    ),
    "masked text in blocks": (evaluate(masked="data.csv"), "'data.csv' is no Parquet file; write it"),
    "text to mask in blocks": (mask(data="data.csv"), "'data.csv' is no Parquet file; write it"),
    "unequal numbers of rows": (
        evaluate(masked="parts/a.parquet"),
        "the masked data have 30 records, the original 60; give",
    ),
    "onto a file": (mask(output="masked.parquet"), f"'masked.parquet' {EXISTS}"),
    "onto a folder": (mask(output="parts"), f"'parts' {EXISTS}"),
    "onto the original": (mask("--overwrite", output="data.parquet"), "'data.parquet' holds the original"),
    "onto the original's folder": (
        mask("--overwrite", data="parts", output="parts"),
        "'parts' holds the original data; choose another name",
    ),
    "no folder for the output": (mask(output="no/out.parquet"), "no folder 'no' to write 'out.parquet'"),
    "a method for memory": (mask(method="copula"), "copula needs the whole file in memory; methods that"),
    "a metric for memory": (
        evaluate("--metrics brmae,pmse"),
        "pmse: the engine local reads blocks of rows; use --engine memory for these",
    ),
    "the same after masking": (mask("--metrics pmse"), "pmse: the engine local reads blocks of rows; use"),
    "random ranks": (evaluate("--ties random"), "ties='random' cannot be computed .* blocks; use expected"),
    "unpaired method": (evaluate("--made-by copula"), "takes no paired; leave it out or use --engine mem"),
    **{
        f"evaluate {words}": (evaluate(words), needs_memory(words.split()[0].strip("-")))
        for words in (
            "--report r.html",
            "--records r.csv",
            "--scenario press=age",
            "--crosswalk order.csv",
            "--unpaired",
            "--unit region",
            "--rule age>=0",
        )
    },
    "evaluate together": (evaluate("data.csv --together"), needs_memory("together")),
    **{
        f"mask {words}": (mask(words), needs_memory(words.split()[0].strip("-")))
        for words in ("--report r.html", "--release", "--groups group", "--recode age=5", "--unit region")
    },
    "measures of nothing": (mask("--no-measure --json"), "--json is about measures, and --no-measure"),
}
