"""What the writer of TOML writes is read back as the same."""

import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sdckit.request.toml import entry_text, key_text, string_text, toml_text

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
PLAIN = st.one_of(TEXTS, st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), st.booleans())
VALUES = st.recursive(PLAIN, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner), max_leaves=5)
CONTENT = st.dictionaries(TEXTS, st.dictionaries(TEXTS, VALUES) | PLAIN, max_size=4)


@given(CONTENT)
@settings(deadline=None)
def test_what_is_written_is_read_back(content):
    assert tomllib.loads(toml_text(content)) == content


@given(st.lists(st.dictionaries(TEXTS, VALUES), min_size=1, max_size=3))
@settings(deadline=None, max_examples=30)
def test_a_list_of_tables_is_written_as_sections(entries):
    text = toml_text({"command": "x", "scenario": entries})
    assert tomllib.loads(text)["scenario"] == entries
    assert text.count("[[scenario]]") == len(entries)


def test_odd_names_are_quoted_and_what_cannot_be_printed_is_escaped():
    assert [key_text(name) for name in ("a_1-b", "a b", "größe", "")] == ["a_1-b", '"a b"', '"größe"', '""']
    assert string_text('say "a\\b"\n\x7f\u202e') == '"say \\"a\\\\b\\"\\u000a\\u007f\\u202e"'


def test_a_long_list_has_a_line_for_each_value():
    assert entry_text("a", ["b"]) == 'a = ["b"]'
    assert entry_text("a", ["b" * 60, "c" * 60]).count("\n") == 3


def test_a_name_that_is_no_unicode_text_is_refused():
    with pytest.raises(ValueError, match="byte 0xff, which is no UTF-8 text; rename it"):
        string_text("a\udcff")
