"""An intruder who tries seeds: what was masked with one is undone to the last digit, a release is not.

The attack needs nothing but the published file and this package: masking the published values themselves
with a guessed seed shows the noise that this seed draws.
"""

import json

import numpy as np
import polars as pl
import pytest

import sdckit as sdc
from command import good

SHARE = 0.5  # of a standard deviation is the noise, which is published
SEEDS = range(400)
SEED = 271
NAMES = ["a", "b", "c"]
MASK = ["mask", "data.csv", "-o", "out.csv", "--method", "noise", "--set", f"percent={100 * SHARE:g}"]


@pytest.fixture(scope="module")
def amounts():
    return np.random.default_rng(9).lognormal(7, 0.5, (300, 3)).round(2)


@pytest.fixture
def folder(tmp_path, amounts):
    pl.DataFrame(amounts, schema=NAMES).write_csv(tmp_path / "data.csv")
    return tmp_path


def noise_of(published, rng):
    """The standard normal numbers that a seed draws for a file of this shape."""
    masked = sdc.mask(published, "noise", percent=100 * SHARE, rng=rng)
    return (masked - published) / (SHARE * published.std(axis=0, ddof=1))


def undone(published, noise):
    """The original values, given the noise: they have the spread that scaled the noise."""
    found = np.empty_like(published)
    for j, (y, z) in enumerate(zip(published.T, noise.T, strict=True)):
        spread, common, own = np.var(y, ddof=1), np.cov(y, z)[0, 1], np.var(z, ddof=1)
        # The variance of y - scale z is (scale / SHARE)^2: a square equation for the scale.
        a, b = own - SHARE**-2, -2 * common
        scale = max(np.roots([a, b, spread]).real)
        found[:, j] = y - scale * z
    return found


def attack(published, generators):
    """The largest correlation of the noise of a guess with published values, and these values undone."""
    guesses = [noise_of(published, rng) for rng in generators]
    fit = [np.corrcoef(published[:, 0], noise[:, 0])[0, 1] for noise in guesses]
    best = int(np.argmax(fit))
    return fit[best], undone(published, guesses[best])


def test_a_working_copy_with_a_small_seed_is_undone(folder, amounts):
    good(folder, *MASK, "--seed", SEED, "--metrics", "brmae")
    fit, found = attack(pl.read_csv(folder / "out.csv").to_numpy(), SEEDS)
    assert fit > 0.3
    error = np.abs(found - amounts) / amounts.std(axis=0)
    assert error.max() < 0.001, "every cell within 0.1 % of a standard deviation"


@pytest.mark.parametrize("order", [[], ["--keep-order"]])
def test_a_release_is_not(folder, amounts, order):
    good(folder, *MASK, "--release", *order, "--metrics", "brmae")
    published = pl.read_csv(folder / "out.csv").to_numpy()
    fit, found = attack(published, SEEDS)
    assert fit < 5 / np.sqrt(len(amounts)), "within chance of the best of all guesses"
    found, known = (np.sort(one, axis=0) for one in (found, amounts))  # leave aside which row is whose
    assert np.median(np.abs(found - known) / amounts.std(axis=0)) > 0.01


def test_nor_by_entropy_that_is_made_of_a_small_number(amounts):
    """Fresh entropy is no number that a program counts, and no time at which it starts."""
    release = sdc.release(amounts, "noise", percent=100 * SHARE, keep_order=True, metrics="brmae")
    guesses = [number.to_bytes(32, order) for number in SEEDS for order in ("little", "big")]
    fit, _ = attack(release.data, (sdc_generator(guess) for guess in guesses))
    assert fit < 5 / np.sqrt(len(amounts))
    fit, found = attack(release.data, [sdc_generator(release.entropy)])
    assert fit > 0.3, "with the entropy itself the attack works"
    assert np.abs(found - amounts).max() < 0.02 * amounts.std()


def sdc_generator(entropy):
    """The generator of the first draw of a release."""
    from sdckit.core.randomness import draw_generator

    return draw_generator(entropy, 1)


def test_nothing_that_is_printed_or_written_has_the_entropy(folder, amounts):
    from unittest import mock

    from secret_bytes import entropy

    assert len(amounts)
    secret = entropy(5)
    with mock.patch("sdckit.core.randomness.fresh_entropy", return_value=secret):
        done = good(folder, *MASK, "--release", "--report", "out.html", "--json", "--crosswalk", "order.csv")
    assert "table" in json.loads(done.stdout)
    for content in (done.stdout.encode(), *(path.read_bytes() for path in folder.iterdir())):
        assert secret not in content
        assert secret.hex().encode() not in content.lower()
    release = sdc.release(amounts, "mdav", entropy=secret, metrics="brmae")
    assert release.entropy == secret
    assert secret.hex() not in repr(release)
    assert repr(secret) not in repr(release)
