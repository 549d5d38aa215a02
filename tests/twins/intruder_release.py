"""What the intruder is assumed to know: the roles of the columns, and what the method discloses of itself."""

import math
from dataclasses import dataclass, field

GROUPING = {"mdav", "vmdav", "pca_microaggregation", "blocked_mdav"}
RANKING = {"individual_ranking", "optimal_univariate"}
CODING = {"round_to", "top_bottom_code"}
KEEPS_ZEROS = {"zero_preserving_noise", "multiplicative_noise"}
KEEPS_ORDER = RANKING | CODING | {"resample"}
REPAIRS = {"shuffle", "sequential_shuffle", "ipso", "copula"}


@dataclass(frozen=True)
class Release:
    """Columns by role, and the relations that the method says hold between a record and its published one."""

    masked: tuple  # columns that the method changed
    untouched: tuple = ()  # published but not masked; published weights and strata are named here, too
    known: tuple | None = None  # replaces the default: all published columns but key and unit
    unknown: tuple = ()
    confidential: tuple = ()
    key: str | None = None
    unit: str | None = None
    by: tuple = ()  # strata that were masked one by one
    draws: bool = True  # False: the method drew nothing and can be run again
    one_by_one: bool = False  # the method treats each variable by itself
    re_paired: bool = False  # the masked cells of a row belong to no original row
    zeros: tuple = ()  # columns whose zeros the method keeps
    ordered: tuple = ()  # columns whose order the method keeps
    window: dict = field(default_factory=dict)  # column: largest move in ranks, or a list with one per record
    base: dict = field(default_factory=dict)  # column: base of rounding
    ruled: tuple = ()  # columns under edit rules: repair may move them out of window and base


def known_columns(release):
    """From a release, the set of columns that the intruder knows and may link by."""
    published = {*release.masked, *release.untouched}
    known = published if release.known is None else set(release.known) & published
    return known - {release.key, release.unit} - set(release.unknown) - set(release.confidential)


def known_masked(release):
    """From a release, the list of masked columns that the intruder knows, in the order of the release."""
    return [column for column in release.masked if column in known_columns(release)]


def known_untouched(release):
    """From a release, the list of untouched columns that the intruder knows, in the order of the release."""
    return [column for column in release.untouched if column in known_columns(release)]


def strata(original, release):
    """From the original table, a list with the tuple of stratum values of each record."""
    size = len(original[release.masked[0]])
    return [tuple(original[column][i] for column in release.by) for i in range(size)]


def share_window(original, release, column, share):
    """From a share p, the windows floor(p * observed cells of the stratum), one per record."""
    labels = strata(original, release)
    observed = [label for label, cell in zip(labels, original[column], strict=True) if cell is not None]
    return [math.floor(share * observed.count(label)) for label in labels]


def describe(original, method, parameters, masked, **roles):
    """From a method's name and parameters and the roles, the Release that an intruder can infer from them."""
    each = parameters.get("multivariate", "each") == "each"
    silent = method in GROUPING | RANKING | CODING or parameters.get("percent") == 0
    plain = Release(
        masked=tuple(masked),
        draws=not silent,
        one_by_one=method in RANKING | CODING and each,
        re_paired=method in REPAIRS,
        zeros=tuple(masked) if method in KEEPS_ZEROS else (),
        ordered=tuple(masked) if method in KEEPS_ORDER and each else (),
        base=dict.fromkeys(masked, parameters["base"]) if parameters.get("base") else {},
        **roles,
    )
    if method != "rank_swap" or "p" not in parameters:
        return plain
    window = {column: share_window(original, plain, column, parameters["p"]) for column in masked}
    return Release(**{**vars(plain), "window": window})
