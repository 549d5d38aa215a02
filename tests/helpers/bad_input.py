"""What users get wrong: the files, the command, and what its one line must say."""

import io

import polars as pl

PEOPLE = pl.DataFrame(
    {
        "id": [f"p{i}" for i in range(12)],
        "region": ["north"] * 7 + ["south"] * 5,
        "income": [
            1200.5,
            900.0,
            4100.25,
            2300.0,
            1750.5,
            3000.0,
            990.0,
            5100.0,
            870.0,
            1500.0,
            2600.0,
            700.0,
        ],
        "age": [23, 35, 61, 44, 29, 52, 38, 70, 19, 33, 47, 26],
        "weight": [1.5, 2.0, 1.0, 3.0, 2.5, 1.0, 1.0, 2.0, 4.0, 1.5, 2.0, 1.0],
    }
)
MASKED = PEOPLE.with_columns(pl.col("income") + 10)


def text(frame):
    return frame.write_csv()


def parquet(frame):
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()


def changed(**columns):
    return {"data.csv": text(PEOPLE.with_columns(**{name: pl.Series(v) for name, v in columns.items()}))}


def mask(more="", *, data="data.csv", output="out.csv", method="noise"):
    return [*f"mask {data} -o {output} --method {method} --columns income,age".split(), *more.split()]


def plain(more="", *, data="data.csv", method="noise"):
    return [*f"mask {data} -o out.csv --method {method}".split(), *more.split()]


def evaluate(more="", *, masked="masked.csv"):
    return [*f"evaluate data.csv {masked}".split(), *more.split()]


WEIGHTS = {
    "zero": [0.0, *PEOPLE["weight"][1:]],
    "negative": [-1.0, -2.0, *PEOPLE["weight"][2:]],
    "missing": [None, None, None, *PEOPLE["weight"][3:]],
}
NINE = ["", "", "", *["n"] * 9]

# What is wrong: files beside data.csv and masked.csv, if any, the command, what the line must say.
CASES = {
    "no such input": (mask(data="dta.csv"), "no file 'dta.csv'; check"),
    "no such masked file": (evaluate(masked="msk.csv"), "no file 'msk.csv'; check"),
    "folder as input": ({"in/x": ""}, mask(data="in"), "the folder 'in' holds no Parquet file; name"),
    "unsupported input": (
        {"data.doc": "x"},
        mask(data="data.doc"),
        "cannot read 'data.doc' by its suffix; use one of: .csv, ",
    ),
    "unsupported output": (mask(output="out.doc"), "cannot write 'out.doc' by its suffix"),
    "empty file": ({"data.csv": ""}, mask(), "'data.csv' is empty; give a file"),
    "header only": ({"data.csv": "income,age\n"}, mask(), "column names but no records; give"),
    "one record": ({"data.csv": "income,age\n1,2\n"}, mask(), "the data have 1 record; give at least 2"),
    "text column": (plain("--columns income,region"), "column 'region' is not numeric but text; convert"),
    "text because of NA": (
        changed(age=["NA", "NA", *map(str, PEOPLE["age"][2:])]),
        mask(),
        "'age' is read as text because of 'NA' in 2 cells; declare it with --na NA",
    ),
    "NA in every column": (
        {"data.csv": "a,b\n1,NA\nNA,3\n4,5\n"},
        plain(),
        "no numeric column left: column 'a' is read as text because of 'NA' in 1 cell; declare .* --na NA$",
    ),
    "prices": (
        changed(income=[f"$ {value}" for value in PEOPLE["income"]]),
        mask(),
        r"column 'income' is read as text because of '\$ 1200.5' and the like in 12 cells; write plain num",
    ),
    "unknown column": (plain("--columns incom"), r"unknown column 'incom' \(did you mean 'income'\?\)"),
    "unknown key": (mask("--key idd"), r"unknown column 'idd' \(did you mean 'id'\?\); choose from"),
    "no columns at all": ([*plain("--columns"), ","], "no numeric column left; name some"),
    "two roles": (mask("--weights age"), "column 'age' is a variable but also the survey weights"),
    "unknown method": (mask(method="mdaw"), r"unknown method 'mdaw' \(did you mean 'mdav'\?\)"),
    "unknown metric": (mask("--metrics brmaee"), r"unknown metric 'brmaee' \(did you mean 'brmae'\?\)"),
    "empty metrics": ([*evaluate("--metrics"), ""], "the list of metrics is empty; name at least one"),
    "unknown tie rule": (mask("--ties avrage"), r"unknown rule for ties 'avrage' \(did you mean 'average'"),
    "unknown tie rule, metrics without ties": (
        evaluate("--metrics mae --ties coin"),
        "unknown rule for ties 'coin'; choose",
    ),
    "unknown missing rule": (evaluate("--missing drop"), "unknown rule for missing cells 'drop'; choose"),
    "penalty without an end": (
        evaluate("--missing penalise --metrics mae,il1"),
        r"no metric here has a largest value \(mae, il1\), so missing cells have no penalty; add brmae",
    ),
    "unknown parameter": (mask("--set k=3"), "method 'noise' has no parameter 'k'; choose from: percent"),
    "parameter is no number": (mask("--set percent=ten"), "percent is 'ten'; give a number of at least 0"),
    "below the range": (mask("--set percent=-1"), "percent is -1, out of range; give a number of at least 0"),
    "above the range": (
        mask("--set p=1.5", method="rank_swap"),
        "p is 1.5, out of range; give .* from 0 to 1",
    ),
    "whole number wanted": (mask("--set k=2.5", method="mdav"), "k is '2.5'; give a whole number"),
    "unknown choice": (
        mask("--set scale=std", method="correlated_noise"),
        "unknown scale 'std'.*; choose from: sd, variance",
    ),
    "no sign in --set": (mask("--set percent"), "--set 'percent' has no name or no value; write NAME=VALUE"),
    "--set twice": (mask("--set percent=3 --set percent=4"), "--set gives 'percent' twice; give it once"),
    "decimals in words": (mask("--decimals two"), "decimals is 'two'; give 'original', None or a whole"),
    "seed of a file to hand out": (
        mask("--release --seed 20", method="mdav"),
        "--seed would let an intruder undo the release by trying seeds; drop it: the private record makes",
    ),
    "negative seed": (mask("--seed -4"), "the seed is below 0; give a whole number of at least 0"),
    "seed in words": (
        mask("--seed lucky"),
        "'--seed': 'lucky' is not a valid integer; see sdckit mask --help",
    ),
    "infinity": (
        changed(income=["inf", "-inf", *map(str, PEOPLE["income"][2:])]),
        mask(),
        "column 'income' has 2 infinite values; replace them",
    ),
    "infinity in the masked file": (
        {"masked.csv": text(MASKED).replace("1210.5", "Infinity")},
        evaluate("--key id"),
        "column 'income' has 1 infinite value; replace",
    ),
    "overflow": (
        changed(income=[1e308, -1e308, *PEOPLE["income"][2:]]),
        mask("--set percent=10000"),
        "column 'income' holds numbers too large for noise; divide",
    ),
    **{
        f"weights {kind}": (
            changed(weight=values),
            command_of(more),
            f"weights 'weight' have {n} values? missing or not above 0; correct",
        )
        for (kind, values), command_of, more, n in zip(
            WEIGHTS.items(), (mask, evaluate, mask), ["--weights weight"] * 3, (1, 2, 3), strict=True
        )
    },
    "text weights": (evaluate("--weights region"), "column 'region' is not numeric but text; convert it"),
    "weights with tie rule": (
        mask("--weights weight --ties first"),
        "weights go with ties='average' only, not 'first'; drop one",
    ),
    "repeated key": (
        changed(id=["p0", "p0", *PEOPLE["id"][2:]]),
        evaluate("--key id"),
        "key 'id' repeats in 1 record of the original data; use a unique key",
    ),
    "repeated key in masked": (
        {"masked.csv": text(MASKED.with_columns(id=pl.Series(["p0", "p0", *PEOPLE["id"][2:]])))},
        evaluate("--key id"),
        "key 'id' repeats in 1 record of the masked data",
    ),
    "keys that do not match": (
        {"masked.csv": text(MASKED.with_columns(pl.col("id").str.replace("p", "q")))},
        evaluate("--key id"),
        "key 'id' does not match: 12 of 12 original records.*; compare files",
    ),
    "record counts": (
        {"masked.csv": text(MASKED.head(9))},
        evaluate(),
        "masked data have 9 records, the original 12",
    ),
    "masked file lacks a column": (
        {"masked.csv": text(MASKED.drop("age"))},
        evaluate("--key id"),
        "the masked data have no column 'age'; they have: id, region",
    ),
    "masked column is text": (
        {"masked.csv": text(MASKED.with_columns(age=pl.Series(NINE)))},
        evaluate("--columns age"),
        "column 'age' is not numeric but text",
    ),
    "column without a value": (
        changed(age=[None] * 12),
        mask(),
        "column 'age' is not numeric but text; convert it or leave it out",
    ),
    "stratum smaller than k": (
        mask("--by region --set k=6", method="mdav"),
        "stratum 'south' has 5 records, fewer than k = 6 of mdav; lower k or merge strata",
    ),
    "stratum smaller than k, and a warning": (
        plain("--by region --key id --set k=6", method="mdav"),
        "stratum 'south' has 5 records, fewer than k = 6 of mdav; lower k or merge strata",
    ),
    "file smaller than k": (
        mask("--set k=13", method="individual_ranking"),
        "the file has 12 records, fewer than k = 13 of individual_ranking; lower k$",
    ),
    "ragged line": (
        {"data.csv": "income,age\n1,2\n3\n4,5\n"},
        mask(),
        r"line 3 of 'data.csv' has not as many cells as the header \(1, not 2\); correct",
    ),
    "line too long": (
        {"data.csv": "income,age\n1,2\n3,4,5\n"},
        mask(),
        r"line 3 of 'data.csv' has not as many cells as the header \(3, not 2\); correct",
    ),
    "open quotation mark": ({"data.csv": 'income,age\n1,"2\n3,4\n'}, mask(), "'data.csv'.*; check"),
    "repeated name": (
        {"data.csv": "age,income,age\n1,2,3\n4,5,6\n"},
        mask(),
        "two columns named 'age'; rename",
    ),
    "no name": (
        {"data.csv": ",income,age\n1,2,3\n4,5,6\n"},
        mask(),
        "column 1 of 'data.csv' has no name; name it",
    ),
    "undecodable": (
        {"data.csv": b"income,age,town\n1,2,K\xf6ln\n3,4,Bonn\n"},
        mask(),
        "'data.csv' is not utf-8 text at byte 21; set its encoding",
    ),
    "wide letters": (
        {"data.csv": "income,age\n1,2\n".encode("utf-16-le")},
        mask(),
        "holds zero bytes.*; set --enc",
    ),
    "unknown encoding": (mask("--encoding utf-9"), "unknown encoding 'utf-9'; use one that"),
    "long delimiter": (mask("--delimiter ::"), "delimiter '::' cannot be used; give one character"),
    "two uses of the comma": (
        mask("--decimal-comma --delimiter ,"),
        "delimiter ',' cannot go with a decimal comma; give another",
    ),
    "another delimiter": (
        {"data.csv": text(PEOPLE).replace(",", ";")},
        mask(),
        "has one column 'id;region.*; set the delimiter, such as --delimiter ';'",
    ),
    "cut-off parquet": (
        {"data.parquet": parquet(PEOPLE)[:-40]},
        mask(data="data.parquet"),
        "'data.parquet' is no whole Parquet file.*; copy or export it again",
    ),
    "list in parquet to CSV": (
        {"data.parquet": parquet(PEOPLE.with_columns(tags=pl.Series([["a"]] * 12)))},
        mask(data="data.parquet"),
        "column 'tags' of type List.* has no place in a CSV; drop it or write Parquet",
    ),
    "letter without a place": (
        {"data.parquet": parquet(PEOPLE.with_columns(town=pl.lit("Łódź")))},
        mask("--encoding latin-1", data="data.parquet"),
        "latin-1 has no 'Ł'; set --encoding utf-8",
    ),
    "output exists": (
        {"out.csv": "precious"},
        mask(),
        "'out.csv' exists already; choose another name or overwrite",
    ),
    "output is the input": (
        mask("--overwrite", output="data.csv"),
        "'data.csv' is the input file, which is never",
    ),
    "output is the input, spelt otherwise": (
        {"sub/x": ""},
        mask("--overwrite", output="sub/../data.csv"),
        "'sub/../data.csv' is the input file",
    ),
    "records into the masked file": (
        evaluate("--records masked.csv --overwrite"),
        "'masked.csv' is the input file, which is never changed",
    ),
    "no output folder": (mask(output="no/out.csv"), "no folder 'no' to write 'out.csv' into; create it"),
    "output below a file": (mask(output="data.csv/out.csv"), "could not write|no folder 'data.csv'"),
    "output is a folder": (
        {"out.csv/x": ""},
        mask("--overwrite"),
        "'out.csv' is a folder; name a file in it",
    ),
    "unknown option": (mask("--colour red"), "no such option:? '?--colour.*; see sdckit mask --help"),
    "missing option": (
        ["mask", "data.csv", "-o", "out.csv"],
        "missing option '--method'; see sdckit mask --help",
    ),
    "missing argument": (
        ["evaluate", "data.csv"],
        r"missing argument 'MASKED\.\.\.'; see sdckit evaluate --help",
    ),
    "option without value": (mask("--key"), "option '--key' requires an argument; see sdckit"),
    "unknown command": (["maks"], r"no such command 'maks'.*; see sdckit --help"),
    "two formats": (evaluate("--json --csv"), "--json and --csv exclude each other; give one"),
    "an option that is gone": (
        evaluate("--ranks"),
        "--ranks is gone: no table of ranks is made; write --variables --metrics rank_mae,brmae",
    ),
    "demo among other files": (
        {"full/x": "mine"},
        ["demo", "-o", "full"],
        "folder 'full' holds other files; choose",
    ),
    "demo into a file": (["demo", "-o", "data.csv"], "'data.csv' is a file; choose another folder"),
    "demo below a file": (
        ["demo", "-o", "data.csv/x"],
        "could not fill folder 'data.csv/x': not a directory; ch",
    ),
    "long integers": (
        changed(age=[2**53 + 2, *PEOPLE["age"][1:]]),
        mask(),
        r"column 'age' has integers beyond 2\*\*53, which lose digits; leave it out",
    ),
    "longer than any integer": (
        changed(age=[str(10**20), *map(str, PEOPLE["age"][1:])]),
        mask(),
        "'age' is read as text because of integers with more than 18 digits; name it as --key or drop it",
    ),
}
FULL_DISK = {
    "full disk": (mask(output="out.csv"), "could not write 'out.csv': file too large; raise the limit"),
    "full disk, parquet": (
        mask(output="out.parquet"),
        "could not write 'out.parquet': file too large; raise",
    ),
    "full disk, overwriting": (
        {"out.csv": "precious"},
        mask("--overwrite", output="./out.csv"),
        "could not write 'out.csv': file too large",
    ),
    "full disk, demo": (["demo"], "could not fill folder 'sdckit-demo': file too large; choose another"),
}
