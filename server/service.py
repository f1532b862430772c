"""The stdio server: the store behind the protocol behind the transport.

A client gets its first answers before anything touches the disk: the modules that open the store
are not even imported until then.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

from server import __version__
from server.config import Config
from server.prompts import make_prompts
from server.protocol import Connection, ServerInfo
from server.resources import make_resources, make_templates
from server.stdio import Pipes, log, serve
from server.tool import Tool
from server.tools import INSTRUCTIONS, make_tools
from server.watcher import Watcher

if TYPE_CHECKING:
    from server.app import App
    from server.bootstrap import Store
    from server.suggest import Suggestions

UPKEEP_STOP_S = 2.0
"""How long a task of the upkeep may hold up the end of the process, in seconds."""

WATCH_STOP_S = 1.0
"""How long a look at what is subscribed to may hold it up, in seconds."""

CORE_TOOLS = frozenset(
    (
        "memory_add",
        "memory_search",
        "memory_update",
        "memory_delete",
        "memory_inspect",
        "memory_undo",
    )
)
"""What is offered if few tools are wanted, since each takes room in the model's context."""

ANSWERS_BEFORE_OPENING = 2
"""The handshake and the list of tools; what comes next is a call, after the model has thought."""


class LazyStore:
    """A store that is opened in the background after the first answers, or by the first call.

    A store that cannot be opened is an error of each call instead of a server that does not start.
    """

    def __init__(self, config: Config) -> None:
        """Remember where the store is."""
        self.on_write: Callable[[], None] = lambda: None
        self._config = config
        self._mutex = threading.Lock()
        self._store: Store | None = None

    def app(self) -> App:
        """Return the use cases, opening the store if it is not open.

        Raises:
            StoreError: it cannot be opened.

        """
        return self._opened().app

    def suggestions(self) -> Suggestions:
        """Return what completes names, opening the store if it is not open.

        Raises:
            StoreError: it cannot be opened.

        """
        return self._opened().suggestions

    def warm_up(self) -> None:
        """Open the store on a thread of its own; what is wrong with it the first call will say."""

        def open_it() -> None:
            from server.errors import StoreError  # noqa: PLC0415 - loaded with the store

            try:
                self.app()
            except StoreError as error:
                log(f"mnemolog: {error.message}")

        threading.Thread(target=open_it, name="open", daemon=True).start()

    def close(self) -> None:
        """Close the store if it was opened."""
        with self._mutex:
            if self._store is not None:
                self._store.upkeep.stop(UPKEEP_STOP_S)
                self._store.close()

    def _opened(self) -> Store:
        with self._mutex:
            if self._store is None:
                from server.bootstrap import Store  # noqa: PLC0415 - see the module's docstring

                self._store = Store(self._config, on_write=self.on_write)
                self._store.upkeep.start()
            return self._store


def serve_stdio(config: Config, pipes: Pipes) -> NoReturn:
    """Serve a store over MCP until the client leaves or a signal comes; ends the process."""
    store = LazyStore(config)
    answers = 0

    def write(line: bytes) -> None:
        nonlocal answers
        pipes.write(line)
        answers += 1
        if answers == ANSWERS_BEFORE_OPENING:
            store.warm_up()

    watcher = Watcher(lambda call: store.suggestions().position(call), log=log)
    store.on_write = watcher.note_write

    def close() -> None:
        watcher.close(WATCH_STOP_S)
        store.close()

    info = ServerInfo(
        name="mnemolog",
        title="mnemolog",
        version=__version__,
        instructions=INSTRUCTIONS,
        tools=offered(make_tools(store.app), config),
        resources=make_resources(store.app),
        templates=make_templates(store.app, store.suggestions),
        prompts=make_prompts(store.suggestions),
    )
    connection = Connection(
        info,
        write=write,
        log=log,
        watcher=watcher,
        log_debug=log if config.logs("debug") else None,
    )
    serve(connection, pipes, on_close=close)


def offered(tools: tuple[Tool, ...], config: Config) -> tuple[Tool, ...]:
    """Return the tools that the settings ask for, in their order."""
    if config.tools == "full":
        return tools
    return tuple(tool for tool in tools if tool.name in CORE_TOOLS)
