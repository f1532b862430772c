"""Decisions about edits of a memory's text: patching and appending."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import Final

import msgspec

from ledger import MemoryUpdated, NewEvent
from projections.facts import Current, Facts
from projections.wording import counted
from server.commands import CONTENT_CHARS_MAX, AppendArgs, Patch, PatchArgs
from server.decision import Decision, Moment, content_event, existing, refuse_blank
from server.errors import AnchorError, InvalidArgumentsError
from server.results import AppendResult, PatchResult

_ALIKE: Final[tuple[tuple[str, Callable[[str], str]], ...]] = (
    ("line ends", lambda text: text.replace("\r\n", "\n")),
    ("the form of its Unicode characters", lambda text: unicodedata.normalize("NFC", text)),
    ("blanks", lambda text: " ".join(text.split())),
    ("case", str.casefold),
    ("blanks and case", lambda text: " ".join(text.casefold().split())),
)
"""What an anchor that is not there may differ in, and what makes that alike."""


def decide_patch(args: PatchArgs, facts: Facts, moment: Moment) -> Decision:
    """Replace pieces of a memory's text, each in the result of the one before; all or none."""
    current = existing(facts, args.id, args.expected_version)
    content, replacements = current.state.content, 0
    for index, patch in enumerate(args.patches):
        content, count = _replaced(content, patch, index)
        replacements += count
    _refuse_bad_content(content)
    changed = content != current.state.content

    def reply(position: int) -> PatchResult:
        return PatchResult(
            patched_id=current.id,
            changed=changed,
            patches_applied=len(args.patches),
            replacements=replacements,
            content_chars=len(content),
            version=position if changed else current.version,
            position=position if changed else None,
        )

    return _decision(current, content, moment, reply)


def decide_append(args: AppendArgs, facts: Facts, moment: Moment) -> Decision:
    """Add text at the end of a memory's text."""
    current = existing(facts, args.id, args.expected_version)
    refuse_blank("text", args.text)
    content = f"{current.state.content}{args.separator}{args.text}"
    _refuse_bad_content(content)

    def reply(position: int) -> AppendResult:
        return AppendResult(
            appended_id=current.id,
            changed=True,
            content_chars=len(content),
            version=position,
            position=position,
        )

    return _decision(current, content, moment, reply)


def _decision(
    current: Current,
    content: str,
    moment: Moment,
    reply: Callable[[int], PatchResult | AppendResult],
) -> Decision:
    if content == current.state.content:
        return Decision(events=(), reply=reply)
    state = msgspec.structs.replace(current.state, content=content)
    event = NewEvent(current.id, content_event(MemoryUpdated, state, moment), current.last_seq)
    return Decision(events=(event,), reply=reply)


def _replaced(content: str, patch: Patch, index: int) -> tuple[str, int]:
    """Return a text with one patch applied, and in how many places.

    Raises:
        AnchorError: the anchor is not there, or is there more than once.
        InvalidArgumentsError: the patch replaces a text by itself.

    """
    if patch.old_string == patch.new_string:
        raise InvalidArgumentsError(
            f"`patches[{index}]` replaces a text by itself; nothing was changed.",
            details={"field": f"patches[{index}]"},
        )
    matches = content.count(patch.old_string)
    if not matches or (matches > 1 and not patch.replace_all):
        raise AnchorError(
            f"`patches[{index}].old_string` {_why(content, patch, matches)}; nothing was changed.",
            details={"index": index, "matches": matches},
        )
    return content.replace(patch.old_string, patch.new_string), matches


def _why(content: str, patch: Patch, matches: int) -> str:
    if matches:
        return (
            f"is there {counted(matches, 'time')}: pass more of the text around it, or "
            "`replace_all: true`"
        )
    for difference, alike in _ALIKE:
        if (anchor := alike(patch.old_string)) and anchor in alike(content):
            return f"is not there as it is written: it differs in {difference}"
    return (
        "is not there. It is compared character by character with the text that the patches before "
        "it left; memory_get shows the text"
    )


def _refuse_bad_content(content: str) -> None:
    if len(content) > CONTENT_CHARS_MAX:
        raise InvalidArgumentsError(
            f"The text would have {len(content)} characters, and at most {CONTENT_CHARS_MAX} are "
            "accepted; nothing was changed. Put the rest into another memory.",
            details={"field": "content", "chars": len(content), "max": CONTENT_CHARS_MAX},
        )
    refuse_blank("content", content)
