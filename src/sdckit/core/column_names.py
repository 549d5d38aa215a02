"""What the name of a column says about its role: words for identifiers, units, weights and codes."""

from __future__ import annotations

import re

WORD = re.compile(r"[A-Z]?[^\W\d_A-Z]+|[A-Z]+(?![^\W\d_A-Z])|[0-9]+")  # "personID" has two words


def _words(text: str) -> frozenset[str]:
    """Return the set of the words of a text."""
    return frozenset(text.split())


IDENTIFIERS = _words(
    "id ids idn ident identifier key nr uuid guid pid hid hhid uid ssn nif "
    "nino iban caseid serial idhh idpers idind respid seqn passport phone email"
)
COUNTERS = _words("no number record row index")
UNITS = _words(
    "hh hhid hhold household dwelling family firm company enterprise establishment plant farm school "
    "hospital patient person panel pid hid idhh serial hogar vivienda empresa persona menage foyer "
    "entreprise haushalt betrieb unternehmen"
)
WEIGHTS = _words(
    "weight weights wgt wgts wt wts wght pweight aweight iweight fweight pwgt hwgt fnlwgt afnlwgt "
    "finalwt pond pondera ponderacion ponderation expansion fexp facexp gewicht gewichte "
    "hochrechnungsfaktor peso poids"
)
CODES = _words(
    "zip zipcode postcode postal plz isco isced nace isic naics sic nuts municipality muni town city "
    "commune canton region province district county country nationality occupation occ industry "
    "state fips statefip countyfip puma icd"
)
CODED = _words("code codes cod")
BODIES = _words("birth body baby kg lb lbs loss gain")  # beside which a weight is one of bodies
PERSONAL = _words(
    "name names surname firstname lastname forename nombre nom vorname nachname address street email mail "
    "phone telephone mobile iban comment comments remark remarks note notes text url"
)
HEIGHTS = _words("height bmi stature")
PEOPLE = UNITS | _words("case cps user cust customer client member resp ind obs student teacher worker")


def words_of(name: str) -> list[str]:
    """Return the words of a column name in small letters: firm and id for firm_id, firmId and "Firm ID"."""
    return [word.lower() for word in WORD.findall(name)]


def names_record(name: str) -> bool:
    """Return True for names that a unique number of a record may have: firm_id, record no, row."""
    return bool({*words_of(name)} & (IDENTIFIERS | COUNTERS)) or names_unit(name)


def names_unit(name: str) -> bool:
    """Return True for names of a household, firm or person, such as hhid or firm, but not firm_income."""
    words = words_of(name)
    ends = {*words[:1], *words[-1:]}
    joined = any(word.endswith("id") and (word[:-2] in PEOPLE or word[-4:] == "hhid") for word in ends)
    return bool(words) and (joined or bool(ends & IDENTIFIERS) or {*words} <= PEOPLE | COUNTERS)


def names_code(name: str) -> bool:
    """Return True for names of classifications and areas, such as nace, postcode or region_id."""
    words = [word for word in words_of(name) if not word.isdigit()]
    subject = [word for word in words if word not in IDENTIFIERS]
    return bool({*words[:1], *words[-1:]} & CODED or {*subject[-1:]} & CODES)


def names_weights(name: str) -> bool:
    """Return True for names such as weight, hh_wgt, perwt or fnlwgt, but not birth_weight."""
    words = [word for word in words_of(name) if not word.isdigit()]
    if {*words} & BODIES:
        return False
    return any(
        word in WEIGHTS or word.startswith(("wgt", "pond")) or word.endswith(("wgt", "weight", "wt"))
        for word in {*words[:1], *words[-1:]}
    )


def names_person(name: str) -> bool:
    """Return True for names such as surname, email and phone, and for those of free text, such as comment."""
    return bool({*words_of(name)} & PERSONAL)


def names_height(name: str) -> bool:
    """Return True for names of a body's height, beside which a weight is one of bodies, too."""
    return bool({*words_of(name)} & HEIGHTS)
