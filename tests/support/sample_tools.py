"""Tools with every habit a real one may have: slow, failing, printing, deaf to cancellation.

Where a test has to know that a tool is at work, or has to let it go on, the two meet at a named
pipe: opening one end waits for the other.
"""

import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

from msgspec import Meta, Struct

from server.errors import UseCaseError
from server.tool import Call, Tool


class NoteMissingError(UseCaseError):
    code = "not_found"


class Nothing(Struct, forbid_unknown_fields=True):
    pass


class Done(Struct):
    ok: bool = True


class Part(Struct, forbid_unknown_fields=True):
    name: Annotated[str, Meta(min_length=1, max_length=20)]
    weight: Annotated[float, Meta(ge=0, le=1)] = 0.5


class Note(Struct, forbid_unknown_fields=True):
    text: Annotated[str, Meta(description="What to note.", min_length=1)]
    layer: Annotated[
        Literal["semantic", "episodic", "procedural"], Meta(description="Kind of note.")
    ] = "semantic"
    title: Annotated[
        Annotated[str, Meta(max_length=80)] | None, Meta(description="A short name.")
    ] = None
    tags: Annotated[list[str], Meta(description="Words to find it by.", max_length=5)] = []
    meta: Annotated[dict[str, Any], Meta(description="Anything else.")] = {}
    parts: list[Part] = []
    limit: Annotated[int, Meta(description="How many.", ge=1, le=50)] = 10
    urgent: bool = False


class Noted(Struct, omit_defaults=True):
    note: Note
    actor: str = ""
    repaired: bool = False


class Wanted(Struct, forbid_unknown_fields=True):
    note_id: str


class Size(Struct, forbid_unknown_fields=True):
    characters: Annotated[int, Meta(ge=0)]


class Text(Struct):
    text: str


class Gate(Struct, forbid_unknown_fields=True):
    gate: str


class Steps(Struct, forbid_unknown_fields=True):
    steps: list[float]
    total: float | None = None


def note(args: Note, call: Call) -> Noted:
    return Noted(args, call.actor_name, call.repaired)


def find(args: Wanted, _: Call) -> Done:
    raise NoteMissingError(f"There is no note {args.note_id}.", details={"note_id": args.note_id})


def crash(_: Nothing, __: Call) -> Done:
    raise RuntimeError("SELECT secret FROM /var/private")


def leave(_: Nothing, __: Call) -> Done:
    sys.exit(3)


def fill(args: Size, _: Call) -> Text:
    return Text("x" * args.characters)


def speak(_: Nothing, __: Call) -> Done:
    print("printed")  # noqa: T201 - what a library might do
    os.write(1, b"written\n")
    subprocess.run(["echo", "from a child"], check=True)
    warnings.warn("warned", stacklevel=1)
    return Done()


def listen(_: Nothing, __: Call) -> Text:
    return Text(os.read(0, 100).decode())


def hold(args: Gate, _: Call) -> Text:
    return Text(Path(args.gate).read_text())


def obey(args: Gate, call: Call) -> NoReturn:
    cancelled = threading.Event()
    with call.on_cancel(cancelled.set), Path(args.gate).open("w") as gate:
        cancelled.wait()
        gate.write("cancelled")
    raise KeyError("what was interrupted fails in its own way")


def persist(args: Gate, _: Call) -> NoReturn:
    with Path(args.gate).open("w"):
        pass
    while True:
        threading.Event().wait()


def step(args: Steps, call: Call) -> Done:
    for done in args.steps:
        call.progress(done, args.total, f"at {done}")
    _finished.append(call)
    return Done()


def step_late(_: Nothing, __: Call) -> Done:
    _finished.pop().progress(1e9)
    return Done()


_finished: list[Call] = []


def _tool(
    run: Callable[[Any, Call], Struct],
    args: type[Struct],
    result: type[Struct],
    *,
    read_only: bool,
) -> Tool:
    return Tool(
        name=run.__name__,
        title=run.__name__.title(),
        description=f"Does what {run.__name__} does.",
        args=args,
        result=result,
        read_only=read_only,
        destructive=False,
        idempotent=read_only,
        run=run,
    )


TOOLS = (
    _tool(note, Note, Noted, read_only=False),
    _tool(find, Wanted, Done, read_only=True),
    _tool(crash, Nothing, Done, read_only=True),
    _tool(leave, Nothing, Done, read_only=True),
    _tool(fill, Size, Text, read_only=True),
    _tool(speak, Nothing, Done, read_only=True),
    _tool(listen, Nothing, Text, read_only=True),
    _tool(hold, Gate, Text, read_only=True),
    _tool(obey, Gate, Done, read_only=True),
    _tool(persist, Gate, Done, read_only=True),
    _tool(step, Steps, Done, read_only=True),
    _tool(step_late, Nothing, Done, read_only=True),
)

NAME, TITLE, VERSION = "sample", "Sample", "1.2.3"
INSTRUCTIONS = "Notes for tests."
