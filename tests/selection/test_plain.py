"""Plain calls: one line on tables without roles; what is stated on the data is refused, with its new form."""

import inspect

import polars as pl
import pytest

import sdckit as sdc
from cases import each
from secret_bytes import entropy

X = [[float(i), float(7 * i % 40)] for i in range(40)]
Y = [[float(i + 1), float(7 * i % 40)] for i in range(40)]
CALLS = {
    "describe": lambda **more: sdc.describe(pl.DataFrame(X, orient="row"), **more),
    "mask": lambda **more: sdc.mask(X, "mdav", **more),
    "evaluate": lambda **more: sdc.evaluate(X, Y, **more),
    "sweep": lambda **more: sdc.sweep(X, {"mdav": {"k": [3]}}, **more),
    "recommend": lambda **more: sdc.recommend(X, max_risk={"linkage": 1.0}, **more),
    "release": lambda **more: sdc.release(X, "mdav", **more),
}
STATED = [*inspect.signature(sdc.Microdata).parameters][1:]
MOST = 12  # parameters of a public function or method


def test_plain_calls_are_those_of_microdata():
    data, plan = sdc.Microdata(X), {"mdav": {"k": [3, 5]}}
    assert (sdc.mask(X, "noise", percent=20, rng=1) == data.mask("noise", percent=20, rng=1)).all()
    assert sdc.evaluate(X, Y, metrics="mae").table.equals(data.evaluate(Y, metrics="mae").table)
    assert sdc.sweep(X, plan).table.equals(data.sweep(plan).table)
    limits = {"max_risk": {"linkage": 0.3}, "plan": "mdav", "rng": 1}
    assert sdc.recommend(X, **limits).points == data.recommend(**limits).points
    ours, theirs = (
        one("mdav", k=3, entropy=entropy(1))
        for one in (data.release, lambda *a, **b: sdc.release(X, *a, **b))
    )
    assert (ours.data == theirs.data).all()


@each("option", STATED)
@each("call", CALLS)
def test_what_is_stated_on_the_data_is_refused_with_its_form(call, option):
    with pytest.raises(TypeError) as error:
        CALLS[call](**{option: "a"})
    form = f"sdc.Microdata(data, {option}=...).{call}("
    assert str(error.value).startswith(f"{call} takes no {option}; state it once: {form}")
    assert "\n" not in str(error.value)


@each("call", CALLS)
@each(
    ("option", "form"),
    {
        "scenarios": "sdc.Microdata(data, intruders={'press': sdc.Intruder(known=...)})",
        "memory": "sdc.Microdata(data, engine=sdc.Local(memory=...))",
        "scratch": "sdc.Microdata(data, engine=sdc.Local(scratch=...))",
        "master": "sdc.Microdata(data, engine=sdc.Spark(master=...))",
    }.items(),
)
def test_keywords_with_another_name_are_refused_with_it(call, option, form):
    with pytest.raises(TypeError) as error:
        CALLS[call](**{option: "a"})
    assert str(error.value).startswith(f"{call} takes no {option}; state it once: {form}.{call}(")


@pytest.mark.parametrize("option", ["disclosure", "method", "parameters", "window", "stratified", "paired"])
def test_how_a_file_was_masked_is_said_by_made_by(option):
    with pytest.raises(TypeError, match=f"^evaluate takes no {option}; say how it was masked: sdc.evaluate"):
        sdc.evaluate(X, Y, **{option: "mdav"})


def test_no_parameter_of_a_method_is_named_like_a_role():
    for method in sdc.METHODS.values():
        assert not {parameter.name for parameter in method.parameters} & {*STATED, "scenarios", "memory"}


def test_what_a_choice_no_longer_has_is_said():
    choice = sdc.recommend(X, max_risk={"linkage": 0.3}, plan="mdav")
    with pytest.raises(AttributeError, match=r"a Choice has no apply; choice.release\(\) masks the data"):
        choice.apply(X)
    assert not hasattr(choice, "no_such")


def test_no_public_function_or_method_has_many_parameters():
    classes = [one for name in dir(sdc) if inspect.isclass(one := getattr(sdc, name))]
    public = {name: getattr(sdc, name) for name in dir(sdc) if inspect.isfunction(getattr(sdc, name))}
    for owner in classes:
        for name, function in inspect.getmembers(owner, inspect.isfunction):
            if not name.startswith("_"):
                public[f"{owner.__name__}.{name}"] = function
    for name, function in public.items():
        given = [p for p in inspect.signature(function).parameters.values() if p.kind != p.VAR_KEYWORD]
        assert len([p for p in given if p.name != "self"]) <= MOST, name
