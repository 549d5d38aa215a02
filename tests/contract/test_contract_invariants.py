"""What every method says that it keeps, as its registry record says it: a phrase without a check fails."""

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import sdckit as sdc
from calls import called
from cases import each, few
from contract import SHAPES, data, masked_by, needed, small, strong, suited
from invariants import Masked, check_cells_shared, check_group_sizes, check_window
from maskings import fails
from promises import DRAWS, PROMISES, read
from sdckit.core.registry import function_options, parameters_of

METHODS = sdc.METHODS
KEPT = [(name, phrase) for name, method in METHODS.items() for phrase in method.keeps]
SEEDS = (1, 2)
MADE = {}


@each(("name", "phrase"), KEPT)
def test_every_phrase_has_a_check_and_its_conditions_are_settings(name, phrase):
    words, _, _ = read(METHODS[name], phrase)
    assert words in PROMISES, f"no check for the promise {words!r}; write one, or use the words of another"


# --- settings: all that a promise leaves free ---


def tried(parameter):
    """Some values of a parameter: from its grid, all its choices, a column, or a number within its range."""
    if parameter.grid:
        return [parameter.kind(parameter.grid[i]) for i in (0, len(parameter.grid) // 2, -1)]
    if parameter.choices:
        return list(parameter.choices)
    if parameter.kind in (tuple, dict):
        return [("x1",) if parameter.kind is tuple else {"x1": 2.0}]
    low = parameter.low or 0
    return [parameter.kind(low + (parameter.high - low) / 4 if parameter.high is not None else low + 1)]


def settings_of(method, fixed):
    """Each parameter changed by itself, beside the defaults and what a promise asks for."""
    found = [fixed]
    for parameter in method.parameters:
        if parameter.name not in fixed:
            found += [fixed | {parameter.name: value} for value in tried(parameter)]
    return found


def fitting(method, values, options):
    """Options and columns that go with so few records, and None where no column is left to mask."""
    options = dict(options)
    if method.group_size:
        most = max(len(values) // 3, 2)
        options[method.group_size] = min(options.get(method.group_size, most), most)
    values = suited(method, values, options)
    named = [p.name for p in method.parameters if p.kind is tuple and options.get(p.name)]
    return (options, values) if values.shape[1] > 1 or not named else None


def outcome(name, options, shape, seed):
    """A masked file of this shape, made once for all promises that speak of it."""
    key = (name, repr(sorted(options.items())), shape, seed)
    if key not in MADE:
        found = fitting(METHODS[name], SHAPES[shape](), options)
        MADE[key] = None if found is None else masked_with(METHODS[name], found[1], found[0], seed)
    return MADE[key]


def masked_with(method, values, options, seed):
    values = np.asfortranarray(values)
    options = parameters_of(method, options)
    names = [f"x{j}" for j in range(1, values.shape[1] + 1)]
    taken = function_options(method, options, names)
    return Masked(
        values,
        masked_by(method, values, options, seed),
        taken,
        method.groups(values, **taken) if method.groups else None,
        method.window(options, values) if method.window else None,
    )


def outcomes(name, fixed, *, complete):
    """Masked files of every shape under every setting that is free."""
    method = METHODS[name]
    for shape in SHAPES:
        if complete and shape == "missing cells":
            continue
        for options in settings_of(method, fixed):
            for seed in SEEDS if method.random else SEEDS[:1]:
                masked = outcome(name, options, shape, seed)
                if masked is not None:
                    yield f"{name} {options} on {shape}, seed {seed}", masked


def kept(*, chance):
    """The promises that are exact, or those about chance."""
    known = [(name, phrase, PROMISES.get(read(METHODS[name], phrase)[0])) for name, phrase in KEPT]
    return [(name, phrase) for name, phrase, promise in known if promise and promise.chance == chance]


@pytest.mark.parametrize(("name", "phrase"), kept(chance=False))
def test_method_keeps_exactly_what_it_promises(name, phrase):
    words, fixed, complete = read(METHODS[name], phrase)
    count = 0
    for what, masked in outcomes(name, fixed, complete=complete):
        assert not fails(PROMISES[words].check, masked), f"{what}: {words}"
        count += 1
    assert count >= len(SHAPES) - 2


@each(("name", "phrase"), kept(chance=True))
def test_method_keeps_on_average_what_it_promises(name, phrase):
    method = METHODS[name]
    words, fixed, _ = read(method, phrase)
    values = data(400)
    for options in settings_of(method, fixed):
        draws = [masked_with(method, values, options, seed) for seed in range(DRAWS)]
        assert not fails(PROMISES[words].check, draws), f"{options}: {words}"


@pytest.mark.long
@pytest.mark.parametrize("name", METHODS)
@settings(max_examples=15)
@example(n=2, p=1, seed=0, digits=1)
@given(n=st.integers(2, 60), p=st.integers(1, 5), seed=st.integers(0, 2**32 - 1), digits=st.integers(-1, 3))
def test_promises_hold_on_any_complete_file(name, n, p, seed, digits):
    """With one digit before the point as with three behind it: with many ties and without any."""
    method = METHODS[name]
    values = np.round(data(n, p + 1, seed)[:, :p], digits)
    if needed(method, small(method), 1) > n:
        return
    options, values = fitting(method, values, small(method))
    masked = masked_with(method, values, options, seed)
    for words, fixed in [read(method, phrase)[:2] for phrase in method.keeps]:
        as_promised = all(method.defaults()[option] == value for option, value in fixed.items())
        if as_promised and not PROMISES[words].chance:
            assert not fails(PROMISES[words].check, masked), words


@each("name", METHODS)
def test_promises_hold_within_strata(name):
    method = METHODS[name]
    frame = pl.DataFrame(data(60), schema=["x1", "x2", "x3"]).with_columns(g=pl.Series(["p", "q", "p"] * 20))
    for words, fixed in [read(method, phrase)[:2] for phrase in method.keeps]:
        if PROMISES[words].chance:
            continue
        options = parameters_of(method, strong(method) | fixed)
        masked = called("mask", frame, name, by="g", rng=5, **options)
        for stratum in ("p", "q"):
            before, after = (t.filter(g=stratum).drop("g").to_numpy() for t in (frame, masked))
            assert not np.array_equal(before, after)
            window = method.window(options, before) if method.window else None
            found = Masked(before, after, function_options(method, options, ["x1", "x2", "x3"]), None, window)
            assert not fails(PROMISES[words].check, found), words


# --- what the registry knows beside phrases ---


def with_field(field):
    return [name for name, method in METHODS.items() if getattr(method, field) is not None]


@pytest.mark.parametrize("name", few(with_field("window"), 2))
def test_no_rank_moves_farther_than_the_window(name):
    for what, masked in outcomes(name, {}, complete=False):
        assert np.min(masked.window) >= 0
        assert not fails(check_window, masked), what


@pytest.mark.parametrize("name", with_field("group_size"))
def test_no_published_value_stands_for_fewer_than_a_group(name):
    method = METHODS[name]
    for what, masked in outcomes(name, {}, complete=False):
        renamed = masked._replace(options={"k": masked.options[method.group_size]})
        assert not fails(check_cells_shared, renamed), what
        if method.groups or method.largest_linkage:
            assert not fails(check_group_sizes, renamed), what


@pytest.mark.parametrize("name", with_field("largest_linkage"))
def test_no_linkage_finds_more_than_the_ceiling(name):
    method = METHODS[name]
    for shape in ("plain", "duplicates", "integers", "one column"):
        for k in (2, 3, 7):
            options = parameters_of(method, {method.group_size: k} if method.group_size else {})
            masked = masked_by(method, SHAPES[shape](), options)
            found = sdc.evaluate(SHAPES[shape](), masked, metrics=["dbrl", "linkage"])
            assert max(found["dbrl"], found["linkage"]) <= method.largest_linkage(options) + 1e-12, (shape, k)


def check_partition(masked):
    """Groups are numbered from 0 without a gap; every record is in one, empty ones if groups are alike."""
    assert masked.groups.dtype.kind == "i"
    alike = masked.options.get("gaps") == "alike" and masked.options["k"] > 1
    assert np.array_equal(masked.groups < 0, np.isnan(masked.before).all(axis=1) & (not alike))
    assert np.unique(masked.groups[masked.groups >= 0]).tolist() == [*range(masked.groups.max() + 1)]


def check_alike(masked):
    """Each group has one cell: the mean, or median, of all its values if these are enough; else none."""
    k, middle = masked.options["k"], {"mean": np.mean, "median": np.median}
    for old, new in zip(masked.before.T, masked.after.T, strict=True):
        for group in range(masked.groups.max() + 1):
            rows = masked.groups == group
            values = old[rows & ~np.isnan(old)]
            enough = values.size == rows.sum() or values.size >= max(k, 3)
            value = middle[masked.options.get("aggregate", "mean")](values) if enough else np.nan
            assert np.allclose(new[rows], value, rtol=1e-9, atol=0, equal_nan=True)
            assert len(set(new[rows].tolist())) == 1 or np.isnan(new[rows]).all()


def check_published(masked):
    """Cells of a group are equal; each is the mean, or median, of all cells in groups that publish it.

    They are k or more, or missing: all of the variable with `gaps="merge"`, else those of the group. With
    `gaps="alike"`, every record of a group has the same cell.
    """
    if masked.options.get("gaps") == "alike":
        check_alike(masked)
        return
    middle = {"mean": np.mean, "median": np.median}[masked.options.get("aggregate", "mean")]
    for old, new in zip(masked.before.T, masked.after.T, strict=True):
        seen = ~np.isnan(old)
        members = [seen & (masked.groups == group) for group in range(masked.groups.max() + 1)]
        values = np.array([new[rows][0] if rows.any() else np.nan for rows in members])
        merge = masked.options.get("gaps", "merge") == "merge"
        for value, rows in zip(values, members, strict=True):
            assert np.array_equal(new[rows], np.full(rows.sum(), value), equal_nan=True)
            if not rows.any():
                continue
            if np.isnan(value):
                assert (seen if merge else rows).sum() < masked.options["k"]
                continue
            behind = np.any([members[i] for i in np.flatnonzero(values == value)], axis=0) if merge else rows
            assert behind.sum() >= masked.options["k"]
            assert np.allclose(middle(old[behind]), value, rtol=1e-9, atol=0)


@pytest.mark.parametrize("name", with_field("groups"))
def test_groups_are_a_partition_of_what_is_published_together(name):
    method = METHODS[name]
    for what, masked in outcomes(name, {}, complete=False):
        known = method.function(masked.before, **masked.options, groups=masked.groups)
        assert np.array_equal(known, masked.after, equal_nan=True)
        published = masked._replace(options=masked.options | {"k": masked.options[method.group_size]})
        assert not fails(check_partition, masked), what
        assert not fails(check_published, published), what


# --- every check can fail ---


def example_of(words):
    """A masking that keeps a promise, and the same one broken."""
    promise = PROMISES[words]
    shape = {"linear relations between variables": "rank-deficient columns", "zeros": "zeros"}
    values = data(400) if promise.chance else SHAPES[shape.get(words, "plain")]()
    options = {"k": 4, "bins": 5, "given": (0,), "percent": 50.0, "base": 0.0, "bases": None}
    kept = Masked(values, values, options, window=5)
    kept = kept._replace(after=promise.good(kept))
    return promise, kept, kept._replace(after=promise.broken(kept))


@each("words", PROMISES)
def test_each_check_accepts_what_is_kept_and_refuses_what_is_broken(words):
    promise, kept, broken = example_of(words)
    if promise.chance:
        kept, broken = [kept] * 3, [broken] * 3
    assert not fails(promise.check, kept)
    assert fails(promise.check, broken)


def test_the_checks_of_means_and_covariances_see_either():
    _, kept, _ = example_of("means and covariances")
    check = PROMISES["means and covariances"].check
    assert fails(check, kept._replace(after=kept.before + 1e-6))
    assert fails(check, kept._replace(after=kept.before[::-1] * [1, 1, -1]))


def test_the_checks_of_order_see_a_single_pair():
    values = np.array([[1.0], [2.0], [2.0], [3.0]])
    for broken in ([1, 2.5, 2, 2.2], [2, 2, 2, 1]):
        masked = Masked(values, np.array(broken)[:, None], {})
        assert fails(PROMISES["order of each column, ties apart"].check, masked)
    apart = Masked(values, np.array([[1.0], [2.5], [2.0], [2.5]]), {})
    assert not fails(PROMISES["order of each column, ties apart"].check, apart)
    assert fails(PROMISES["order of each column"].check, apart)


def test_the_checks_of_groups_see_what_is_broken():
    values, groups = data(12), np.repeat([0, 1, 2], 4)
    means = np.repeat(values.reshape(3, 4, 3).mean(axis=1), 4, axis=0)
    masked = Masked(values, means, {"k": 4}, groups)
    for check in (check_partition, check_published, check_group_sizes):
        assert not fails(check, masked)
    for numbers in (groups * 2, np.where(groups == 2, -1, groups), groups.astype(float)):
        assert fails(check_partition, masked._replace(groups=numbers))
    assert fails(check_published, masked._replace(after=means + 1e-6))
    assert fails(check_published, masked._replace(options={"k": 4, "aggregate": "median"}))
    assert fails(check_group_sizes, masked._replace(options={"k": 5}))
    assert fails(check_group_sizes, masked._replace(groups=np.repeat([0, 1, 2], [3, 5, 4])))


def test_a_promise_is_read_with_its_conditions():
    method = METHODS["rank_swap"]
    phrase = "the values of each variable (tails=0, start=highest, complete data)"
    assert read(method, phrase) == (
        "the values of each variable",
        {"tails": 0.0, "start": "highest"},
        True,
    )
    assert read(method, "order of each column, ties apart")[1:] == ({}, False)
    with pytest.raises(ValueError, match="has no parameter 'sigma'"):
        read(method, "zeros (sigma=1)")
