"""Results of commands as JSON."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from sdckit.core.exposed_records import exposed_content
from sdckit.core.version import INTRUDER_VERSION, VERSION

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from sdckit.cli.verdict import Verdict
    from sdckit.metrics.evaluation_result import Evaluation


def as_json(content: Any) -> str:
    """Return content as JSON text, with null for NaN."""
    return json.dumps(_json_ready(content), indent=2, ensure_ascii=False, allow_nan=False)


def _json_ready(content: Any) -> Any:
    """Return nested dicts and lists with None for NaN and text for infinite numbers."""
    if isinstance(content, dict):
        return {key: _json_ready(value) for key, value in content.items()}
    if isinstance(content, (list, tuple)):
        return [_json_ready(value) for value in content]
    if isinstance(content, float) and not math.isfinite(content):
        return None if math.isnan(content) else str(content)
    return content


def known_columns(result: Evaluation) -> Any:
    """Return the columns that the intruder is assumed to know, JSON-ready; None without a risk."""
    return None if result.knowledge is None else result.knowledge.to_dict()


def file_facts(n: int, original: Path, *masked: Path) -> dict[str, Any]:
    """Return what every JSON output begins with: versions, number of records, and names of files."""
    return data_facts(n, original) | {"masked": [path.name for path in masked]}


def data_facts(n: int, original: Path) -> dict[str, Any]:
    """Return the versions of the program and of its attacks, the number of records, and the file's name."""
    return {"version": VERSION, "intruder": INTRUDER_VERSION, "n": n, "original": original.name}


def evaluation_content(result: Evaluation, given: dict[str, Any]) -> dict[str, Any]:
    """Return the measures of one file as a JSON-ready dict."""
    from sdckit.estimation.guards import told_table  # noqa: PLC0415 - not needed for --help

    content: dict[str, Any] = dict(exposed_content(result.parts))
    content |= {"table": result.table.rows(named=True), "meaning": result.meaning, "parts": result.parts}
    others = {} if result.scenarios is None else {"scenarios": result.scenarios.rows(named=True)}
    if result.estimates is not None:
        told = told_table(result.estimates, private=bool(given.get("private_output")))
        others["estimates"] = told.rows(named=True)
    return content | {"knowledge": known_columns(result)} | others


def limits_content(verdicts: Sequence[Verdict], given: dict[str, Any]) -> dict[str, Any]:
    """Return the entry of a JSON output on limits, met or missed; empty without limits."""
    private = bool(given.get("private_output"))
    return {"limits": [one.to_dict(private=private) for one in verdicts]} if verdicts else {}
