"""One run of a sweep: mask the data with one setting, and evaluate the result."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit import masking
from sdckit.core import checks
from sdckit.core.randomness import stream_generator
from sdckit.core.settings import function_options
from sdckit.core.version import VERSION
from sdckit.metrics.evaluation import FIGURES, table_figures, whole_file_figures
from sdckit.metrics.pair import Pair
from sdckit.metrics.stratified_risk import score_within_strata

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sdckit.core.registry import Method, Metric
    from sdckit.kernels.jit import Floats, Ints
    from sdckit.metrics.original import Original
    from sdckit.metrics.score import Score
    from sdckit.rules.edits import Edits
    from sdckit.selection.checkpoint import Checkpoint
    from sdckit.selection.plan import Run, Setting


@dataclass(frozen=True)
class Stratum:
    """Records that are measured together and, where there are strata, masked together."""

    name: str
    original: Original
    rows: Ints | None = None  # None for the whole file
    bases: dict[str, Any] = field(default_factory=dict)

    def basis(self, method: Method) -> Any:
        """Return what the method precomputes from the original, computed once."""
        if method.name not in self.bases:
            self.bases[method.name] = method.basis(self.original.values) if method.basis else None
        return self.bases[method.name]

    def without_table(self) -> Stratum:
        """The same records without the table that they came from."""
        return Stratum(self.name, self.original.without_table(), self.rows)

    def paired(self, masked: Floats, setting: Setting, edits: Edits | None, *, alone: bool) -> Pair:
        """Return these records beside their masked values, with the published window where it applies."""
        width = None
        if alone or self.rows is not None:
            width = setting.disclosure.width(self.name, self.original.values, self.original.columns)
        return Pair(
            self.original,
            masked if self.rows is None else masked[self.rows],
            width,
            rules=None if edits is None else edits.public_rules,
        )

    def masked(self, setting: Setting, rng: np.random.Generator) -> Floats:
        """Return the masked values of these records."""
        method = setting.method
        return masking.apply(
            method,
            self.original.values,
            setting.options,
            rng,
            names=self.original.columns,
            basis=self.basis(method),
        )


@dataclass(frozen=True)
class Task:
    """Data and options that all runs of a sweep share."""

    whole: Stratum
    strata: Sequence[Stratum]
    metrics: Sequence[Metric]
    ties: str
    missing: str
    draws: str
    per_variable: bool
    detail: bool
    places: tuple[int, ...] | None = None  # decimals of each column in a release; None leaves them unrounded
    edits: Edits | None = None  # rules that masked records are made to obey

    @property
    def groups(self) -> list[Stratum]:
        """All groups that are measured, the whole file first."""
        return [self.whole, *self.strata]

    @property
    def variables(self) -> list[str]:
        """Rows of one metric and group: the whole file and, on request, each variable."""
        return ["all", *(self.whole.original.columns if self.per_variable else ())]

    @property
    def length(self) -> int:
        """How many numbers one run gives."""
        return len(self.metrics) * len(self.groups) * len(self.variables) * len(FIGURES)

    @cached_property
    def identity(self) -> dict[str, Any]:
        """Digest of everything that must be equal for finished runs to be used again."""
        original = self.whole.original
        digest = hashlib.sha256(repr(original.columns).encode())
        digest.update(original.by_variable.tobytes())
        digest.update(b"" if original.weights is None else original.weights.tobytes())
        for stratum in self.strata:
            digest.update(stratum.name.encode() + np.asarray(stratum.rows).tobytes())
        if self.edits is not None:  # rules also look at columns that are not masked
            digest.update(self.edits.values.T[~self.edits.free].tobytes())
        return {
            "data": digest.hexdigest(),
            "metrics": [metric.name for metric in self.metrics],
            "ties": self.ties,
            "missing": self.missing,
            "draws": self.draws,
            "per variable": self.per_variable,
            "detail": self.detail,
            "decimals": None if self.places is None else list(self.places),
            "rules": None if self.edits is None else list(self.edits.rules.texts),  # as JSON has them
            "version": f"sdckit {VERSION}, numpy {np.__version__}",
        }

    def suited(self, settings: Iterable[Setting]) -> list[Setting]:
        """Raise an error for settings that a run would refuse; of usual grids keep those the data allow.

        A method's own grid may ask for larger groups than a small file has, and nobody named them.
        """
        for metric in self.metrics:
            if metric.random and self.whole.original.weights is not None:
                checks.require_midranks_for_weights(str(metric.fixed_options.get("ties", self.ties)), True)
        left, refused = [], None
        for setting in settings:
            try:
                for stratum in self.strata or [self.whole]:
                    what = f"stratum {stratum.name!r}" if self.strata else "the file"
                    masking.enough_records(setting.method, stratum.original.values, setting.options, what)
                    function_options(setting.method, setting.options, stratum.original.columns)
                if (edits := self._edits(setting)) is not None:
                    edits.refuse_split_groups(setting.method)
            except ValueError as error:
                if not setting.usual:
                    raise
                refused = refused or error
            else:
                left.append(setting)
        if refused is not None and not left:
            raise refused
        return left

    def measure(self, run: Run, entropy: int) -> Floats:
        """Mask and measure; return a line of numbers."""
        rng = stream_generator(entropy, run.stream(self.draws))
        masked = self._masked(run.setting, rng)
        if self.places is not None:
            masked = np.asfortranarray(masking.rounded(masked, self.places))
        edits = self._edits(run.setting)
        if edits is not None:
            checks.require_representable(masked, self.whole.original.columns, run.setting.method.name)
            masked = edits.repaired(masked, self.places)
        options = {"ties": self.ties, "missing": self.missing, "rng": rng}
        pairs = [g.paired(masked, run.setting, edits, alone=not self.strata) for g in self.groups]
        if pairs[0].special_counts[1]:
            checks.require_representable(masked, self.whole.original.columns, run.setting.method.name)
        rows = run.setting.paired
        found = [self._figures(metric, pairs, options, rows=rows) for metric in self.metrics]
        return np.concatenate([np.ravel(line) for lines in found for line in lines])

    def _edits(self, setting: Setting) -> Edits | None:
        """Return the edit rules for a setting, whose parameters may keep some columns."""
        if self.edits is None:
            return None
        return self.edits.keeping(masking.kept_columns(setting.method, setting.options))

    def _figures(
        self, metric: Metric, pairs: list[Pair], options: dict[str, Any], *, rows: bool
    ) -> list[Any]:
        """Return the numbers of one metric for all groups; NaN where it does not apply."""
        scores: list[Score | None] = []
        for pair in pairs:
            try:
                fits = rows or not metric.paired
                scores.append(metric.score_with(pair, options, detail=self.detail) if fits else None)
            except checks.NotApplicable:
                scores.append(None)
        scores[0] = score_within_strata(metric, scores, pairs)
        none = np.full(len(self.variables) * len(FIGURES), np.nan)
        describe = table_figures if self.per_variable else whole_file_figures
        return [
            none if score is None else describe(pair, score)
            for pair, score in zip(pairs, scores, strict=True)
        ]

    def finished(self, run: Run, entropy: int, checkpoint: Checkpoint | None) -> Floats:
        """Measure a run and append it to the checkpoint."""
        values = self.measure(run, entropy)
        if checkpoint is not None:
            checkpoint.add(run.key, values)
        return values

    def without_table(self) -> Task:
        """The same task with nothing in it but numbers, to be sent to another process."""
        return replace(
            self,
            whole=self.whole.without_table(),
            strata=[part.without_table() for part in self.strata],
        )

    def _masked(self, setting: Setting, rng: np.random.Generator) -> Floats:
        if not self.strata:
            return self.whole.masked(setting, rng)
        masked = np.empty_like(self.whole.original.values)
        for stratum in self.strata:
            masked[stratum.rows] = stratum.masked(setting, rng)
        return masked
