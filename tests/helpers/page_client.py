"""A client of the page without a browser: forms, screens, the event stream, and every byte that was sent."""

import json
import re
import time
from urllib.parse import urlencode

import loops
from app_server import HANGING, answer

VERSION = re.compile(r'name="version" value="([^"]*)"')
PAUSE = 0.1  # seconds between two looks at the event stream


class Client:
    """Sends forms as a browser does, and keeps all that the server answers."""

    def __init__(self, server):
        self.server, self.received = server, []
        server.exchange(server.navigate(f"/open?token={server.token}"))

    def get(self, target, **changes):
        """Open an address."""
        return self._kept(target, self.server.navigate(target, **changes))

    def part(self, target):
        """Load a part of a screen, as the script of the page does."""
        return self._kept(target, self.server.ask("GET", target))

    def post(self, target, **fields):
        """Send a form, with the version of the job as it is now unless one is given."""
        body = urlencode({"version": self.version()} | fields, doseq=True).encode()
        mode = {} if target.endswith("/check") else {"sec_fetch_mode": "navigate"}
        return self._kept(target, self.server.ask("POST", target, body, **mode))

    def version(self):
        """Return the version of the job, which every form carries."""
        return VERSION.search(self.get("open").text)[1]

    def events(self):
        """Return the first messages of the event stream by name."""
        found, text = {}, b""
        with self.server.connect() as connection:
            connection.sendall(self.server.head("GET", "events"))
            while len(found) < 3:
                text += connection.recv(65536)
                pairs = re.findall(r"event: (\w+)\r?\ndata: (.*)\r?\n\r?\n", text.decode(errors="replace"))
                found = {name: json.loads(content) for name, content in pairs}
        self.received.append(("events", text))
        return found

    def wait_for(self, work):
        """Wait until a search or a release has ended; return what the event stream says of it."""
        deadline = time.monotonic() + HANGING
        while (found := self.events()[work])["running"]:
            assert time.monotonic() < deadline, f"the {work} does not end"
            time.sleep(PAUSE)
        return found

    def give_roles(self, header, /, **roles):
        """Send the form of roles: the names of columns by role; others are not decided."""
        chosen = {name: role for role, names in roles.items() for name in names}
        return self.post("roles", **{f"role-{i}": chosen.get(name, "") for i, name in enumerate(header)})

    def search(self, limit, *methods):
        """Set a goal and search to the end; return what the event stream says then."""
        self.post("goal", **{"risk-linkage": limit, "minimise": "brmae", "method": methods})
        self.post("search/start")
        return self.wait_for("search")

    def release(self, **paths):
        """Write a release; return the answer to the form and what the event stream says at the end."""
        return self.post("release", **paths), self.wait_for("release")

    def sent(self, *secrets):
        """Return the addresses whose answers hold one of some texts, with the texts."""
        return sorted(
            {(where, text) for where, body in self.received for text in secrets if text.encode() in body}
        )

    def _kept(self, target, got):
        """Keep what was answered."""
        self.received.append((target, repr(got.headers).encode() + got.body))
        return got


class Direct:
    """The application of a page in this process, without its guards; `Client` takes it for a server."""

    token = ""

    def __init__(self, app):
        self.app = app

    def exchange(self, _page):
        """Do nothing: there is no token."""

    def navigate(self, target):
        """Open an address."""
        return self.ask("GET", target, sec_fetch_mode="navigate")

    def ask(self, method, target, body=b"", **headers):
        """Send one request and return its answer."""
        path, _, query = target.partition("?")
        scope = {
            "type": "http",
            "method": method,
            "path": f"/{path.lstrip('/')}",
            "root_path": "",
            "query_string": query.encode(),
            "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()],
        }
        sent = []

        async def receive():
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message):
            sent.append(message)

        loops.run(self.app(scope, receive, send))
        pairs = [(name.decode(), value.decode()) for name, value in sent[0]["headers"]]
        return answer(sent[0]["status"], pairs, b"".join(one.get("body", b"") for one in sent[1:]))
