"""The stdio server: the store behind the protocol behind the transport."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import NoReturn

from server import __version__
from server.app import App
from server.bootstrap import Store
from server.config import Config
from server.protocol import Connection, ServerInfo
from server.stdio import Pipes, log, serve
from server.tools import INSTRUCTIONS, make_tools

UPKEEP_STOP_S = 2.0
"""How long a task of the upkeep may hold up the end of the process, in seconds."""


class LazyStore:
    """A store that is opened by the first call, or in the background before it.

    A client gets its first answers before anything touches the disk, and a store that cannot be
    opened is an error of each call instead of a server that does not start.
    """

    def __init__(self, open_store: Callable[[], Store]) -> None:
        """Remember how to open the store."""
        self._open_store = open_store
        self._mutex = threading.Lock()
        self._store: Store | None = None

    def app(self) -> App:
        """Return the use cases, opening the store if it is not open.

        Raises:
            StoreError: it cannot be opened.

        """
        with self._mutex:
            if self._store is None:
                self._store = self._open_store()
                self._store.upkeep.start()
            return self._store.app

    def close(self) -> None:
        """Close the store if it was opened."""
        with self._mutex:
            if self._store is not None:
                self._store.upkeep.stop(UPKEEP_STOP_S)
                self._store.close()


def serve_stdio(config: Config, pipes: Pipes) -> NoReturn:
    """Serve a store over MCP until the client leaves or a signal comes; ends the process."""
    store = LazyStore(lambda: Store(config))
    info = ServerInfo(
        name="mnemolog",
        title="mnemolog",
        version=__version__,
        instructions=INSTRUCTIONS,
        tools=make_tools(store.app),
    )
    serve(Connection(info, write=pipes.write, log=log), pipes, on_close=store.close)
