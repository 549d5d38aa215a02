"""A small file with a searched job in the page, whose names are HTML: tests of the page share it."""

import json

import numpy as np
import polars as pl

from app_flow import give_role, go_on, search_to_its_end, try_only
from app_page import Served

EVIL = "<b class=evil>"
NAME = f"{EVIL}.csv"
PAY, REGION = f"{EVIL}pay", "region"


def small_file(path, records=200, seed=3):
    """Write persons with names, a region whose values are HTML, and three amounts; one is a sum."""
    rng = np.random.default_rng(seed)
    pay, rent = np.round(rng.lognormal(7, 0.6, records)), np.round(rng.lognormal(5, 0.5, records))
    table = {
        "name": [f"Person {i:04d}" for i in rng.permutation(records)],
        REGION: rng.choice([f"{EVIL}N", f"{EVIL}S"], records),
        PAY: pay,
        "rent": rent,
        "total": pay + rent,
    }
    pl.DataFrame(table).write_csv(path)


class Small(Served):
    """The page on the small file, after a search."""

    def __init__(self, browser, folder):
        self.data = folder / NAME
        small_file(self.data)
        super().__init__(browser, folder, NAME)
        here = self.first
        here.go("roles")
        give_role(here, "name", "key")
        give_role(here, REGION, "by")
        go_on(here, "rules")
        go_on(here, "goal")
        here.page.fill("#risk-linkage", "0.3")
        try_only(here, "mdav")
        go_on(here, "search")
        search_to_its_end(here)
        self.begin = self.job()

    @property
    def work(self):
        """The folder of the page beside the file."""
        return self.folder / f"{EVIL}-sdckit"

    def job(self):
        """The job as it is now, on disk."""
        return (self.work / "job.toml").read_text()

    def history(self):
        """The states on disk."""
        return json.loads((self.work / "history.json").read_text())

    def undo_all(self):
        """Undo what a test has changed."""
        here = self.tab()
        for _ in range(12):
            if self.job() == self.begin:
                break
            here.press("Undo")
        assert self.job() == self.begin
        here.page.close()
