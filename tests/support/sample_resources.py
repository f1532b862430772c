"""Resources and prompts for tests: one text that a tool changes, others that stay or fail."""

from collections.abc import Callable, Mapping

from server.completion import Completion, among
from server.errors import BusyError, NotFoundError
from server.prompt import Prompt, PromptArgument
from server.resource import Resource, ResourceTemplate
from server.tool import Call, Tool
from tests.support.sample_tools import Done, Nothing

PAGES = ("first", "second", "third")


class Board:
    """What is written on it is how often it was turned."""

    def __init__(self) -> None:
        self.turns = 0
        self.on_turn: Callable[[], None] = lambda: None

    def position(self, _: Call) -> int:
        return self.turns

    def turn(self, _: Nothing, __: Call) -> Done:
        self.turns += 1
        self.on_turn()
        return Done()

    def read(self, _: Call) -> str:
        return f"turned {self.turns} times"


BOARD = Board()

TURN = Tool(
    name="turn",
    title="Turn",
    description="Turns the board.",
    args=Nothing,
    result=Done,
    read_only=False,
    destructive=False,
    idempotent=False,
    run=BOARD.turn,
)


def busy(_: Call) -> str:
    raise BusyError("Another process is at it.", details={"seconds": 3})


def page(name: str, _: Call) -> str:
    if name not in PAGES:
        raise NotFoundError("There is no such page.")
    return f"<{name}>"


def letters(prefix: str, _: Call) -> Completion:
    """Complete with one letter more, as if there were thousands of words."""
    return Completion(values=tuple(f"{prefix}{letter}" for letter in "abc"), total=5_000)


def _resource(uri: str, read: Callable[[Call], str]) -> Resource:
    return Resource(
        uri=uri,
        name=uri.removeprefix("sample://"),
        title="A text",
        description="Text for tests.",
        mime_type="text/plain",
        read=read,
    )


RESOURCES = (
    _resource("sample://board", BOARD.read),
    _resource("sample://still", lambda _: 'é "still" \n 😀'),
    _resource("sample://busy", busy),
)

TEMPLATES = (
    ResourceTemplate(
        prefix="sample://page/",
        variable="name",
        name="page",
        title="A page",
        description="One page of three.",
        mime_type="text/html",
        complete=among(PAGES),
        read=page,
    ),
)


def _greet(given: Mapping[str, str]) -> str:
    return f"Greet {given['whom']} in {given.get('language', 'any language')}."


PROMPTS = (
    Prompt(
        name="greet",
        title="Greet",
        description="Greet somebody.",
        arguments=(
            PromptArgument(name="whom", description="Somebody", required=True),
            PromptArgument(
                name="language", description="A language", required=False, complete=letters
            ),
        ),
        write=_greet,
    ),
    Prompt(
        name="rest", title="Rest", description="Do nothing.", arguments=(), write=lambda _: "Rest."
    ),
)
