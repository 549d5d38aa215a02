"""What a public output must not hold: original records, values and extremes, the seed, thin bins.

`leaks` takes any output: a page, CSV, JSON, SVG, what a command printed. Numbers are compared as
numbers, so that separators, thousands marks and exponents do not hide them. What stands in the masked
file is public and no leak.
"""

import base64
import html
import json
import re
from functools import cache

import numpy as np
import polars as pl

THRESHOLD = 10
DISTINCTIVE = 4  # significant digits; shorter numbers occur everywhere
FEWEST_REPORTED = 3  # cells of one record side by side, or all of them where it has fewer
RUN = 9  # cells of one column
COUNTS = {"records", "count", "counts", "original", "masked", "n"}
EDGES = {"edge", "edges", "low", "high", "range", "min", "max"}
END = r"(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w.]*\w)"
PLAIN = re.compile(rf"(?<![\w.#])[-+\u2212]?\d+{END}")
GROUPED = re.compile(rf"(?<![\w.#,])[-+\u2212]?\d{{1,3}}(?:,\d{{3}})+{END}")
SCRIPT = re.compile(r"<script\b([^>]*)>(.*?)</script>", re.DOTALL | re.IGNORECASE)
TAG = re.compile(r"<[^<>]*>")
PACKED = re.compile(r"base64,([A-Za-z0-9+/=]{8,})")
WORD = re.compile(r"[^\s<>\"'=,;:()\[\]{}|]+")


def leaks(output, original, seed=None, *, masked=None, known=(), figures=()):
    """Lines that name what leaked; empty where nothing did.

    `known` are texts that belong to every such output, such as the scripts of a page; `figures`
    are measured values that it is meant to print, in any number of digits.
    """
    text = _text(output, known)
    numbers = _numbers(text)
    cells = original.select(pl.selectors.numeric()).cast(pl.Float64)
    public = np.empty(0) if masked is None else _values(masked.select(pl.selectors.numeric()))
    found = [
        *_cells(_unmeasured(numbers, figures), cells, public),
        *_records(text, cells, masked),
        *_extremes(text, cells, public, figures),
        *_identifiers(text, original, masked),
        *_thin_bins(text),
        *_seed(text, seed),
    ]
    return list(dict.fromkeys(found))


def _text(output, known):
    text = output.decode("utf-8", errors="replace") if isinstance(output, bytes) else output
    for part in known:
        text = text.replace(part, "")
    unpacked = []
    for packed in PACKED.findall(text):
        try:
            unpacked.append(base64.b64decode(packed).decode("utf-8"))
        except ValueError:
            continue
    return "\n".join([html.unescape(text), *unpacked])


def _numbers(text):
    """Every number of a text with its significant digits, in order."""
    return [*_read(PLAIN, text), *_read(GROUPED, text)]


def _read(pattern, text):
    words = [word.replace(",", "").replace("\u2212", "-") for word in pattern.findall(text)]
    return [(float(word), digits(word)) for word in words]


def _ungrouped(text):
    """The text with 1,234 written as 1234."""
    return GROUPED.sub(lambda found: found[0].replace(",", ""), text)


def _unmeasured(numbers, figures):
    """Numbers that are no measured figure, rounded or not."""
    known = np.unique(np.array([figure for figure in figures if figure is not None], np.float64))
    shapes = {}
    for length in {length for _, length in numbers}:
        shapes[length] = {float(f"{figure:.{max(length, 1) - 1}e}") for figure in known.tolist()}
    return [(value, length) for value, length in numbers if value not in shapes[length]]


@cache
def digits(number):
    """Significant digits of a number, trailing zeros of whole ones not counted."""
    word = number if isinstance(number, str) else repr(number)
    mantissa = word.lower().partition("e")[0].lstrip("+-")
    if "." in mantissa:
        return len(mantissa.rstrip("0").replace(".", "").lstrip("0").rstrip("0"))
    return len(mantissa.strip("0"))


def _values(frame):
    values = frame.cast(pl.Float64).to_numpy().ravel()
    return np.unique(values[np.isfinite(values)])


def _cells(numbers, cells, public):
    """Values that no one would write by chance; longer ones also where they were cut by a digit or more."""
    secret = np.setdiff1d(_values(cells), public)
    secret = np.array([value for value in secret.tolist() if digits(value) >= DISTINCTIVE])
    if not secret.size:
        return []
    shown = {}
    for value, length in numbers:
        if length >= DISTINCTIVE:
            shown[value] = max(length, shown.get(value, 0))
    hits = []
    for value, length in shown.items():
        near = secret[np.argmin(np.abs(secret - value))]
        cut = length >= DISTINCTIVE + 2 and float(f"{near:.{length - 1}e}") == value
        if near == value or cut:
            hits.append(f"original value {near:.15g}")
    return hits


def _records(text, cells, masked):
    """Cells of one record, or a run of a column, that stand side by side, whatever lies between them."""
    public = pl.DataFrame() if masked is None else masked.select(pl.selectors.numeric()).cast(pl.Float64)
    rows, published = _places(cells), _places(public)
    width = min(FEWEST_REPORTED, cells.width)
    bare = TAG.sub(" ", text)
    for one in (text, bare, _ungrouped(bare)):
        shown = [value for value, _ in _read(PLAIN, one)]
        for line in _telling(shown, width) if width > 1 else ():
            alike = len(set(line)) < width or 0 in line
            if not alike and _share(rows, line) and not _share(published, line):
                yield f"original record with {', '.join(f'{value:.15g}' for value in line)}"
        runs = set(_telling(shown, RUN))
        for name in cells.columns if runs else ():
            kept = public[name].to_list() if name in public.columns else []
            if runs.intersection(_telling(cells[name].to_list(), RUN)).difference(_telling(kept, RUN)):
                yield f"original column {name}"


def _places(frame):
    """In which rows each value stands."""
    found = {}
    for name in frame.columns:
        for row, value in enumerate(frame[name].to_list()):
            found.setdefault(value, set()).add(row)
    return found


def _share(rows, line):
    return set.intersection(*(rows.get(value, set()) for value in line))


def _telling(values, width):
    """Neighbouring numbers, most of them different, with enough digits to identify a record."""
    for line in zip(*(values[start:] for start in range(width)), strict=False):
        if None not in line and len(set(line)) > width / 2 and sum(map(digits, line)) >= 2 * width:
            yield line


def _extremes(text, cells, public, figures):
    """Smallest and largest values: anywhere if they are distinctive, else where a chart has its ends."""
    ends = {
        (name, what): value
        for name in cells.columns
        for what, value in (
            ("minimum", cells[name].drop_nans().min()),
            ("maximum", cells[name].drop_nans().max()),
        )
        if value is not None
    }
    shown = {value for value, length in _unmeasured(_numbers(text), figures) if length >= DISTINCTIVE - 1}
    at_ends = {value for value, _ in _unmeasured(_edges(text), figures)}
    return [
        f"original {what} of {name}: {value:.15g}"
        for (name, what), value in ends.items()
        if (value in shown and digits(value) >= DISTINCTIVE - 1 and value not in public) or value in at_ends
    ]


def _embedded(text):
    """JSON inside a text: the whole of it, its lines, or what a page has in its scripts."""
    parts = [content for kind, content in SCRIPT.findall(text) if "json" in kind] or [text]
    for part in parts:
        try:
            yield json.loads(part)
        except ValueError:
            continue


def _named(tree, names, inside=None):
    """The values in a tree that stand under one of the names."""
    if isinstance(tree, dict):
        for name, branch in tree.items():
            yield from _named(branch, names, name)
    elif isinstance(tree, list):
        for branch in tree:
            yield from _named(branch, names, inside)
    elif inside in names:
        yield tree


def _edge_numbers(text):
    for tree in _embedded(text):
        for value in _named(tree, EDGES):
            yield from _read(PLAIN, _ungrouped(str(value)))


def _edges(text):
    return [(value, length) for value, length in _edge_numbers(text) if value not in {0.0, 1.0}]


def _identifiers(text, original, masked):
    """Names of records: texts with digits in them that the masked file does not have."""
    words = set(WORD.findall(text))
    hits = []
    for name in original.select(pl.selectors.string()).columns:
        public = set() if masked is None or name not in masked.columns else set(masked[name])
        secret = {
            value
            for value in original[name].drop_nulls().unique()
            if len(value) >= DISTINCTIVE and re.search(r"\d", value)
        }
        hits += [f"original {name} {value}" for value in sorted((secret - public) & words)]
    return hits


def _thin_bins(text):
    """Counts of records below the threshold in the data of a chart; an empty bin is no leak."""
    counts = [value for tree in _embedded(text) for value in _named(tree, COUNTS)]
    whole = [value for value in counts if isinstance(value, (int, float)) and float(value).is_integer()]
    return [f"bin with {int(value)} records" for value in whole if 0 < value < THRESHOLD]


def _seed(text, seed):
    """The seed itself, in decimal or hexadecimal digits, or beside its name where it is short."""
    if seed is None:
        return []
    digits_of = {str(seed), f"{seed:,}", f"{seed:x}", f"{seed:X}"} if seed > 9999 else set()
    named = re.search(rf"(?i)\b(?:seed|rng|random state)\W{{0,12}}{seed}(?!\d)", text)
    return ["the seed"] if named or any(re.search(rf"(?<!\w){one}(?!\w)", text) for one in digits_of) else []
