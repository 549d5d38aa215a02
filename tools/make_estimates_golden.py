"""Write tests/estimation/golden.csv: estimates by R's survey, laeken and sandwich, and by statsmodels.

`python tools/make_estimates_golden.py FOLDER`, FOLDER with Tarragona.csv. Needs R with the packages survey,
laeken and sandwich, and a Python with statsmodels and pandas; the tests need none of them. The file has
numbers alone, no record.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import statsmodels
import statsmodels.api as sm

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent / "tests" / "helpers"))
from surveys import DESIGN, FINITE, survey  # noqa: E402 - from the folder above

TARGET = HERE.parent / "tests" / "estimation" / "golden.csv"
WEIGHTED = {"weights": "weight"}
DESIGNS = {
    "sample": [{}, WEIGHTED],
    "tarragona": [{}],
    "survey": [{}, WEIGHTED, {"weights": "weight", "strata": "stratum"}, DESIGN, FINITE],
}
ESTIMATES = {  # kind, columns, level, domains
    "sample": [
        *(("total", "turnover", "", "", by) for by in ("", "sector")),
        ("mean", "wages", "", "", "sector"),
        ("share", "profit > 0", "", "", "sector"),
        ("ratio", "wages", "employees", "", "sector"),
        ("quantile", "wages", "", "0.5", "sector"),
        ("quantile", "wages", "", "0.9", ""),
        ("correlation", "wages", "turnover", "", "sector"),
        ("gini", "wages", "", "", "sector"),
    ],
    "tarragona": [
        ("total", "SALES", "", "", ""),
        ("mean", "NET.PROFIT", "", "", ""),
        ("ratio", "LABOR.COSTS", "SALES", "", ""),
        ("quantile", "SALES", "", "0.5", ""),
        ("correlation", "SALES", "LABOR.COSTS", "", ""),
        ("gini", "SALES", "", "", ""),
    ],
    "survey": [
        *(("total", name, "", "", by) for name in ("income", "spending") for by in ("", "region")),
        *(("mean", name, "", "", "region") for name in ("income", "spending")),
        ("share", "income > 60", "", "", "region"),
        ("ratio", "spending", "members", "", "region"),
        *(
            ("quantile", "spending", "", level, by)
            for level in ("0.25", "0.5", "0.9")
            for by in ("", "region")
        ),
        ("correlation", "income", "spending", "", "region"),
        ("gini", "income", "", "", "region"),
    ],
}
LOGIT = "owner ~ log(income) + region"  # names of its coefficients in R and here
LOGIT_TERMS = {
    "(Intercept)": "Intercept",
    "log(income)": "log(income)",
    "regionsouth": "region[T.south]",
    "regionwest": "region[T.west]",
}
MODELS = {  # kind, formula for us, response, terms as columns
    "sample": [("model", "log(wages) ~ log(turnover) + sector", "log(wages)", ["log(turnover)", "sector"])],
    "tarragona": [
        ("model", "SALES ~ LABOR.COSTS + DEPRECIATION", "SALES", ["LABOR.COSTS", "DEPRECIATION"]),
    ],
    "survey": [
        ("model", "spending ~ income + members + region", "spending", ["income", "members", "region"]),
        ("logit", LOGIT, "owner", ["log(income)", "region"]),
    ],
}


def files(folder: Path) -> dict[str, pd.DataFrame]:
    weights = pd.read_csv(TARGET.with_name("golden_weights.csv"), comment="#")
    sample = pd.read_csv(HERE.parent / "src" / "sdckit" / "data" / "sample.csv").drop(columns="weight")
    sample = sample.merge(weights, on="firm")
    return {
        "sample": sample,
        "tarragona": pd.read_csv(folder / "Tarragona.csv"),
        "survey": pd.DataFrame(survey()),
    }


def label(kind: str, a: str, b: str, level: str, by: str) -> str:
    if kind == "quantile" and level == "0.5":
        kind, level = "median", ""
    inside = ", ".join(part for part in (a, b, level) if part)
    return f"{kind}({inside})" + (f" by {by}" if by else "")


def jobs(data: dict[str, pd.DataFrame]) -> pd.DataFrame:
    rows = []
    for name, designs in DESIGNS.items():
        for design in designs:
            for kind, a, b, level, by in ESTIMATES[name]:
                for domain in sorted(data[name][by].unique()) if by else [""]:
                    options = {role: design.get(role, "") for role in FINITE}
                    text = label(kind, a, b, level, by)
                    asked = {"kind": kind, "a": a, "b": b, "level": level, "by": by, "domain": domain}
                    rows.append(dict(file=name, **options, text=text, **asked))
    for weights in ("", "weight"):
        for term, own in LOGIT_TERMS.items():
            empty = dict.fromkeys(("strata", "unit", "population", "level", "by", "domain"), "")
            text = f"logit: {LOGIT} [{own}]"
            rows.append(
                dict(file="survey", weights=weights, text=text, kind="logit", a=LOGIT, b=term, **empty)
            )
    return pd.DataFrame(rows)


def by_r(data: dict[str, pd.DataFrame]) -> tuple[pd.DataFrame, str]:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name, table in data.items():
            table.to_csv(folder / f"{name}.csv", index=False)
        asked = jobs(data)
        asked.to_csv(folder / "jobs.csv", index=False)
        subprocess.run(["Rscript", HERE / "estimates_golden.R", folder], check=True)  # noqa: S603, S607 - ours
        answers = pd.read_csv(folder / "answers.csv", skipinitialspace=True)
        found = asked.assign(domain=asked["domain"].replace("", "all"))
        columns = [*("file", *FINITE, "text", "domain")]
        return pd.concat([found[columns], answers], axis=1), (folder / "versions.txt").read_text()


def column(table: pd.DataFrame, text: str) -> pd.DataFrame:
    name = text.removeprefix("log(").removesuffix(")")
    values = table[name]
    if values.dtype.kind not in "if":
        return pd.get_dummies(values, prefix=name, prefix_sep="[T.", drop_first=True, dtype=float).rename(
            columns=lambda one: f"{one}]"
        )
    with np.errstate(divide="ignore"):
        return (np.log(values) if text.startswith("log(") else values.astype(float)).rename(text).to_frame()


def by_statsmodels(data: dict[str, pd.DataFrame]) -> pd.DataFrame:
    rows = []
    for name, models in MODELS.items():
        for design in DESIGNS[name]:
            if set(design) == {"weights", "strata"} or "population" in design:
                continue  # models leave strata and the population aside
            for kind, formula, response, terms in models:
                if kind == "logit" and "unit" not in design:
                    continue  # statsmodels' HC1 of nonlinear models lacks the factor n / (n - p): by R
                table = data[name]
                whole = pd.concat([column(table, response), *(column(table, term) for term in terms)], axis=1)
                good = np.isfinite(whole).all(axis=1)
                y, x = whole.loc[good, [response]], sm.add_constant(whole.loc[good].drop(columns=response))
                weights = table.loc[good, design["weights"]] if design else pd.Series(1.0, index=y.index)
                fitted = fit(kind, y[response], x, weights, table.loc[good], design.get("unit"))
                options = {role: design.get(role, "") for role in FINITE}
                for term, value, se in zip(x.columns, fitted.params, fitted.bse, strict=True):
                    text = f"{kind}: {formula} [{'Intercept' if term == 'const' else term}]"
                    rows.append(dict(file=name, **options, text=text, domain="all", value=value, se=se))
    return pd.DataFrame(rows)


def fit(
    kind: str, y: pd.Series, x: pd.DataFrame, weights: pd.Series, table: pd.DataFrame, unit: str | None
) -> sm.regression.linear_model.RegressionResults:
    robust = {"cov_type": "HC1"}
    if unit:
        robust = {"cov_type": "cluster", "cov_kwds": {"groups": pd.factorize(table[unit])[0]}}
    if kind == "model":
        return sm.WLS(y, x, weights=weights).fit(**robust)
    return sm.GLM(y, x, family=sm.families.Binomial(), var_weights=weights).fit(
        tol=1e-14, maxiter=100, **robust
    )


def main() -> None:
    data = files(Path(sys.argv[1]))
    found, versions = by_r(data)
    both = pd.concat([found, by_statsmodels(data)])
    header = (
        f"# Made by tools/make_estimates_golden.py: {versions}; statsmodels {statsmodels.__version__}\n"
        "# survey: Taylor-linearised errors; svyquantile(interval.type = mean, qrule = math, df = Inf).\n"
        "# laeken: gini, differentiated numerically in the weights. sandwich: HC1 of logits.\n"
        "# statsmodels: WLS with HC1 or clustered errors, GLM with clustered errors.\n"
    )
    TARGET.write_text(header + both.to_csv(index=False, float_format="%.17g"), encoding="utf-8")


if __name__ == "__main__":
    main()
