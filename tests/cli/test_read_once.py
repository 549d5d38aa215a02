"""Each command prepares a file once: one original, one conversion of each file to a matrix."""

import polars as pl
import pytest

from command import ROLES as NAMED
from command import good, put, put_survey
from sdckit.core.table import Table
from sdckit.metrics.original import Original

RECOMMEND = ["recommend", "data.csv", "-o", "out.csv", "--max-risk", "linkage=0.9"]
RECOMMEND += ["--max-risk", "linkage_sure=1", "--grid", "mdav.k=2:4"]
COMMANDS = {
    "mask": ["mask", "data.csv", "-o", "out.csv", "--method", "mdav"],
    "evaluate": ["evaluate", "data.csv", "masked.csv"],
    "recommend": [*RECOMMEND, "--grid", "noise.percent=10:30:10", "--workers", "1"],
}
ROLES = [*NAMED, "--unknown", "weight"]  # else every record is found by its weight
LAST = ["--rule", "age >= 0", "--na", "-999"]  # what would read the file again


class Counted:
    """How often originals were built, and which columns of which table were converted to numbers."""

    def __init__(self, patch):
        self.originals, self.conversions = 0, []
        build, convert = Original.__init__, Table.floats

        def counting_build(original, *words, **more):
            self.originals += 1
            build(original, *words, **more)

        def counting_convert(table, columns, *words, **more):
            self.conversions += [(id(table.native), name) for name in columns]
            self.alive.append(table.native)  # so that no other table gets its id
            return convert(table, columns, *words, **more)

        self.alive = []
        patch.setattr(Original, "__init__", counting_build)
        patch.setattr(Table, "floats", counting_convert)

    @property
    def often(self):
        """The number of conversions of each column of each table."""
        return [self.conversions.count(one) for one in dict.fromkeys(self.conversions)]

    @property
    def tables(self):
        """The number of tables of which something was converted."""
        return len({table for table, _ in self.conversions})


@pytest.fixture
def counted(tmp_path, monkeypatch):
    frame = put_survey(tmp_path)
    put(tmp_path, "masked.csv", frame.with_columns(pl.col("income").reverse()).write_csv())
    return Counted(monkeypatch)


@pytest.mark.parametrize("report", [[], ["--report", "r.html"]])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_builds_one_original_and_reads_each_file_once(tmp_path, counted, command, report):
    good(tmp_path, *COMMANDS[command], *ROLES, *report)
    assert counted.originals == 1
    assert counted.tables == 2  # the original and the masked file
    assert set(counted.often) == {1}


def test_strata_are_built_once_for_search_and_release(tmp_path, counted):
    good(tmp_path, *COMMANDS["recommend"], *ROLES, "--by", "region", "--report", "r.html")
    assert counted.originals == 1 + 3  # the file and its strata
    assert set(counted.often) == {1}


def test_a_sweep_builds_one_original(tmp_path, counted):
    good(tmp_path, "sweep", "data.csv", "-o", "out", "--grid", "mdav.k=3:5", *ROLES, "--report", "r.html")
    assert (counted.originals, counted.tables, set(counted.often)) == (1, 1, {1})
