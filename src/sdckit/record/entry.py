"""An entry of the private record."""

from __future__ import annotations

import hashlib
import json
import math
import platform
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from importlib import metadata
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from sdckit.core.cells import NUMBER, converted, polars_column
from sdckit.core.registry import method_named
from sdckit.core.roles import OF_COLUMNS
from sdckit.core.scenarios import Scenario, checked_scenarios
from sdckit.core.table import LARGEST_INTEGER, Table
from sdckit.core.text import shortened
from sdckit.core.version import VERSION
from sdckit.io.atomic import checksum
from sdckit.io.formats import Dialect
from sdckit.kernels.jit import digest_of_kernels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sdckit.arrays import UInt64s
    from sdckit.selection.release import ReleasePlan


PACKAGES = ("numpy", "numba", "llvmlite", "scipy", "polars", "randomgen", "pyreadstat", "scikit-learn")


def versions() -> dict[str, str]:
    """Return the versions of Python, of this package, and of those that its results depend on."""
    found = {"sdckit": VERSION, "python": platform.python_version()} | dict.fromkeys(PACKAGES, "none")
    for name in PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def cpu_features() -> list[str]:
    """Return the name of the CPU and the features for which kernels are compiled."""
    from llvmlite import binding  # type: ignore[import-untyped] # noqa: PLC0415 - only for releases

    found = binding.get_host_cpu_features()
    return [platform.machine(), *sorted(name for name in found if found[name])]


def differences(entry: Entry) -> list[str]:
    """Return what differs between now and the time of a release, in words; empty if nothing is known to."""
    now = versions()
    changed = [
        f"{name} {entry.versions.get(name, 'none')} then and {now.get(name, 'none')} now"
        for name in sorted({*now, *entry.versions})
        if now.get(name) != entry.versions.get(name)
    ]
    if digest_of_kernels() != entry.kernels:
        changed.append("other sources of kernels")
    features = set(cpu_features()) ^ set(entry.cpu)
    if features:
        changed.append(f"CPU features ({shortened(sorted(features))})")
    return changed


SIZE = 8  # bytes of a fingerprint: two of a million records share one with a chance below 1e-7
KEY, VALUES = "key", "values"  # what of a record a fingerprint is of


def fingerprints(table: Table, columns: Sequence[str], secret: bytes, purpose: str) -> UInt64s | None:
    """Return a number for each record that follows from a secret and some cells; None without the columns.

    Neither the order of the columns nor the type of a number counts: 1, 1.0 and "1" are equal.
    """
    if not columns or not set(columns) <= set(table.names):
        return None
    rows = np.column_stack([cell_numbers(table, name) for name in sorted(columns)])
    width, data = 8 * rows.shape[1], np.ascontiguousarray(rows).tobytes()
    person = purpose.encode()
    made = b"".join(
        hashlib.blake2b(data[start : start + width], digest_size=SIZE, key=secret, person=person).digest()
        for start in range(0, len(data), width)
    )
    return np.frombuffer(made, "<u8")


def cell_numbers(table: Table, name: str) -> UInt64s:
    """Return a number for each cell of a column, equal for equal cells, also in other files and types."""
    if table.frame is None:
        return _bits(table.floats([name])[:, 0])
    column = polars_column(table.column(name))
    if column.dtype.is_numeric() and not _beyond_floats(column):
        return _bits(column.cast(pl.Float64).fill_null(np.nan).to_numpy())
    known: dict[Any, int] = {}
    return np.array([_number(str(cell), known) for cell in _as_text(column)], np.uint64)


def _beyond_floats(column: pl.Series) -> bool:
    """Return True for integers that floats cannot tell apart."""
    if not column.dtype.is_integer():
        return False
    ends = [end for end in (column.min(), column.max()) if isinstance(end, int)]
    return any(abs(end) > LARGEST_INTEGER for end in ends)


def _as_text(column: pl.Series) -> list[Any]:
    """Return the cells of a column as texts, the empty one where a cell is missing."""
    cells = column.to_list()
    return ["" if cell is None or cell != cell else cell for cell in cells]  # noqa: PLR0124 - NaN


def _bits(values: Any) -> UInt64s:
    """Return the bits of floats; one number for both zeros, and one for every missing cell."""
    plain = np.where(np.isnan(values), np.nan, values + 0.0)
    return np.ascontiguousarray(plain, np.float64).view(np.uint64)


def _number(text: str, known: dict[Any, int]) -> int:
    """Return the number of a cell that is text: the bits of a float if it is one, else from a digest."""
    if text not in known:
        found = converted(text) if text else (NUMBER, np.nan)
        kind, value = found if found is not None else (NUMBER, np.nan)
        small = kind == NUMBER and not abs(float(value)) > LARGEST_INTEGER
        if small:
            known[text] = int(_bits(np.array([float(value)]))[0])
        else:
            digest = hashlib.blake2b(f"{kind} {text.strip()}".encode(), digest_size=SIZE).digest()
            known[text] = int.from_bytes(digest, "little")
    return known[text]


def digest_of_table(table: Table) -> str:
    """Return the SHA-256 digest of the names and cells of a table, whatever its type."""
    digest = hashlib.sha256()
    for name in table.names:
        digest.update(f"{len(name)} {name} {table.n}\n".encode())
        digest.update(cell_numbers(table, name).tobytes())
    return digest.hexdigest()


FORMAT = 1  # first version of the form of release.json
CALIBRATED = 2  # version with the totals of a calibrated release
CURRENT = 3  # version with original values, with who left and joined, and with the version of the intruder
ADDED = {  # fields that came later, by the first version that has them
    "calibrate": CALIBRATED,
    **dict.fromkeys(("originals", "moved", "intruder"), CURRENT),
}
REPEATED = (  # fields of the plan that decide the bytes of the file
    *("method", "parameters", "decimals", "groups", "keep_order", "numbered", "calibrate"),
)
EARLIER = {"gaps": "merge"}  # parameters with another default in version 0.1, which did not state it


class DamagedRecord(ValueError):  # noqa: N818 - the name says what is wrong
    """Error raised for a file of the private record that is not as it was written."""


@dataclass(frozen=True)
class Entry:
    """What is known of one release: how it was made, from what, and what was measured.

    `input` has name, SHA-256 digest (None for a table that was no file), digest of the cells, and number of
    rows; `output` has name, suffix, digest and rows. `draws` and `entropy` (as hexadecimal text) say which
    draw was released. `rules` are edit rules as given, `rules_in_full` with those that were discovered.
    `crosswalk`, `fingerprints` and `originals` have the digests of these files of the record. `calibrate` are
    totals that hold in the file. `moved` counts, for each earlier release, who left, joined and changed, and
    what both files tell of them. `intruder` is the version of the attacks that measured the risks. All values
    are plain JSON.
    """

    id: str
    time: str
    command: str
    job: dict[str, Any]
    input: dict[str, Any]
    output: dict[str, Any]
    method: str
    parameters: dict[str, Any]
    decimals: int | str | None
    groups: str | None
    keep_order: bool
    numbered: str | None
    draws: int
    entropy: str = field(repr=False)
    rules: list[str]
    rules_in_full: list[str]
    roles: dict[str, Any]
    recode: dict[str, str]
    na: list[float]
    dialect: dict[str, Any]
    limits: dict[str, float]
    scenarios: dict[str, Any]
    measured: list[dict[str, Any]]
    paired: bool
    versions: dict[str, str]
    kernels: str
    cpu: list[str]
    crosswalk: dict[str, str]
    fingerprints: dict[str, str]
    calibrate: list[str] = field(default_factory=list)
    originals: dict[str, str] = field(default_factory=dict)
    moved: list[dict[str, Any]] = field(default_factory=list)
    intruder: int = 1  # that of version 0.1, whose records do not state it

    def to_json(self) -> bytes:
        """Return the entry as JSON with the number of its format and a checksum over all the rest."""
        content = {"format": CURRENT} | asdict(self)
        text = json.dumps(content | {"checksum": checksum(content)}, indent=1, ensure_ascii=True)
        return f"{text}\n".encode()

    @classmethod
    def from_json(cls, data: bytes, name: str) -> Entry:
        """Return the entry in the bytes of the file `name`; raise `DamagedRecord` unless it is as written."""
        try:
            content = json.loads(data.decode("ascii"), object_pairs_hook=_unique)
            stated = content.pop("checksum")
            form = content.pop("format")
        except (ValueError, AttributeError, KeyError, TypeError, RecursionError) as error:
            raise damaged(name) from error
        if not isinstance(form, int) or checksum({"format": form} | content) != stated:
            raise damaged(name)
        if not FORMAT <= form <= CURRENT:
            raise ValueError(f"'{name}' has format {form} and this version reads {CURRENT}; update sdckit")
        if set(content) != {one.name for one in fields(cls) if ADDED.get(one.name, FORMAT) <= form}:
            raise damaged(name)
        content["parameters"] = _with_stated(content["method"], content["parameters"], EARLIER)
        return cls(**content)

    @property
    def entropy_bytes(self) -> bytes:
        """The entropy from which all draws of the release follow."""
        return bytes.fromhex(self.entropy)

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the masked columns."""
        return tuple(self.roles["columns"])

    @property
    def key(self) -> tuple[str, ...]:
        """Names of the columns that identify records."""
        return tuple(self.roles["key"])

    def prepare_options(self) -> dict[str, Any]:
        """Return the roles of columns as options of `prepare`."""
        return self.roles | {"recode": self.recode or None, "na": self.na or None}

    def plan_options(self) -> dict[str, Any]:
        """Return the options of the `ReleasePlan` from which the release can be masked again."""
        return {name: getattr(self, name) for name in REPEATED} | {"rules": self.rules or None}

    def read_dialect(self) -> Dialect:
        """Return how the input and the output are written, if they are text."""
        return Dialect(**self.dialect | {"missing": tuple(self.dialect["missing"])})

    def read_scenarios(self) -> tuple[Scenario, ...]:
        """Return the other intruders that were considered."""
        return checked_scenarios(self.scenarios or None)


def damaged(name: str) -> DamagedRecord:
    """Return the error for a file of the record that was changed, cut off or replaced."""
    return DamagedRecord(f"'{name}' is damaged: it is not as it was written; restore it from a copy")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object; raise ValueError if a name occurs twice in it."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name occurs twice")
    return found


def plain(value: Any, what: str) -> Any:
    """Return a value as JSON has it; raise ValueError for one that it cannot hold, such as a function."""
    if isinstance(value, Mapping):
        return {str(name): plain(one, what) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one, what) for one in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist(), what)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (str, int)):
        return value
    raise ValueError(f"{what} is a {type(value).__name__}, which no record can hold; give numbers or text")


def plan_entries(plan: ReleasePlan) -> dict[str, Any]:
    """Return those fields of a plan that decide what is masked and written.

    Parameters whose default has changed are stated, so that the file can be made again whatever it will be.
    """
    found = {name: plain(getattr(plan, name), f"{name} of the plan") for name in REPEATED}
    defaults = method_named(plan.method).defaults()
    found["parameters"] = _with_stated(plan.method, found["parameters"], defaults)
    return found


def _with_stated(method: str, parameters: dict[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters with those added, from `values`, whose default has changed since version 0.1."""
    known = method_named(method).defaults()
    stated = {name: values[name] for name in EARLIER if name in known and name not in parameters}
    return parameters | stated


def rule_texts(rules: Any) -> list[str]:
    """Return edit rules as texts; those that were parsed before in their normal form."""
    if rules is None:
        return []
    texts = getattr(rules, "texts", rules)
    return [texts] if isinstance(texts, str) else [str(text) for text in texts]


def role_entries(roles: Any) -> dict[str, Any]:
    """Return the roles of columns as options of `prepare`, the variables as `columns`."""
    found = {name: plain(getattr(roles, name), name) for name in OF_COLUMNS}
    return {"columns": list(roles.variables), **found}


def scenario_entries(scenarios: Any) -> dict[str, Any]:
    """Return scenarios by name, in the form that `evaluate` takes."""
    return {one.name: {"known": list(one.known), "max_risk": dict(one.limits)} for one in scenarios}


def dialect_entries(dialect: Dialect) -> dict[str, Any]:
    """Return the dialect of text files by the names of its fields."""
    return asdict(dialect) | {"missing": list(dialect.missing)}
