"""What users get wrong about recoding and `describe`."""

from bad_input import mask
from bad_input_masking import RECOMMEND, SWEEP


def recoded(*ways, command=None):
    return [*(command or mask()), *(word for way in ways for word in ("--recode", way))]


def describe(more):
    return ["describe", "data.csv", *more.split()]


NOTHING = "changes no cell: {}; give a larger number or leave it out"

RECODE_CASES = {
    "recoding without a way": (
        recoded("weight"),
        "--recode 'weight' has no name or no value; write NAME=VALUE",
    ),
    "recoding given twice": (recoded("weight=1", "weight=2"), "--recode gives 'weight' twice; give it once"),
    "recoding of an unknown column": (
        recoded("wieght=1"),
        r"unknown column 'wieght' \(did you mean 'weight'\?\); choose from: id, region",
    ),
    "recoding in an unknown way": (
        recoded("region=seldom:3"),
        "recoding of 'region' is 'seldom:3'; give a width",
    ),
    "bands of no width": (recoded("weight=0"), "recoding of 'weight' is '0'; give a number above 0"),
    "bands of text": (recoded("region=5"), "recoding 'region' by 5 needs a column of numbers; give another"),
    "years of text": (recoded("region=year"), "recoding 'region' by year needs dates; give another"),
    "rare categories of none": (
        recoded("region=rare:3"),
        "recoding 'region' by rare:3 " + NOTHING.format("every value has at least 3 records"),
    ),
    "rounding that fits no cell": (
        recoded("weight=0.5", command=SWEEP),
        "recoding 'weight' by 0.5 " + NOTHING.format("all values are such multiples"),
    ),
    "recoding of a masked column": (
        recoded("age=10", command=RECOMMEND),
        "column 'age' is recoded but also a variable; give it one role",
    ),
    "recoding of a dropped column": (
        recoded("region=rare:6", command=mask("--drop region")),
        "column 'region' is recoded but also dropped; give it one role",
    ),
    "describing an unknown column": (
        describe("--key idd"),
        r"unknown column 'idd' \(did you mean 'id'\?\); choose from: id, region",
    ),
    "describing a column in two roles": (
        describe("--key id --drop id"),
        "column 'id' is the key but also dropped; give it one role",
    ),
    "describing as two formats": (describe("--json --csv"), "--json and --csv exclude each other; give one"),
    "describing no file": (["describe", "dta.csv"], "no file 'dta.csv'; check"),
    "describing what is all dropped": (
        describe("--drop id,region,income,age,weight"),
        "all columns are dropped, so that nothing is left to publish; drop fewer",
    ),
    "describing a recoding that fits no cell": (
        describe("--recode region=rare:5"),
        "recoding 'region' by rare:5 " + NOTHING.format("every value has at least 5 records"),
    ),
}
