"""Names of types that signatures of the reference have and that are no public names, in words."""

from __future__ import annotations

TYPES = {
    "AnyPath": "a path as text or as `pathlib.Path`",
    "Bools": "numpy array of bool",
    "ColumnStack": "all columns sorted, for fast comparison of ranks",
    "Conditions": "data, rules, treatment of ties and missing cells, and scenarios of a search",
    "Floats": "numpy array of float64",
    "Frame": "the type of your table: pandas, polars, pyarrow or numpy",
    "Guards": "what may be published of each estimate, by estimate and domain",
    "HasDisclosure": "an object with a `disclosure`, such as a `Release`",
    "Ints": "numpy array of int64",
    "Knowledge": "columns that the intruder knows (`known`), does not know (`unknown`), and those `unmasked`",
    "MadeFrom": "original, plan and measured pair of a release",
    "Original": "the data of a `Microdata`, prepared: roles, variables as numbers, columns sorted",
    "OrderedColumn": "one column sorted, with its ties",
    "Path": "`pathlib.Path`",
    "Point": "a measured setting: its `method`, `parameters`, and `values` by metric",
    "ProgressCallback": "a function that is called as `progress(step, share done)`",
    "ReleasePlan": "how to mask a table, which limits it must meet, and how to measure it",
    "MaskedBy": "a `Method`, a `Disclosure`, a `Release` or a function of table and random generator",
    "Roles": "the role of each column, as `Microdata` takes them",
    "Table": "a table in memory, read by column name",
    "Setting": "a masking method with its parameters",
    "Window": "a function `window(stratum, values, columns)` that returns the largest move in ranks",
    "WrittenReport": "the `path` of a report, which a notebook shows as the report itself",
    "registry.Method": "record of a masking method, see [`METHODS`](python.md#methods)",
    "np.random.Generator": "a source of random numbers, of numpy",
    "nw.Series": "a column of a table, of narwhals",
    "pl.DataFrame": "a table of polars",
    "points.Curve": "list of `Point`s of one method that differ in one parameter, the weakest first",
}
