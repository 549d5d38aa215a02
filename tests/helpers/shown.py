"""What HTML of a notebook shows: its words, its tags, and small results that show themselves."""

from functools import cache
from html.parser import HTMLParser

import numpy as np
import polars as pl

import sdckit as sdc

HOSTILE = "<script>alert('x')</script><img src=x onerror=alert(1)>\""
TELLING = 987654.125  # an original value that nothing may show


class Shown(HTMLParser):
    """The tags, attributes and texts of a piece of HTML."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.texts = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.texts.append(data)

    @property
    def words(self):
        return " ".join(self.texts).split()


def data(rows=60):
    """A file of three variables, one with a hostile name, and one value that can be told."""
    draw = np.random.default_rng(1)
    numbers = draw.lognormal(8, 1, (rows, 3)).round(3)
    numbers[7, 0] = TELLING
    return pl.DataFrame(numbers, schema=["income", HOSTILE, "rent"]).with_columns(
        region=pl.Series([f"r{row % 3}" for row in range(rows)])
    )


ROLES = {"untouched": ["region"]}
SECRET = bytes(range(32))


@cache
def swept():
    plan = {"mdav": {"k": [3, 5]}, "noise": {"percent": [10, 40]}}
    return sdc.Microdata(data(), **ROLES).sweep(plan, metrics=["brmae", "linkage"], rng=3, workers=1)


@cache
def chosen():
    return swept().recommend({"linkage": 0.9})


@cache
def released():
    return chosen().release(entropy=SECRET)


@cache
def estimated():
    return sdc.estimates(data(), data().with_columns(pl.col("income") * 1.01), ["mean(income) by region"])


RESULTS = {
    "evaluation": lambda: released().evaluation,
    "choice": chosen,
    "release": released,
    "sweep": swept,
    "estimates": estimated,
    "methods": lambda: sdc.METHODS,
    "metrics": lambda: sdc.METRICS,
}
