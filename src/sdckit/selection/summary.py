"""What an office signs of a masked file: size, hash, method, rules, statistics, and what was not measured."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from sdckit.core import registry, settings
from sdckit.core.text import listed
from sdckit.metrics.statistics import Statistics, statistics_of

if TYPE_CHECKING:
    from sdckit.core.disclosure import Disclosure
    from sdckit.metrics.evaluation_result import Evaluation
    from sdckit.metrics.pair import Pair

POPULATION = (
    "How many records are unique in the population: uniques are counted in this file, which may be a sample."
)
ELSEWHERE = (
    "What other publications of the same records tell together with this file (sdckit evaluate --together)."
)
NO_METHOD = "The method that masked the file is not stated."


@dataclass(frozen=True)
class Summary:
    """A masked file as an office signs it.

    `method` is a sentence. `suppressed` has the number of suppressed cells of each variable, None where rows
    stand for no original record. `rules` are all edit rules in full. `not_measured` has sentences on what no
    figure covers. `original_sha256` is None in what is published: who knows all of a file but a few cells
    could try values for them until the hash fits. A `working_copy` has the key and the order of the
    original, and is not for publication.
    """

    file: str
    sha256: str
    date: str
    records: int
    variables: int
    method: str
    suppressed: dict[str, int] | None
    rules: tuple[str, ...]
    not_measured: tuple[str, ...]
    statistics: Statistics
    original_sha256: str | None = None
    working_copy: bool = False

    @property
    def private(self) -> bool:
        """True if the summary holds exact statistics of the original, which are never published."""
        return self.statistics.exact

    def to_dict(self) -> dict[str, Any]:
        """Return all of it, JSON-ready, with the statistics under a name of their own."""
        names = ("file", "sha256", "date", "records", "variables", "method", "suppressed", "working_copy")
        found = {name: getattr(self, name) for name in names}
        found |= {"rules": list(self.rules), "not_measured": list(self.not_measured)}
        if self.original_sha256 is not None:
            found["original_sha256"] = self.original_sha256
        return {"summary": found, "statistics": self.statistics.to_dict()}


def summary_of(
    pair: Pair,
    evaluation: Evaluation,
    *,
    file: str,
    sha256: str,
    original_sha256: str | None = None,
    working_copy: bool = False,
) -> Summary:
    """Return the summary of a masked file; a private one, with exact statistics, for a hash of the original.

    Parameters
    ----------
    pair : Pair
        Original and masked data.
    evaluation : Evaluation
        Their losses and risks.
    file, sha256 : str
        Name of the masked file without its folder, and its hash.
    original_sha256 : str, optional
        Hash of the original file.
    working_copy : bool
        The file is no release.

    Returns
    -------
    Summary
    """
    return Summary(
        file=file,
        sha256=sha256,
        date=datetime.now(UTC).date().isoformat(),
        records=pair.n,
        variables=pair.p,
        method=method_sentence(pair.disclosure),
        suppressed=suppressed_cells(pair),
        rules=() if pair.rules is None else pair.rules.texts,
        not_measured=tuple(_not_measured(pair, evaluation)),
        statistics=statistics_of(pair, exact=original_sha256 is not None),
        original_sha256=original_sha256,
        working_copy=working_copy,
    )


def suppressed_cells(pair: Pair) -> dict[str, int] | None:
    """Return the number of suppressed cells by variable; None where rows stand for no original record."""
    if not pair.disclosure.paired:
        return None
    return dict(zip(pair.columns, pair.counts.suppressed.tolist(), strict=True))


def method_sentence(disclosure: Disclosure) -> str:
    """Return a masking as one plain sentence: its title, all parameters, and what it does."""
    if not disclosure.method:
        return NO_METHOD
    method = registry.method_named(disclosure.method)
    usual = method.defaults()
    own = {name: value for name, value in disclosure.parameters.items() if value != usual.get(name)}
    shown = settings.parameters_text(
        own or {name: usual[name] for name in usual if usual[name] not in ((), {})}
    )
    title = method.title[0].upper() + method.title[1:]
    strata = f", within each group of {listed(disclosure.by)}" if disclosure.by else ""
    return (
        f"{title}{f' ({shown})' if shown else ''}: {method.summary[0].lower()}{method.summary[1:]}{strata}."
    )


def _not_measured(pair: Pair, evaluation: Evaluation) -> list[str]:
    """Return sentences on what no figure of an evaluation covers."""
    measured = {name.partition(":")[0] for name in evaluation.meaning}
    found = [POPULATION]
    unmasked = evaluation.knowledge.unmasked if evaluation.knowledge is not None else ()
    if unmasked:
        found.append(
            f"Perturbation of categories: {', '.join(unmasked)} "
            f"{'is' if len(unmasked) == 1 else 'are'} published as in the data, and no category was changed."
        )
    if "attribute" not in measured:
        found.append("What can be learnt of a confidential variable without finding a record.")
    if "linkage" not in measured:
        found.append("How many records can be linked to people.")
    if pair.weighted:
        found.append("Weighted statistics: those below count every record once.")
    return [*found, ELSEWHERE]
