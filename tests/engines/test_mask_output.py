"""Masked Parquet files: refusals before any work, the original's schema, whole or not at all, edit rules."""

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sdckit as sdc
from file_transport import engine
from masked_files import CUTS, NAMES, masked, survey
from sdckit.core.registry import METHODS
from sdckit.engines.local import LocalTransport
from sdckit.engines.masking import mask_files


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / "survey.parquet"
    survey(400).write_parquet(path)
    return path


def refused(file, target, method="noise", *, roles=None, parameters=None, **options):
    """The text of the error with which a masking is refused."""

    def unused(_source):
        pytest.fail("refused only after work has begun")

    given = {"columns": list(NAMES), "untouched": ["name", "area"], **(roles or {})}
    with pytest.raises((ValueError, TypeError, OSError)) as caught:
        mask_files(
            file,
            method,
            output=target,
            transport=options.pop("transport", unused),
            roles=given,
            parameters=parameters,
            **options,
        )
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_methods_that_need_the_whole_file_are_refused_by_name(file, tmp_path):
    others = [name for name, method in METHODS.items() if method.in_blocks is None]
    assert len(others) > 5
    for name in others:
        text = refused(file, tmp_path / "out.parquet", name)
        assert text.startswith(f"{name} needs the whole file in memory; methods that do not: mdav, ")


def test_requests_that_cannot_be_met_are_refused(file, tmp_path):
    out, run = tmp_path / "out.parquet", engine(blocks=3, bucket_rows=50)
    text = refused(file, out, "rank_swap", transport=run, parameters={"tails": 0.05, "r0": 0.9})
    assert text == "rank_swap takes tails, r0 in memory only; leave it out for larger files"
    text = refused(file, out, "top_bottom_code", transport=run, parameters={"multivariate": "distance"})
    assert "multivariate='distance' in memory only" in text
    text = refused(file, out, "mdav", transport=run)
    assert text.startswith(
        "mdav would form groups among 400 records at once, and 50 are the most here; use blo"
    )
    assert "rules are discovered in memory only" in refused(file, out, transport=run, rules="discover")
    assert "recode works in memory only" in refused(file, out, roles={"recode": {"name": "first:1"}})
    assert "no parameter 'k'" in refused(file, out, parameters={"k": 3})
    assert "fewer than k" in refused(file, out, "individual_ranking", transport=run, parameters={"k": 500})
    assert list(tmp_path.iterdir()) == []


def test_outputs_that_cannot_be_written_are_refused(file, tmp_path):
    (tmp_path / "there.parquet").write_text("mine")
    (tmp_path / "folder").mkdir()
    assert "exists already" in refused(file, tmp_path / "there.parquet")
    assert "exists already" in refused(file, tmp_path / "folder")
    assert "no folder" in refused(file, tmp_path / "none" / "out.parquet")
    assert "no folder" in refused(file, tmp_path / "none" / "out")
    assert "holds the original data" in refused(file, file, overwrite=True)
    assert "holds the original data" in refused(file, file.parent, overwrite=True)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    assert "which overwriting would remove" in refused(file, tmp_path / "mine", overwrite=True)
    assert (tmp_path / "mine" / "thesis.txt").exists()
    assert (tmp_path / "there.parquet").read_text() == "mine"


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt, OSError(28, "No space left on device"), ValueError("x")]
)
@pytest.mark.parametrize("target", ["out.parquet", "out"])
def test_nothing_is_left_after_an_error(file, tmp_path, monkeypatch, error, target):
    write, calls = pl.DataFrame.write_parquet, []

    def fails(self, *args, **options):
        calls.append(1)
        if len(calls) == 3:
            raise error
        return write(self, *args, **options)

    monkeypatch.setattr(pl.DataFrame, "write_parquet", fails)
    with pytest.raises((KeyboardInterrupt, OSError, ValueError)) as caught:
        masked(file, tmp_path / target, "noise", cut=CUTS[1])
    assert list(tmp_path.iterdir()) == []
    if isinstance(error, OSError):
        assert "no space left on device; free some space" in str(caught.value)


def test_an_output_is_replaced_if_asked_for(file, tmp_path):
    for target in ("out.parquet", "out"):
        first, _ = masked(file, tmp_path / target, "noise", rng=1)
        second, _ = masked(file, tmp_path / target, "noise", rng=2, overwrite=True)
        assert not second.equals(first)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "out.parquet"]


def test_a_folder_has_parts_in_the_order_of_rows(file, tmp_path):
    one, _ = masked(file, tmp_path / "out.parquet", "rank_swap", cut=CUTS[1])
    several, _ = masked(file, tmp_path / "out", "rank_swap", cut=CUTS[1])
    assert several.equals(one)
    assert len(list((tmp_path / "out").iterdir())) > 1


def test_types_and_nullability_are_those_of_the_original(tmp_path):
    n, rng = 300, np.random.default_rng(1)
    fields = [
        pa.field("key", pa.int64(), nullable=False),
        pa.field("small", pa.int16()),
        pa.field("single", pa.float32()),
        pa.field("price", pa.decimal128(12, 2)),
        pa.field("day", pa.date32()),
        pa.field("kind", pa.dictionary(pa.int32(), pa.string())),
    ]
    frame = pl.DataFrame(
        {
            "key": np.arange(n),
            "small": pl.Series(rng.integers(0, 500, n), dtype=pl.Int16),
            "single": pl.Series(rng.normal(size=n), dtype=pl.Float32),
            "price": pl.Series(rng.integers(100, 90_000, n)).cast(pl.Decimal(12, 2)),
            "day": pl.Series(rng.integers(0, 9000, n)).cast(pl.Date),
            "kind": pl.Series(rng.choice(["a", "b"], n)).cast(pl.Categorical),
        }
    )
    pq.write_table(frame.to_arrow().cast(pa.schema(fields)), tmp_path / "in.parquet")
    roles = {"columns": ["small", "single", "price"], "key": "key", "untouched": ["day", "kind"]}
    for target in ("out.parquet", "out"):
        made = mask_files(
            tmp_path / "in.parquet",
            "noise",
            transport=engine(blocks=4),
            output=tmp_path / target,
            rng=1,
            decimals="original",
            roles=roles,
        )
        found = pl.read_parquet(made.path)
        assert found.schema == pl.read_parquet(tmp_path / "in.parquet").schema
        assert found.select("key", "day", "kind").equals(frame.select("key", "day", "kind"))
        path = made.path if made.path.is_file() else next(made.path.iterdir())
        assert not pq.read_schema(path).field("key").nullable
    narrow = frame.with_columns((pl.col("small") % 100).cast(pl.UInt8))
    narrow.write_parquet(tmp_path / "narrow.parquet")
    text = refused(
        tmp_path / "narrow.parquet",
        tmp_path / "n.parquet",
        transport=engine(),
        roles={**roles},
        parameters={"percent": 300.0},
        decimals=0,
        rng=1,
    )
    assert text.startswith("column 'small' has masked values from -")
    assert "which UInt8 cannot hold" in text


def test_edit_rules_hold_record_by_record(tmp_path):
    rng = np.random.default_rng(5)
    parts = rng.integers(0, 400, (500, 2)).astype(float)
    frame = pl.DataFrame({"total": parts.sum(axis=1), "a": parts[:, 0], "b": parts[:, 1]})
    frame.write_parquet(tmp_path / "in.parquet")
    made = [
        mask_files(
            tmp_path / "in.parquet",
            "noise",
            transport=engine(blocks=blocks),
            decimals=0,
            rng=4,
            output=tmp_path / f"{blocks}.parquet",
            rules=["total = a + b", "a >= 0"],
            parameters={"percent": 50.0},
        )
        for blocks in (1, 13)
    ]
    one, other = (pl.read_parquet(found.path) for found in made)
    assert one.equals(other)
    assert one.filter((pl.col("total") != pl.col("a") + pl.col("b")) | (pl.col("a") < 0)).height == 0
    assert made[0].notes == made[1].notes
    assert made[0].notes[0].startswith("edit rules hold in every record (total = a + b; a >= 0): ")
    assert made[0].disclosure.rules is not None


def test_warnings_are_those_of_memory(tmp_path):
    frame = pl.DataFrame({"x": [1.0, 2.0, 3.0, 40.0] * 30, "s": ["a", "b"] * 60})
    frame.write_parquet(tmp_path / "in.parquet")
    options = {"rng": 1, "roles": {"columns": "x", "by": "s"}, "parameters": {"percent": 1e-9}, "decimals": 0}
    with pytest.warns(UserWarning, match="not masked, every value is as in the original") as ours:
        mask_files(
            tmp_path / "in.parquet", "noise", transport=engine(), output=tmp_path / "o.parquet", **options
        )
    with pytest.warns(UserWarning, match="not masked") as memory:
        sdc.Microdata(frame, columns="x", by="s").mask("noise", percent=1e-9, decimals=0, rng=1)
    assert str(ours[0].message) == str(memory[0].message)
    with pytest.warns(UserWarning, match="cells fell on a code of missing cells"):
        mask_files(
            tmp_path / "in.parquet",
            "round_to",
            transport=engine(),
            output=tmp_path / "c.parquet",
            roles={"columns": "x", "untouched": "s", "na": 0},
            parameters={"base": 10.0},
        )


@pytest.mark.parametrize("name", ["noise", "rank_swap", "individual_ranking", "blocked_mdav"])
def test_the_local_engine_writes_the_same_file(file, tmp_path, name):
    expected, _ = masked(file, tmp_path / "toy.parquet", name, by="area", decimals="original")
    made = mask_files(
        file,
        name,
        transport=lambda source: LocalTransport(source, scratch=tmp_path),
        output=tmp_path / "local.parquet",
        rng=5,
        decimals="original",
        roles={"columns": list(NAMES), "by": "area", "untouched": "name"},
    )
    assert pl.read_parquet(made.path).equals(expected)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["local.parquet", "toy.parquet"]
