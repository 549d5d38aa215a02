"""What each key of the JSON that commands print holds; the schemas and the reference take it from here."""

from __future__ import annotations

_FILES = {
    "version": "version of sdckit",
    "intruder": "version of the attacks; risks of two versions cannot be compared",
    "n": "number of records of the original",
    "original": "name of the original file",
    "masked": "names of the masked files",
    "notes": "warnings and remarks on the figures",
}
_DESCRIBED = {
    "columns": "one entry a column of the file",
    "column": "name of the column",
    "type": "type of its values",
    "role": "role that it has or would get",
    "reason": "why",
    "missing": "number of missing cells",
    "distinct": "number of distinct values",
    "unique": "number of values that occur once",
    "decided": "false if somebody has to name the role before a release",
    "floor_alone": "floor of the risk by this column alone, for known columns that are not masked",
    "floor_without": "floor of the risk without this column",
    "recodings": "recodings worth trying, with uniques and floor before and after",
    "steps": "a way to a floor of 0.05, by recoding and dropping one column after the other",
    "uniques": "share of the records that stand alone on the known untouched columns",
    "floor": "mean of 1 / class size on these columns: no masking of the others brings linkage below it",
    "options": "roles, given and proposed, by option",
}
_MEASURED = {
    "exposed": "number of exposed records: the intruder gives the true original a probability above 1/2; "
    "null where linkage_sure is not measured",
    "exposed_above_90": "number of those whose true original has a probability above 0.9",
    "table": "one entry a metric, variable and stratum",
    "metric": "name of the metric",
    "family": "loss or risk",
    "variable": 'name of the variable; "all" is the whole file',
    "stratum": 'name of the stratum; "all" is all records',
    "value": "measured value; null where it cannot be given",
    "random": "value that masked records in an unrelated order would have; null for metrics without one",
    "tie_low": "least value over all orders of equal values; null for metrics without one",
    "tie_high": "largest value over all orders of equal values; null for metrics without one",
    "ci_low": "lower end of the 95 % interval of a value that is estimated on a sample of records",
    "ci_high": "upper end of that interval",
    "n_used": "number of cells or records that the value is computed from",
    "n_left_out": "number of cells or records that are left out of it",
    "n_suppressed": "number of cells that the original has and the masked file lacks",
    "n_imputed": "number of cells that the masked file has and the original lacks",
    "n_both_missing": "number of cells that neither file has",
    "meaning": "a sentence that explains the value, by metric",
    "parts": "components of the value, by metric and name",
    "knowledge": "columns in lists: known and unknown to the intruder, and unmasked; null without a risk",
    "files": "measures of each file, by its name",
}
_LIMITS = {
    "limits": "limits, met or missed",
    "limit": "largest value allowed; null without a limit",
    "met": "true if every limit is met",
    "file": "name of the masked file",
    "scenarios": "with --scenario: one entry a scenario and risk",
    "scenario": "name of the intruder",
    "known": "columns that he knows",
}
_SUMMARY = {
    "summary": "what an office signs",
    "sha256": "SHA-256 of the masked file",
    "date": "day on which the file was measured (UTC)",
    "method": "how the file was masked, in words",
    "original_sha256": "SHA-256 of the original, in private output only",
    "records": "number of records of the masked file",
    "variables": "number of masked variables",
    "suppressed": "number of suppressed cells, by variable; null where rows stand for no original record",
    "working_copy": "true for a file that is not made to be handed out",
    "rules": "edit rules that the records satisfy",
    "not_measured": "sentences on what the figures leave out",
    "statistics": "statistics of each variable before and after masking",
    "exact": "true with --private-output; else figures of the original are rounded or withheld",
    "statistic": "name of the statistic",
    "before": "figure of the original; null where it is withheld",
    "after": "figure of the masked file",
    "step": "step to which the figure of the original is rounded; null for exact ones",
    "correlations": "correlations of the first twelve variables",
    "other": "name of the second variable",
}
_CHOICE = {
    "choice": "the masking that the search chose, or the nearest miss",
    "parameters": "parameters of the method",
    "values": "measured losses and risks, by metric",
    "default_limits": "names of the limits that have their default value",
    "minimise": "loss that the search makes least",
    "binding": "limits that the next weaker setting breaks",
    "maskings": "number of masked tables that were measured",
    "sentences": "the choice in words",
    "points": "all measured settings",
    "draws": "number of tables drawn until one met the limits",
}
TEXTS = _FILES | _DESCRIBED | _MEASURED | _LIMITS | _SUMMARY | _CHOICE
ESTIMATES = {
    "estimates": "with --estimate: one entry an estimate and domain; classes of change, or with "
    "--private-output exact figures",
    "estimate": "what is computed, as declared",
    "domain": 'values of the columns after "by"; "all" is all records',
    "original": "estimate of the original",
    "se_original": "its standard error",
    "masked": "estimate of the masked file",
    "se_masked": "its standard error",
    "change": "change in percent of the original, or its class in words",
    "change_in_se": "change in standard errors of the original, or its class in words",
    "overlap": "overlap of the 95 % intervals, from 0 to 1",
    "low_original": "lower end of the original's 95 % interval",
    "high_original": "upper end of the original's 95 % interval",
    "low_masked": "lower end of the masked file's 95 % interval",
    "high_masked": "upper end of the masked file's 95 % interval",
    "spread": "standard deviation of the masked estimate over replications; null without any",
    "se_inflated": "standard error that also counts the masking, from replications; null without any",
    "low_inflated": "lower end of the interval by that error",
    "high_inflated": "upper end of the interval by that error",
    "sign": "kept or changed",
    "significance": "kept, lost, gained or none",
    "records_original": "records behind the estimate of the original",
    "records_masked": "records behind the estimate of the masked file",
    "reason": "why something is absent",
    "withheld": "why no change is given; empty otherwise",
}
STATISTICS = {"variables": "one entry a variable and statistic"}
EACH_LIMIT = {"met": "true if this limit is met", "limit": "largest value allowed"}
EACH_SCENARIO = EACH_LIMIT | {"limit": "largest value allowed; null without a limit"}
OF_CHOICE = {
    "method": "name of the method; null without any",
    "reason": "why no setting meets the limits",
    "limits": "largest values allowed, by metric",
}
