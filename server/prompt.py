"""A prompt: a request to the model that a person picks by name and fills in."""

from collections.abc import Callable, Mapping

from msgspec import Struct

from server.completion import Complete


class PromptArgument(Struct, frozen=True, kw_only=True):
    """One thing to fill in.

    Attributes:
        name: Its name for machines.
        description: What goes there.
        required: Whether there is no prompt without it.
        complete: Finishes what is being typed; None if nothing is known.
    """

    name: str
    description: str
    required: bool
    complete: Complete | None = None


class Prompt(Struct, frozen=True, kw_only=True):
    """A prompt as a client shows it.

    Attributes:
        name: Its name for machines.
        title: Its name for people.
        description: What it is for.
        arguments: What it is filled in with.
        write: Makes the text of the one message, spoken by the user, from the arguments given.
    """

    name: str
    title: str
    description: str
    arguments: tuple[PromptArgument, ...]
    write: Callable[[Mapping[str, str]], str]
