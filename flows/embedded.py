"""The embedded Prefect server's own process: `python -m kohort.flows.embedded FD`."""

from __future__ import annotations

import os
import socket
import sys
import threading
import time

GRACE = 3.0  # seconds to answer what is under way


def main() -> None:
    """Serve on the inherited socket until standard input closes."""
    import uvicorn
    from prefect.server.api.server import create_app

    listener = socket.socket(fileno=int(sys.argv[1]))
    app = create_app(ephemeral=True, final=True)
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
