"""Words, cells and bytes from which the fuzzer draws: sensible ones, and those that often break a program."""

from __future__ import annotations

from sdckit.core.registry import METRICS
from sdckit.masking import METHODS

PLAN = b"""replications = 2
draws = "fresh"
metrics = ["brmae", "il1:zeros=drop"]
key = "id"

[mdav]
k = "3:5"

[[rank_swap]]
p = "0.1:0.3:0.1"
start = "highest"
"""
JOB = b"""[input]
data = "data.csv"

[roles]
columns = ["income", "age"]
key = "id"
untouched = ["region"]
unknown = "weight"

[recode]
region = "rare:3"

[rules]
rule = ["income >= 0"]

[search]
max_risk = { linkage = 0.9 }
methods = ["mdav"]
grid = { noise = { percent = "100:200:50" } }
replications = 1
workers = 1

[output]
output = "out.csv"
"""
TOKENS = [
    *(
        token.encode()
        for token in [
            '"',
            ",",
            ";",
            "=",
            "[",
            "]]",
            "{",
            "#",
            "NA",
            "nan",
            "inf",
            "1e400",
            "-0",
            "''",
            "\u202e",
        ]
    ),
    b"9" * 30,
]
TOKENS += [b"\n", b"\r", b"\0", b"\t", b" ", b"\xff\xfe", b"\xef\xbb\xbf", b"\x1b[2J"]
NUMBERS = [0, 1, 255, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1]
CELLS = [
    None,
    0.0,
    -0.0,
    1.0,
    2.0,
    3.5,
    -7.0,
    1e308,
    -1e308,
    5e-324,
    1e-160,
    2.0**53,
    2.0**63,
    1e15,
    0.1,
    99.0,
]
CELLS += [float("inf"), float("nan"), -99.0, 1e16 + 2, 127.0, 255.0, 1e7, 42.42]
NAMES = ["income", "age", "region", "id", "weight", "income,age", "no", "", "region,region", "age,weight"]
WORDS = ["", " ", "x" * 3000, "9" * 30, "a\nb", "\x1b[2J", "\u202e", "noise.percent=10:30:10", *NAMES]
WORDS += [
    "0",
    "1",
    "-1",
    "0.5",
    "1e400",
    "nan",
    "inf",
    "5",
    "all",
    "none",
    "é",
    '"',
    "'",
    "=",
    "a=b=c",
    "k=3",
    "[1",
    "{",
    "-",
    "--",
    "linkage=0.5",
    "brmae",
    "mdav",
]
OUTPUTS = [
    "out.csv",
    "out.parquet",
    "out.dta",
    "out.sav",
    "out.xpt",
    "out.xyz",
    "",
    ".",
    "data.csv",
    "no/such.csv",
]
OUTPUTS += ["page.html", "folder", "data.csv/x.csv", "a" * 300 + ".csv", "\x1b.csv", "masked.csv"]
LISTS = {  # of words without blanks
    "settings": "k=3 k=0 k=1e9 percent=20 p=0.1 p=nan k=3.5 k bound=exclusive digits=2",
    "grids": "mdav.k=3:5 noise.percent=10:30:10 rank_swap mdav.k=5:3 mdav.k=1:9:0 x.y=1 mdav.k=",
    "limits": "linkage=0.5 linkage=1 linkage=0 linkage_outliers=0.9 brmae=1 linkage=nan interval=1",
    "loss_limits": "suppressed=0.1 brmae=1 brmae=0 linkage=1 brmae=-1",
    "replications": "1 2 0 x 1.5",
    "workers": "1 2 0 -1 x",
    "sample_queries": "10 0 all 1e3 x",
    "engine": "memory local none",
    "memory": "1GB 200MB 0GB x",
    "decimals": "0 2 original none -1 400 x",
    "recode": "age=5 age=10 region=1 income=top age= =5 age=0 age=nan",
    "scenario": "press=age,income:linkage=0.5 a=income a= = a=income:linkage=2 a=no:x=1",
    "seed": "1 0 -1 x 99999999999999999999",
    "encoding": "utf-8 latin-1 utf-16 rot13 nonsense idna hex",
    "form": "csv parquet x",
    "ties": "average expected random first min x",
    "missing": "pairwise penalise x",
    "draws": "common fresh x",
    "na": "-99 NA north nan",
    "window": "0.1 0 2 x",
    "known_share": "0.75 1 0 2 x",
    "made_by_seconds": "60 0 x",
}
POOLS = {name: words.split() for name, words in LISTS.items()}
POOLS |= {
    "delimiter": [",", ";", "\t", "ab", "", "\n", '"', "é"],
    "rules": ["income > 0", "income >= age", "income = ", "1/0", "income = age + weight", "(" * 200],
    "groups": ["g", "income", "", "a,b"],
    "minimise": [*METRICS, "x"],
    "metrics": [*METRICS, "brmae,linkage", "il1:zeros=drop", "brmae:ties=", "x"],
}
POOLS |= {name: [*METHODS, "x", ""] for name in ("method", "methods", "made_by")}
COLUMNS = ("columns", "known", "key", "by", "drop", "confidential", "untouched", "unit", "unknown", "weights")
POOLS |= dict.fromkeys(COLUMNS, NAMES)
