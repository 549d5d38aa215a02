"""The glossary has the terms that pages and the page in the browser link to, in order, each with a link."""

import re
from pathlib import Path

GLOSSARY = (Path(__file__).parent.parent / "docs" / "glossary.md").read_text(encoding="utf-8")
LINKED = {
    "disclosure-risk",
    "edit-rule",
    "floor",
    "information-loss",
    "key",
    "linkage",
    "microaggregation",
    "microdata",
    "missing-code",
    "outlier",
    "quasi-identifier",
    "rank-swapping",
    "release",
    "scenario",
    "stratum",
    "survey-weight",
    "unit",
}
ENTRIES = re.findall(r"^## (.+)\n\n((?:.+\n)+)", GLOSSARY, re.MULTILINE)
TERMS = [term for term, _ in ENTRIES]


def test_terms_are_in_alphabetical_order():
    assert sorted(set(TERMS), key=str.lower) == TERMS


def test_terms_that_are_linked_to_keep_their_anchors():
    assert {term.lower().replace(" ", "-") for term in TERMS} >= LINKED


def test_every_term_leads_to_where_it_is_explained():
    assert len(ENTRIES) == GLOSSARY.count("\n## ")
    assert [term for term, text in ENTRIES if "](" not in text] == []
