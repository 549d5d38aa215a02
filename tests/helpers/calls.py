"""Calls of `sdc.Microdata` from one dictionary, as tests keep roles, options and the masking together."""

from inspect import signature

import sdckit as sdc

STATED = [*signature(sdc.Microdata).parameters][1:]
MASKING = ("window", "stratified", "paired")


def called(name, data, /, *arguments, **given):
    """Call a method of `sdc.Microdata(data, ...)`: roles go to the data, `method` and others to `made_by`."""
    if "scenarios" in given:  # so are intruders called in a request
        given["intruders"] = given.pop("scenarios")
    roles = {key: given.pop(key) for key in STATED if key in given}
    if name == "evaluate":
        how = {key: given.pop(key) for key in MASKING if key in given}
        how |= given.pop("parameters", {})
        method = given.pop("method", None)
        if "disclosure" in given:
            given["made_by"] = given.pop("disclosure")
        if method is not None or how:
            given["made_by"] = sdc.Method(method or given.get("made_by"), **how)
    if not isinstance(data, sdc.Microdata):
        data = sdc.Microdata(data, **roles)
    else:
        assert not roles
    return getattr(data, name)(*arguments, **given)
