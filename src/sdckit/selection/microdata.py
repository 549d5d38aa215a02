"""Microdata: a table with the roles of its columns, stated once, and all that can be done with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from sdckit.core import checks, randomness
from sdckit.core.checks import collect_warnings
from sdckit.core.description import Description, describe_table
from sdckit.core.roles import OPTIONS, asked_roles, warn_of_masked_weights, warn_of_undecided
from sdckit.core.scenarios import (
    Intruder,
    checked_risk_limits,
    checked_scenarios,
    limits_of,
    with_sure_limit,
)
from sdckit.core.table import Table, is_path, is_spark_frame, names_of
from sdckit.engines.evaluation import evaluate_files
from sdckit.engines.masking import mask_data
from sdckit.engines.opening import Local, Settings, Spark, table_of
from sdckit.evaluation.measure import (
    Measuring,
    evaluate_tables,
    given_releases,
    metrics_for_columns,
    metrics_together,
    require_columns,
)
from sdckit.evaluation.result import Evaluation
from sdckit.io import files
from sdckit.io.atomic import AnyPath, check_target
from sdckit.io.files import Source  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.masking import mask_prepared
from sdckit.masking.disclosure import Disclosure, HasDisclosure, Method
from sdckit.metrics.original import HoldsOriginal, Original
from sdckit.metrics.score import sampling_of
from sdckit.progress import ProgressCallback, each, reported_to
from sdckit.risk.intruder import checked_known_share
from sdckit.selection.choice import Choice  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.selection.limits import check_loss_limits
from sdckit.selection.plan import runs_of, settings_of
from sdckit.selection.points import Conditions
from sdckit.selection.release import TRIES, Release, ReleasePlan, make_release, metrics_of_release
from sdckit.selection.runner import SWEEP, WorkerPool, opened, run_all
from sdckit.selection.search import Search
from sdckit.selection.sweep_result import Sweep, sweep_notes
from sdckit.selection.task import DRAWS, available_cores, chosen_metrics, make_task, results_table

MaskedBy = Method | Disclosure | HasDisclosure | Callable[[Any, np.random.Generator], Any]


class Microdata(HoldsOriginal):
    """A table of records with the roles of its columns: what `mask`, `evaluate`, `recommend` and others need.

    Roles are stated here and nowhere else. The data are never changed; what is computed from them, such as
    sorted columns, is kept for further calls.

    Parameters
    ----------
    frame : table, path or Spark DataFrame
        pandas, polars, pyarrow or numpy; a lazy frame or a DuckDB relation, which is collected; anything with
        the Arrow stream interface. Or the path of a file or of a folder of Parquet files, or a list of such
        paths; or a Spark DataFrame.
    columns : list of str, optional
        Variables, which are masked and measured; by default all numeric columns that have no other role, less
        those that look like codes or identifiers.
    key : str or list of str, optional
        Columns that identify records in the original and the masked file; they are never released. Without
        them, rows are paired by order.
    weights : str or array, optional
        Survey weights, all above 0.
    by : str or list of str, optional
        Columns whose values form strata: each is masked apart, and measured apart as well.
    na : number or list of numbers, optional
        Values that stand for a missing cell, such as -999.
    untouched : list of str, optional
        Columns that are published as they are; the intruder knows them unless they are `unknown`.
    known : list of str, optional
        All that the intruder knows of the people; by default every published column but `key` and `unit`.
    unknown : list of str, optional
        Published columns that the intruder does not know, such as survey weights.
    confidential : list of str, optional
        Columns that the intruder wants to learn and so does not know.
    unit : str, optional
        Column of households, firms or persons of a panel, whose values repeat. Masked variables that are
        constant within units stay so, and groups are formed of which no unit holds more than 1/k.
    drop : list of str, optional
        Columns that are not published.
    recode : dict, optional
        How columns that are not masked are coarsened when they are published, as in
        `{"age": 5, "town": "rare:20", "born": "year"}`; see `recode`. Risks compare with the original cells.
    estimates : list of str, optional
        What users of the file compute, such as `["total(turnover) by sector", "model: y ~ x"]`; see
        `estimates`. The losses `estimates` and `estimates_worst` say how much of it is lost.
    rules : text or list of text, optional
        What records satisfy, such as "total = wages + other", "total = a + b +- 2" or "age >= 0"; "discover"
        finds exact totals and columns without negative values. Masked records are changed as
        little as the rules ask for, and the intruder knows them.
    intruders : dict, optional
        Other intruders by name, each an `Intruder`. Evaluations measure their risks, and their limits are met
        together with all others.
    ties : str
        How equal values are ranked wherever it matters: see `brmae`.
    missing : str, optional
        "pairwise" leaves suppressed cells out of the losses; "penalise" counts each as the largest loss in
        losses that have one. By default "pairwise" in `evaluate` and `release`, "penalise" in `sweep` and
        `recommend`, so that settings that suppress much do not look cheap.
    engine : Local, Spark or str, optional
        Where to work on data that may not fit into memory: `Local()`, `Spark()`, or "memory", "local" or
        "spark". By default Spark for its DataFrames, local for Parquet files that do not fit into memory,
        else "memory". The engines local and spark have `evaluate` and `mask`.
    name : str
        What results call the data, such as the column `dataset` of a sweep.

    Examples
    --------
    >>> import sdckit as sdc
    >>> data = sdc.Microdata(sdc.load_sample(), key="firm", by="sector", weights="weight")
    >>> data
    Microdata(1000 records, 13 columns; key: firm; weights: weight; by: sector)
    >>> masked = data.mask("mdav", k=20)
    >>> result = data.evaluate(masked, made_by=sdc.Method("mdav", k=20), metrics=["brmae", "linkage"])
    >>> dict(result)
    {'brmae': 0.269..., 'linkage': 0.049...}
    """

    def __init__(  # noqa: PLR0913 - roles are stated here and nowhere else
        self,
        frame: Any,
        *,
        columns: str | Sequence[str] | None = None,
        key: str | Sequence[str] | None = None,
        weights: Any = None,
        by: str | Sequence[str] | None = None,
        na: Any = None,
        untouched: str | Sequence[str] | None = None,
        known: str | Sequence[str] | None = None,
        unknown: str | Sequence[str] | None = None,
        confidential: str | Sequence[str] | None = None,
        unit: str | None = None,
        drop: str | Sequence[str] | None = None,
        recode: Mapping[str, Any] | None = None,
        estimates: str | Sequence[str] | None = None,
        rules: str | Sequence[str] | None = None,
        intruders: Mapping[str, Intruder] | None = None,
        ties: str = "average",
        missing: str | None = None,
        engine: Local | Spark | str | None = None,
        name: str = "data",
    ) -> None:
        if isinstance(frame, Microdata):
            raise TypeError("the data are a Microdata, which has its roles; call its own method")
        given = (columns, key, weights, by, na, untouched, known, unknown, confidential, unit, drop, recode)
        self._roles: dict[str, Any] = dict(zip(OPTIONS, (*given, estimates), strict=True))
        if isinstance(frame, Original) and any(role is not None for role in self._roles.values()):
            raise TypeError("the data are prepared with their roles; state none again")
        self._where = Settings.named(engine)
        # Texts of warnings on undecided roles, None until they were issued; a command issues them itself.
        self._warned: list[str] | None = [] if isinstance(frame, Original) else None
        self.frame = frame
        self.rules = rules
        self.intruders = intruders
        self.ties = ties
        self.missing = missing
        self.name = name
        if not (is_path(frame) or is_spark_frame(frame) or isinstance(frame, Original)):
            self._asked()  # raises an error for roles that do not fit the table

    def __repr__(self) -> str:
        """Return the number of records and columns, and the roles that were stated; no cell."""
        apart = {"na", "recode", "estimates"}
        stated = {role: names_of(value) for role, value in self._roles.items() if value is not None}
        if not isinstance(stated_weights := self._roles["weights"], (str, int, type(None))):
            stated["weights"] = [f"{np.size(stated_weights)} numbers"]
        roles = [f"{role}: {', '.join(names)}" for role, names in stated.items() if role not in apart]
        if is_path(self.frame) or is_spark_frame(self.frame):
            held = "files" if is_path(self.frame) else "a Spark DataFrame"
        else:
            held = f"{self.table.n} records, {len(self.table.names)} columns"
        return f"Microdata({'; '.join([held, *roles])})"

    @cached_property
    def _source(self) -> Source | None:
        """The file that the data are in; None for tables and several files."""
        several = not is_path(self.frame) or isinstance(self.frame, (list, tuple))
        return None if several or Path(self.frame).is_dir() else files.read(self.frame)

    @cached_property
    def table(self) -> Table:
        """The table in memory; ValueError where the data are left on an engine."""
        engine = self._where.for_data(self.frame).engine
        if engine != "memory" and (is_path(self.frame) or is_spark_frame(self.frame)):
            raise ValueError(
                f"the data are on the engine {engine}, which has evaluate and mask only; "
                "use engine='memory' for all others"
            )
        return Table(table_of(self.frame) if self._source is None else self._source.frame)

    @cached_property
    def original(self) -> Original:
        """The prepared data: roles resolved, variables as numbers, columns sorted when first compared."""
        if isinstance(self.frame, Original):
            return self.frame
        return Original.of(self.table, **self._roles, warn=False)

    def _asked(self) -> Any:
        """Return the roles that were stated, checked against the table."""
        return asked_roles(self.table, **self._roles)

    def _announced(self) -> tuple[Original, list[str]]:
        """Return the prepared data, and the texts of warnings on undecided roles, which are issued once."""
        original = self.original
        if self._warned is None:
            self._warned = []
            with collect_warnings(self._warned):
                warn_of_undecided(original.roles.undecided)
                self._warn_of_masked_weights(original)
        return original, list(self._warned)

    def _warn_of_masked_weights(self, original: Original) -> None:
        """Warn of variables that look like weights, unless the variables were named or are an array's."""
        stated = isinstance(self.frame, Original) or self._roles["columns"] is not None
        if not stated and self.table.frame is not None:
            warn_of_masked_weights(original.columns)

    def _original_of(self, told: Sequence[Disclosure]) -> Original:
        """Return the prepared data with variables and strata of maskings, where these were not stated."""
        roles = dict(self._roles)
        for one in told:
            roles["by"] = _strata_columns(one, roles["by"])
        masked = tuple(dict.fromkeys(name for one in told for name in one.columns))
        if masked and roles["columns"] is None:
            try:
                same = masked == self.original.columns
            except ValueError:  # no column looks like a variable, and the masking names them
                same = False
            roles["columns"] = None if same else masked
        if all(roles[name] is self._roles[name] for name in ("by", "columns")):
            return self.original
        return Original.of(self.table, **roles, warn=False)

    def describe(self) -> Description:
        """Return what the columns look like, the roles they have or would get, and recodings worth trying.

        Returns
        -------
        Description
            It has no value of any cell.

        Examples
        --------
        >>> import sdckit as sdc
        >>> found = sdc.Microdata(sdc.load_sample(), weights="weight").describe()
        >>> found.table.filter(column="firm")["role"].item(), round(found.floor, 2)
        ('key', 0.01)
        """
        return describe_table(self.table, self._asked())

    def mask(
        self,
        method: str,
        *,
        rng: Any = None,
        decimals: int | str | None = None,
        groups: str | None = None,
        output: AnyPath | None = None,
        overwrite: bool = False,
        **parameters: Any,
    ) -> Any:
        """Mask the variables with a method of `sdc.METHODS`; everything else stays as it is.

        Other columns, names, index, order of rows and missing cells stay (but `sequential_shuffle` moves
        missing cells with their rows, and microaggregation fills or suppresses them by group). To hand a file
        out, use `release`. A method that is not paired (see `sdc.METHODS`) makes rows that stand for no
        original record; it is named in a warning where other columns of the table stay beside them.

        Parameters
        ----------
        method : str
            A name from `sdc.METHODS`.
        rng : None, int or numpy Generator
            None draws a fresh seed. Keep a seed secret: with it the masking can be undone. The engines local
            and spark draw the same numbers, others than in memory: each belongs to its cell.
        decimals : int or "original", optional
            Round masked cells; "original" to the step that 95 % of a column's values share, such as 100 or
            0.25. None does not round.
        groups : str, optional
            Name of a new column for the number of each record's group, where the method forms groups.
        output : path, optional
            Write the masked data there, whole or not at all; needed for files on an engine. One that ends in
            .parquet is one file; the engines local and spark make any other a folder of Parquet files.
        overwrite : bool
            Replace an output that exists.
        **parameters
            Parameters of the method, such as `k=5`; with strata also `k={"north": 5, "south": 3}`.

        Returns
        -------
        table, path or Spark DataFrame
            Of the type of the data; with `output`, its path. A Spark DataFrame without `output` reads files
            in `scratch` that are removed when Python ends.

        Examples
        --------
        >>> import sdckit as sdc
        >>> print(sdc.Microdata([1.0, 2.0, 30.0, 31.0]).mask("mdav", k=2))
        [ 1.5  1.5 30.5 30.5]
        """
        where = self._where.for_output(self.frame, output)
        if where.engine != "memory":
            roles = {role: value for role, value in self._roles.items() if role != "estimates"}
            options = {**roles, "rng": rng, "decimals": decimals, "rules": self.rules, "groups": groups}
            options |= parameters
            return mask_data(where, self.frame, method, options, output=output, overwrite=overwrite)
        if output is not None:
            check_target(output, overwrite)
        original, _ = self._announced()
        made = mask_prepared(
            original,
            method,
            rng=rng,
            decimals=decimals,
            rules=self.rules,
            groups=groups,
            parameters=parameters,
        ).data
        if output is None:
            return made
        table = Table(made)
        frame = pl.DataFrame(table.array, table.names) if table.frame is None else table.frame.to_polars()
        files.write(output, frame, source=self._source, overwrite=overwrite)
        return Path(output)

    def evaluate(
        self,
        masked: Any,
        *,
        made_by: MaskedBy | Sequence[MaskedBy] | Mapping[str, MaskedBy] | None = None,
        metrics: str | Iterable[str] | None = None,
        rows: Any = None,
        per_record: bool = False,
        together: bool = False,
        known_share: float | None = None,
        sample_queries: int | None = None,
        rng: Any = None,
        progress: ProgressCallback | None = None,
    ) -> Evaluation:
        """Measure the information loss and disclosure risk of a masked file, per variable and stratum.

        The result explains each number in a sentence.

        Parameters
        ----------
        masked : table, path, Release or dict
            The masked file, of any type that the data may have. A `Release` is measured with its disclosure
            and the order of its rows. Several files by name, as in `{"mine": frame, "theirs": frame}`, are
            measured one by one: the result is one table, with a column `file`, and one map.
        made_by : Method, Release, Disclosure or function, optional
            How the file was masked, as the intruder knows: `sdc.Method("mdav", k=5)`, a release, or a
            function that masks again (see `Method`). For several files a dictionary by their names, or one
            for all.
        metrics : list of str, optional
            Names from `sdc.METRICS`; by default those marked `default` that have a value for the data.
        rows : array of int, optional
            Number, from 0, of the original row of each masked one, as `release.rows` has it, where the rows
            were shuffled; for several files a dictionary by their names.
        per_record : bool
            Also give each record's share of every loss and risk.
        together : bool
            True if `masked` is a list of releases of the same records, which an intruder can align: the
            linkage of all of them together, never below that of one. `made_by` and `rows` are for all or
            lists. `intruders` are left out.
        known_share : float, optional
            Also tell in a note how many persons are found by an intruder who holds the originals of this
            share of them only, such as 0.75; in files of at most 3,000 records.
        sample_queries : int, optional
            Estimate linkage on so many records, drawn at random, each looked up among all others; the columns
            `ci_low` and `ci_high` have a 95 % interval. 0 looks up all records. So does None up to 20,000
            records and for methods that draw nothing; else it draws 5,000.
        rng : None, int or numpy Generator
            For `ties="random"`.
        progress : callable, optional
            Called as `progress(step, share done)` during the work; the share rises from 0 to 1.

        Returns
        -------
        Evaluation

        Examples
        --------
        >>> import sdckit as sdc
        >>> data = sdc.Microdata([1.0, 2.0, 3.0, 4.0])
        >>> data.evaluate([1.0, 2.0, 4.0, 3.0], metrics="brmae")["brmae"]
        0.25
        >>> both = {"mine": [1.0, 2.0, 4.0, 3.0], "theirs": [4.0, 3.0, 2.0, 1.0]}
        >>> dict(data.evaluate(both, metrics="brmae"))
        {'brmae (mine)': 0.25, 'brmae (theirs)': 1.0}
        """
        if isinstance(masked, Mapping):
            more: dict[str, Any] = {"metrics": metrics, "per_record": per_record, "together": together}
            more |= {"known_share": known_share, "sample_queries": sample_queries, "rng": rng}
            with reported_to(progress):
                return self._evaluate_files(masked, made_by, rows, **more)
        sampling, share = sampling_of(sample_queries), checked_known_share(known_share)
        for what, given in {"sample_queries is": sampling, "known_share is": share}.items():
            if together and given:
                raise ValueError(f"{what} for one release and together is True; leave one of them out")
        releases = given_releases(masked, made_by, rows, together=together)
        where = self._where.for_data(self.frame, masked)
        if where.engine != "memory":
            one = releases[0]
            options: dict[str, Any] = self._roles | {"metrics": metrics, "ties": self.ties}
            options |= {"missing": self.missing or "pairwise", "sample_queries": sample_queries}
            options |= {"rows": rows if one.masked is masked else one.rows, "per_record": per_record}
            options |= {"scenarios": self.intruders, "together": together, "known_share": share}
            options |= {"rules": self.rules, "disclosure": one.disclosure, "method": one.method}
            return evaluate_files(where, self.frame, one.masked, options, progress)
        how = partial(
            Measuring.of,
            metrics_together(metrics) if together else metrics,
            ties=self.ties,
            missing=self.missing or "pairwise",
            per_record=per_record,
            rng=rng,
            scenarios=() if together else checked_scenarios(self.intruders),
            sampling=sampling,
            every=sample_queries is not None and sampling is None,
            known_share=share,
        )
        told = [one.disclosure for one in releases if one.disclosure is not None]
        original = self._original_of(told)
        if not any(one.columns for one in told):
            self._warn_of_masked_weights(original)
        return evaluate_tables(
            original,
            [one._replace(masked=table_of(one.masked)) for one in releases],
            how,
            rules=self.rules,
            together=together,
            progress=progress,
        )

    def _evaluate_files(
        self, masked: Mapping[str, Any], made_by: Any, rows: Any, **options: Any
    ) -> Evaluation:
        """Return the evaluation of several masked files, by name, as one."""
        if options["together"]:
            raise ValueError(
                "the files have names and together is True; give them in a list, or leave it out"
            )
        if not masked:
            raise ValueError("there is no masked file; give at least one by its name")
        for given, what in ((made_by, "made_by"), (rows, "rows")):
            if isinstance(given, Mapping):
                checks.require_known(list(given), list(masked), f"file of {what}")
        if rows is not None and not isinstance(rows, Mapping):
            raise TypeError("rows are of one file and there are several; give a dictionary by their names")
        results = {}
        for name, one in each("measuring", list(masked.items())):
            method = made_by.get(name) if isinstance(made_by, Mapping) else made_by
            order = None if rows is None else rows.get(name)
            results[str(name)] = self.evaluate(one, made_by=method, rows=order, **options)
        return Evaluation.of_files(results)

    def sweep(
        self,
        plan: Any = None,
        *,
        metrics: str | Iterable[str] | None = None,
        replications: int = 1,
        draws: str = "common",
        per_variable: bool = False,
        detail: bool = False,
        sample_queries: int | None = None,
        rng: Any = None,
        workers: int | None = None,
        folder: str | Path | None = None,
        overwrite: bool = False,
        progress: ProgressCallback | None = None,
    ) -> Sweep:
        """Mask the data with many settings and measure each: methods x parameter grids x replications.

        The same seed gives the same table, whatever the number of workers and however often the sweep
        was stopped and continued. `intruders` are left out: `recommend` measures them.

        Parameters
        ----------
        plan : dict, optional
            Methods with the grids of their parameters, as in `{"mdav": {"k": range(2, 31)}}`; values are
            lists, ranges, single values or text such as "0.01:0.3:0.01". A method's name alone, or a
            list of names, takes its default grid; None takes the methods that are tried by default.
        metrics : list of str, optional
            As for `evaluate`. A metric may set its own options, as in "brmae:ties=first" or "il1:zeros=drop".
        replications : int
            How many tables a random method draws at each setting; methods without randomness draw one.
        draws : str
            "common": all settings of a method share their random numbers, so that a curve shows the
            parameter's effect; "fresh": each has its own.
        per_variable : bool
            True adds a row for each variable.
        detail : bool
            True adds the value for a random order and the range over tie orders, which takes several times
            longer.
        sample_queries : int, optional
            As for `evaluate`: estimate linkage on so many records, drawn at random. `Sweep.recommend` then
            compares the upper ends of the intervals with the limits.
        rng : None, int or numpy Generator
            None draws fresh entropy. Keep a seed secret: with it the maskings can be undone.
        workers : int, optional
            Threads; by default one for each core.
        folder : path, optional
            Folder for finished runs: the same call resumes where it was stopped, and a larger plan measures
            only what is new. The folder is private: it holds the seed.
        overwrite : bool
            True deletes what an earlier sweep left in the folder.
        progress : callable, optional
            Called as `progress(step, share done)` during the work; the share rises from 0 to 1.

        Returns
        -------
        Sweep

        Examples
        --------
        >>> import sdckit as sdc
        >>> data = sdc.Microdata([1.0, 5.0, 6.0, 9.0, 11.0, 15.0])
        >>> found = data.sweep({"mdav": {"k": [2, 3]}}, metrics=["brmae"])
        >>> found.table.select("parameters", "value").rows()
        [('k=2', 0.16666666666666666), ('k=3', 0.2222222222222222)]
        """
        wanted = settings_of(plan)
        repeated = checks.checked_count("replications", replications)
        runs_of(wanted, repeated)  # raises an error for too many runs before any other check
        threads = available_cores() if workers is None else checks.checked_count("workers", workers)
        options: dict[str, Any] = {
            "metrics": chosen_metrics(metrics, wanted),
            "draws": checks.one_of("rule for draws", draws, DRAWS),
            "per_variable": per_variable,
            "detail": detail,
            "sampling": sampling_of(sample_queries),
        }
        original, warned = self._announced()
        others = checked_scenarios(self.intruders)
        with collect_warnings(warned):
            conditions = Conditions(
                original, rules=self.rules, ties=self.ties, missing=self.missing or "penalise"
            )
            if metrics is None:
                options["metrics"] = metrics_for_columns(options["metrics"], original, original.table_names)
            task, settings, too_few = make_task(original, conditions, wanted, **options)
        runs = runs_of(settings, repeated)
        place = opened(SWEEP, folder, task.identity, rng, task.length, overwrite=overwrite)
        with reported_to(progress), place as (entropy, checkpoint), WorkerPool() as pool:
            found = run_all(task, runs, entropy, threads, checkpoint, pool)
        table = results_table(task, runs, found, self.name)
        remarks = sweep_notes(table, task, wanted, settings, ruled=self.rules is not None)
        told = replace(conditions, scenarios=others, too_few=too_few)
        return Sweep(table, remarks, original.n, told, tuple(settings), tuple(warned), task.withheld)

    def recommend(
        self,
        *,
        max_risk: dict[str, float],
        max_loss: dict[str, float] | None = None,
        minimise: str = "brmae",
        plan: Any = None,
        decimals: int | str | None = "original",
        replications: int | None = None,
        sample_queries: int | None = None,
        rng: Any = None,
        workers: int | None = None,
        folder: str | Path | None = None,
        progress: ProgressCallback | None = None,
    ) -> Choice:
        """Find the masking of least loss that meets limits on risk, measuring few settings of each grid.

        Parameters
        ----------
        max_risk : dict
            Limits by risk, such as `{"linkage": 0.1, "linkage_outliers": 0.3}`. One on `linkage_sure`, the
            share of exposed records, is a tenth of that on `linkage` unless it is given; 1 allows all. Those
            of the `intruders` are met together with these.
        max_loss : dict, optional
            Limits by loss, such as `{"suppressed": 0.01}` for at most 1 % suppressed cells, or
            `{"estimates_worst": 0.3}`.
        minimise : str
            The loss to keep small; "estimates" for what `estimates` declares.
        plan : dict, optional
            Methods and grids, as for `sweep`; by default the same methods with their default grids.
        decimals : int, "original" or None
            Round masked cells as `release` does, also in the release that is made: settings are judged by
            what would be released. None does not round.
        replications : int, optional
            How many tables a random method draws at each setting; the median of their risks is compared. By
            default 3, and 1 of files with more than 20,000 records, whose risk hardly varies from draw to
            draw.
        sample_queries : int, optional
            Judge settings by linkage estimated on so many records at first, drawn at random; more are drawn
            until a 95 % interval lies on one side of the limit, at most 65,536 of a large file. By default
            2,048 of files with more than 20,000 records; 0 looks up all records. The release is measured on
            all records, up to 1e7 of them.
        rng : None, int or numpy Generator
            None draws fresh entropy.
        workers : int, optional
            Threads; by default one for each core.
        folder : path, optional
            Folder for finished runs: the same call resumes where it was stopped. One with other limits on the
            same risks measures only what is new, unless queries are sampled. The folder is private: it holds
            the seed.
        progress : callable, optional
            Called as `progress(step, share done)` during the work; the share rises from 0 to 1.

        Returns
        -------
        Choice
            Its method `release` masks the data, measures the result and returns it only if it meets the
            limits.

        Examples
        --------
        >>> import sdckit as sdc
        >>> data = sdc.Microdata([[i, (7 * i) % 40] for i in range(40)])
        >>> choice = data.recommend(max_risk={"linkage": 0.2}, plan="mdav")
        >>> choice.point.parameters, choice.maskings
        ('k=5', 6)
        >>> bool(choice.release().evaluation["linkage"] <= 0.2)
        True
        """
        threads = available_cores() if workers is None else checks.checked_count("workers", workers)
        original, warned = self._announced()
        search = Search.of(
            original,
            max_risk=max_risk,
            max_loss=max_loss,
            minimise=minimise,
            plan=plan,
            ties=self.ties,
            missing=self.missing or "penalise",
            scenarios=self.intruders,
            rules=self.rules,
            decimals=decimals,
            replications=replications,
            sample_queries=sample_queries,
        )
        search = replace(search, warnings=(*warned, *search.warnings))
        return search.run(folder, rng, threads, progress)

    def release(
        self,
        method: str,
        *,
        max_risk: dict[str, float] | None = None,
        max_loss: dict[str, float] | None = None,
        metrics: str | Iterable[str] | None = None,
        calibrate: str | Sequence[str] = (),
        groups: str | None = None,
        tries: int = TRIES,
        keep_order: bool = False,
        numbered: str | None = None,
        entropy: bytes | None = None,
        decimals: int | str | None = "original",
        progress: ProgressCallback | None = None,
        **parameters: Any,
    ) -> Release[Any]:
        """Mask the data until limits are met; return the masked table with its losses and risks.

        The table can be handed out: its rows are shuffled, it has neither the key nor dropped columns, and
        units have fresh numbers. The figures are those that `sdckit mask --release` prints for the same file.

        Parameters
        ----------
        method : str
            A name from `sdc.METHODS`.
        max_risk : dict, optional
            Limits by risk, such as `{"linkage": 0.1}`: a random method is drawn again while it misses one.
            One on `linkage_sure`, the share of exposed records, is a tenth of that on `linkage` unless it is
            given. Limits of the `intruders` are met, too.
        max_loss : dict, optional
            Limits by loss, such as `{"suppressed": 0.01}`, treated alike.
        metrics : list of str, optional
            As for `evaluate`.
        calibrate : str or list of str
            Totals of the original that shall hold in the table, such as `total(turnover) by sector`: as for
            `calibrate`, with the weights of the data. What is measured is the calibrated table; its risks are
            at least those of an intruder who undoes the calibration.
        groups : str, optional
            Name of a new column for the number of each record's group, where the method forms groups.
        tries : int
            How many tables to draw at most.
        keep_order : bool
            Leave the rows in the order of the original, which an intruder may use; the figures count that.
        numbered : str, optional
            Name of a column to add: numbers of the records from 1, in an order that tells nothing.
        entropy : bytes, optional
            At least 32 secret bytes from which all that is random follows, to make the same release again;
            fresh ones by default. Seeds are refused: who guesses one can undo the masking.
        decimals : int, "original" or None
            Round masked cells, by default to the usual step of each column, which 95 % of its values share:
            100 for a column of hundreds; None does not round. Columns of rules keep all their decimals.
        progress : callable, optional
            Called as `progress(step, share done)` during the work; the share rises from 0 to 1.
        **parameters
            Parameters of the method, such as `k=5`; with strata also `k={"north": 5, "south": 3}`.

        Returns
        -------
        Release
            The masked table, its evaluation, the order of its rows, what the masking discloses, and the
            warnings; its method `publish` writes the file. A table that misses a limit is not returned: after
            the last draw, `LimitsMissed` is raised.

        Examples
        --------
        >>> import sdckit as sdc
        >>> data = sdc.Microdata([1.0, 2.0, 30.0, 31.0])
        >>> release = data.release("mdav", k=2)
        >>> release.evaluation["linkage"], sorted(release.data.tolist())
        (0.5, [2.0, 2.0, 30.0, 30.0])
        >>> data.evaluate(release)["linkage"]
        0.5
        """
        if "rng" in parameters:
            raise TypeError("rng is no option of a release, as seeds can be guessed; drop it or give entropy")
        entropy = randomness.checked_entropy(entropy)
        others = checked_scenarios(self.intruders)
        limits = {} if max_risk is None else with_sure_limit(checked_risk_limits(max_risk))
        limits |= check_loss_limits(max_loss)
        limits |= limits_of(others)
        plan = ReleasePlan(
            method=method,
            parameters=parameters,
            rules=self.rules,
            decimals=decimals,
            groups=groups,
            metrics=metrics_of_release(metrics, list(limits)),
            ties=self.ties,
            missing=self.missing or "pairwise",
            limits=limits,
            scenarios=others,
            tries=checks.checked_count("tries", tries),
            keep_order=keep_order,
            numbered=numbered,
            calibrate=tuple(names_of(calibrate)),
        )
        original, warned = self._announced()
        require_columns(others, original)
        return make_release(plan, original, entropy=entropy, progress=progress, warned=warned)


def _strata_columns(disclosure: Disclosure, by: str | Sequence[str] | None) -> str | Sequence[str] | None:
    """Return the columns that form strata: `by`, or those within which the file was masked."""
    if not disclosure.by or (by is not None and tuple(names_of(by)) == disclosure.by):
        return by
    if by is not None:
        ours, theirs = ", ".join(names_of(by)), ", ".join(disclosure.by)
        raise ValueError(f"by is {ours} and the file was masked within strata of {theirs}; leave by out")
    return list(disclosure.by)
