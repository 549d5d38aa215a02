"""Guards that stand behind another one, which would hide that they are gone: asked by themselves."""

import asyncio

import pytest

import loops
from sdckit.app.guards import (
    FAULT,
    HEADERS,
    Address,
    Answer,
    Asked,
    Refused,
    check_path,
    check_sizes,
    with_security_headers,
)
from sdckit.app.running import Running

ADDRESS = Address(1)


def asked(path, *headers):
    scope = {"method": "GET", "path": path, "headers": [(b"cookie", f"sdckit={ADDRESS.cookie}".encode())]}
    return Asked(scope | {"headers": [*scope["headers"], *headers]}, ADDRESS)


@pytest.mark.parametrize(
    "rest", ["static/../server.py", "..", "static/./app.css", "static/..\\server.py", "open\x00", "a\r\nb"]
)
def test_paths_that_climb_or_cannot_be_printed_reach_no_handler(rest):
    check_path(asked(f"/{ADDRESS.prefix}/static/app.css"), ADDRESS)
    with pytest.raises(Refused):
        check_path(asked(f"/{ADDRESS.prefix}/{rest}"), ADDRESS)


def test_headers_that_the_server_has_let_pass_are_measured_again():
    check_sizes(asked("/open", *[(b"x", b"a" * 1000)] * 10))
    with pytest.raises(Refused, match=str(HEADERS)):
        check_sizes(asked("/open", *[(b"x", b"a" * 1000)] * 20))


def test_no_handler_can_open_an_answer_to_other_sites_or_to_caches():
    given = [(b"Access-Control-Allow-Origin", b"*"), (b"Cache-Control", b"public"), (b"x-own", b"1")]
    found = with_security_headers(given)
    assert [name for name, _ in found if name.startswith(b"access-control")] == []
    assert [value for name, value in found if name == b"cache-control"] == [b"no-store"]
    assert (b"x-own", b"1") in found


def test_the_text_of_an_error_of_the_application_is_not_sent():
    sent = []

    async def send(message):
        sent.append(message)

    async def answer():
        found = Answer(None, send)
        await found.send({"type": "http.response.start", "status": 500, "headers": [(b"x-why", b"secret")]})
        await found.send({"type": "http.response.body", "body": b"secret", "more_body": False})

    loops.run(answer())
    assert "secret" not in repr(sent)
    assert sent[1]["body"] == FAULT.encode()


@pytest.mark.long
def test_a_release_imports_nothing_from_the_start_folder(tmp_path):
    for name in ("json.py", "sdckit.py", "click.py"):
        (tmp_path / name).write_text("open('ran', 'w').close()")

    async def ran():
        run = Running(tmp_path, "release")
        job = {"input": {"data": "missing.csv"}, "search": {"max_risk": {"linkage": 0.1}}}
        job |= {"command": "recommend", "output": {"output": "out.csv"}}
        run.start({"job": job, "save_job": "", "overwrite": False})
        while run.running:  # noqa: ASYNC110 - short
            await asyncio.sleep(0.1)
        return run.state.error

    assert loops.run(ran()).startswith("no file ")
    assert not (tmp_path / "ran").exists()
