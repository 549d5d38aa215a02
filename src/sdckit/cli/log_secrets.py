"""What the log of --log must not hold, though texts of a command may: long seeds and private places."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sdckit.core.text import printable
from sdckit.job.fields import FIELDS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

SECRET = {
    "seed",
    "master",
    "made_by_command",
    *(field.name for field in FIELDS if field.section == "private"),
}
HIDDEN = "(not logged)"
LONG_SEED = 5  # digits; a shorter number stands in many texts, and where it is left out it would be known
PART = r"[/\\][^\s'\"]*"  # of a path inside of a folder
BEFORE, AFTER = r"(?<![\w./\\-])", r"(?!\.?[\w-])"  # what no word and no path has around it


class Secrets:
    """Values of secret options, and `hidden_in`, which takes them out of what is logged."""

    def __init__(self) -> None:
        self.patterns: list[re.Pattern[str]] = []

    def add(self, given: Mapping[str, Any]) -> None:
        """Add the values of the secret ones among options, and the user's own private record."""
        from sdckit.record.store import default_folder  # noqa: PLC0415 - only where a log is kept

        values = [one for name in SECRET for one in _several(given.get(name))]
        places = [default_folder(), *(value for value in values if isinstance(value, Path))]
        texts = [str(value) for value in values if not isinstance(value, (bool, Path))]
        words = [*_forms(places), *(text for text in texts if len(text) >= LONG_SEED)]
        above = _forms(folder for place in places for folder in place.parents if folder.name)
        names = [place.name for place in places]
        self.patterns += [
            re.compile(f"{BEFORE}{_any_of(filter(_is_telling, words))}(?:{PART})?{AFTER}"),
            re.compile(f"{BEFORE}{_any_of(words)}{PART}"),
            re.compile(f"(?<=['\"]){_any_of([*words, *above, *names])}(?=['\"])"),
        ]

    def hidden_in(self, content: Any) -> Any:
        """Return nested dicts and lists with a remark in place of every secret in their texts."""
        if isinstance(content, (str, Path)):
            text = str(content)
            for pattern in self.patterns:
                text = pattern.sub(HIDDEN, text)
            return text
        if isinstance(content, dict):
            return {self.hidden_in(key): self.hidden_in(value) for key, value in content.items()}
        return [self.hidden_in(one) for one in content] if isinstance(content, (list, tuple)) else content


def _several(value: Any) -> Collection[Any]:
    """Return the values of an option that may be given several times, once or not at all."""
    return value if isinstance(value, tuple) else () if value is None else (value,)


def _is_telling(word: str) -> bool:
    """Return False for a word that may stand in any sentence, such as the folder "record"."""
    return len(word) >= LONG_SEED and (
        word.lstrip("-").isdigit() or re.search(r"\w\W+\w|^[/\\]", word) is not None
    )


def _forms(places: Iterator[Path] | Collection[Path]) -> Iterator[str]:
    """Yield paths in all ways in which a message may write them."""
    for place in places:
        try:
            home = place.expanduser()
        except RuntimeError:  # a user that the system does not know
            home = place
        for path in (place, home, home.absolute(), home.resolve()):
            yield from (str(path), repr(str(path))[1:-1], " ".join(printable(str(path)).split()))


def _any_of(words: Any) -> str:
    """Return a pattern for one of the words, the longest first; for nothing at all if there is none."""
    return f"(?:{'|'.join(map(re.escape, sorted(set(words), key=len, reverse=True))) or '(?!)'})"
