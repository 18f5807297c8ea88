"""The embedded Prefect server's own process: `python -m kohort.flows.embedded FD`."""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from typing import Any

GRACE = 3.0  # seconds to answer what is under way
PATIENCE = 60.0  # seconds for which the database may be busy
BUSY = 503


class BusyIsNotDead:
    """Lets clients wait for a busy database, whose 503 they would take for a failing server.

    A command gives up on a server after one more try, so that a dead one is noticed in seconds. SQLite,
    though, can be busy for longer on a loaded machine. Prefect's client does not count a 503 that says
    maintenance.
    """

    def __init__(self, app: Any) -> None:
        self._app = app
        self._busy_since: float | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass a request on, and mark the answer."""

        async def marked(message: Any) -> None:
            if message["type"] == "http.response.start" and self._waits(message["status"]):
                more = [(b"prefect-maintenance", b"true"), (b"retry-after", b"1")]
                message = {**message, "headers": [*message.get("headers", ()), *more]}
            await send(message)

        await self._app(scope, receive, marked)

    def _waits(self, status: int) -> bool:
        """Whether a client is to try again: not for ever."""
        if status != BUSY:
            self._busy_since = None
            return False
        now = time.monotonic()
        self._busy_since = self._busy_since or now
        return now - self._busy_since < PATIENCE


def main() -> None:
    """Serve on the inherited socket until standard input closes."""
    import uvicorn
    from prefect.server.api.server import create_app

    listener = socket.socket(fileno=int(sys.argv[1]))
    app = BusyIsNotDead(create_app(ephemeral=True, final=True))
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="on"))

    def end_with_parent() -> None:
        sys.stdin.buffer.read()
        server.should_exit = True
        time.sleep(GRACE)
        os._exit(0)

    threading.Thread(target=end_with_parent, daemon=True).start()
    server.run(sockets=[listener])
    os._exit(0)  # nothing of Prefect's background services may hold the process


if __name__ == "__main__":
    main()
