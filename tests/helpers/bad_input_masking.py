"""What users get wrong about edit rules, groups, parameters by column or stratum, and unpaired rows."""

from bad_input import PEOPLE, evaluate, mask, text

ROLES = ["--columns", "income,age", "--drop", "id"]
SWEEP = ["sweep", "data.csv", "-o", "sweep", *ROLES, "--grid", "mdav.k=3"]
RECOMMEND = ["recommend", "data.csv", "-o", "out.csv", *ROLES, "--max-risk", "linkage=0.5"]


def ruled(*rules, command=None):
    return [*(command or mask()), *(word for rule in rules for word in ("--rule", rule))]


def setting(word, method, more=""):
    return [*mask(more, method=method), "--set", word]


MASKING_CASES = {
    "release without measures": (
        mask("--no-measure --release"),
        "--release is for a file that is handed out and must be measured; drop --no-measure",
    ),
    **{
        f"no measures and {words}": (
            mask(f"--no-measure {words}"),
            f"{words.split()[0]} is about measures, and --no-measure takes none; drop one of them",
        )
        for words in ("--report r.html", "--json", "--csv", "--metrics brmae", "--missing pairwise")
    },
    "rule of nothing": (ruled(""), "rule '' has no =, <= or >=; write it like 'A = B"),
    "rule in prose": (ruled("income is large"), "rule 'income is large' has no =, <= or >=; write it"),
    "rule with a strict sign": (ruled("age > 0"), "rule 'age > 0' is strict; use >= instead of >"),
    "rule without an end": (ruled("age >="), "rule 'age >=' cannot be read to its end; write it like"),
    "rule of products": (ruled("age = age*income"), "cannot be read at 'income'; write it like"),
    "rule on an unknown column": (
        ruled("age >= 0", "incom >= 0"),
        r"unknown column of an edit rule 'incom' \(did you mean 'income'\?\); choose from: id, region",
    ),
    "rule on text": (ruled("region <= 3"), "column 'region' is not numeric but text; convert it"),
    "rules that contradict each other": (
        ruled("age >= 0", "age >= 50", "age <= 20"),
        "no record can satisfy all of these rules: age >= 50; age <= 20; correct or drop one",
    ),
    "rule about nothing": (
        ruled("age = age"),
        "rule 'age = age' names no column, or its columns cancel out; write",
    ),
    "rule to measure by": (ruled("incom >= 0", command=evaluate()), r"edit rule 'incom' \(did you mean"),
    "groups of a method without": (
        mask("--groups g"),
        "noise forms no groups of records to number; choose from: mdav, ",
    ),
    "groups under a taken name": (
        mask("--groups region", method="mdav"),
        "column for group numbers cannot be named 'region', which is taken; choose another name",
    ),
    "groups under no name": (
        [*mask("--groups", method="mdav"), " "],
        "column for group numbers cannot be named '', which tables do not take; choose another name",
    ),
    "groups under the name of the whole file": (
        mask("--groups all", method="mdav"),
        "column for group numbers cannot be named 'all', which tables do not take; choose another name",
    ),
    "k by stratum without strata": (
        setting("k=north:3,south:4", "mdav"),
        "k is 'north:3,south:4' and there are no strata; give one number, or strata",
    ),
    "k lacks a stratum": (
        setting("k=north:3", "mdav", "--by region"),
        "k has no value for stratum 'south'; give one for each stratum",
    ),
    "k by stratum out of range": (
        setting("k=north:3,south:0", "mdav", "--by region"),
        "k is 0, out of range; give a number of at least 1",
    ),
    "k by stratum in words": (
        setting("k=north:3,south:many", "mdav", "--by region"),
        "k is 'many'; give a whole number of at least 1",
    ),
    "k larger than one stratum": (
        setting("k=north:3,south:6", "mdav", "--by region"),
        "stratum 'south' has 5 records, fewer than k = 6 of mdav; lower k or merge strata",
    ),
    "k for a stratum twice": (
        setting("k=north:3,north:4,south:3", "mdav", "--by region"),
        "k is 'north:3,north:4,south:3'; give a number for each name",
    ),
    "weight of a column that is not masked": (
        setting("variable_weights=weight:4", "mdav"),
        "unknown column in variable_weights 'weight'; choose from: income, age",
    ),
    "negative variable weight": (
        setting("variable_weights=income:-1", "mdav"),
        "variable_weights is -1, out of range; give a number of at least 0",
    ),
    "variable weight without a name": (
        setting("variable_weights=4", "mdav"),
        "variable_weights is '4'; give a number for each name, such as a:2,b:0.5",
    ),
    "limit without a column": (setting("above=2000", "top_bottom_code"), "above is '2000'; give a number"),
    "given everything": (
        setting("given=income,age", "shuffle"),
        "given names all 2 columns; leave at least one to shuffle",
    ),
    "pairs of a copula": (
        mask("--metrics brmae", method="copula"),
        "brmae needs paired rows and these are not; choose a metric such as ks",
    ),
    "pairs of a copula, before any work": (
        mask("--metrics brmae,dbrl", method="copula", data="no.csv"),
        "brmae, dbrl need paired rows and these are not; choose a metric such as ks",
    ),
    "linkage of a copula that nothing ties to records": (
        mask("--metrics brmae,linkage --drop id,region,weight", method="copula"),
        "linkage has no value where masked cells belong to no original record and neither an unmasked column",
    ),
    "pairs of unpaired files": (
        evaluate("--unpaired --metrics mae"),
        "mae needs paired rows and these are not; choose a metric such as ks",
    ),
    "records of unpaired files": (
        evaluate("--unpaired --records r.csv"),
        "--records compares rows, and by --unpaired they are not paired; drop one",
    ),
    "window of unpaired files": (
        evaluate("--unpaired --window 0.1"),
        "--window compares rows, and by --unpaired they are not paired; drop one",
    ),
    "records of a file whose rows are new": (
        evaluate("--made-by copula --records r.csv"),
        "--records compares rows, and by --made-by copula they are not paired; drop one",
    ),
    "window beside a method": (
        evaluate("--made-by rank_swap --window 0.1"),
        "--window follows from --made-by; drop one of them",
    ),
    "parameters of no method": (evaluate("--set p=0.1"), "--set needs a method; name it with --made-by"),
    "sweep without any value": (
        ["sweep", "data.csv", "-o", "sweep", *ROLES, "--method", "copula", "--metrics", "brmae"],
        "brmae needs paired rows and these are not; choose a metric such as ks",
    ),
    "search among unpaired methods": (
        [*RECOMMEND, "--method", "copula"],
        "rows of copula stand for no original record, so that no risk can be measured; name other methods",
    ),
    "too few records for the columns": (
        {"data.csv": text(PEOPLE.head(3))},
        mask(method="ipso"),
        r"the file has 3 records and ipso needs \d+ for these columns; take fewer columns",
    ),
    "too few records in a stratum": (
        {"data.csv": text(PEOPLE.tail(7))},
        mask("--by region", method="moment_preserving_noise"),
        "stratum 'north' has 2 records and moment_preserving_noise needs .*; take fewer columns or merge",
    ),
}
