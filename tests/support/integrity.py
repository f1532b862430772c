"""What the public suite `agent-memory-integrity` found of mnemolog, attack by attack.

`docs/guarantees.md` prints these results; `tests/contracts/test_memory_integrity.py` runs the suite
and fails when any of them is another. `tests.support.tampering` holds the adapters.
"""

from dataclasses import dataclass
from typing import Final

SUITE: Final = "0.6.3"
"""The release whose results these are."""

EDITS: Final = {
    "tamper": "T1, a text is changed",
    "truncate": "T2, the newest two are cut off",
    "delete_middle": "T3, one in the middle is taken out",
    "reorder": "T4, two neighbours change places",
    "forge": "T5, one is added behind the last",
    "cross_replay": "T6, another workspace's text stands in one's place",
    "rollback_replay": "T7, the oldest text stands in the newest's place",
    "metadata_tamper": "T8, another is said to have written it",
    "snapshot_rollback": "T9, all files are put back to an earlier day",
}
"""The suite's name of an edit of the files -> its number and what it does to a memory."""

VERDICTS: Final = {"a": "accepted", "r": "reported", "x": "rejected"}
"""Letter -> the suite's word: nothing was said, a check that was asked said so, a read refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AtRest:
    """What became of the nine edits, of one kind of file and one question.

    Attributes:
        scene: Its name in `tests.support.tampering`.
        edited: What the attacker changed.
        asked: What was asked afterwards.
        verdicts: A letter for each of the nine.
        accepted_because: Why what was accepted was; empty where nothing was.
    """

    scene: str
    edited: str
    asked: str
    verdicts: str
    accepted_because: str


AT_REST: Final = (
    AtRest(
        scene="ledger: search",
        edited="the ledger",
        asked="`search`",
        verdicts="aaaaaaaaa",
        accepted_because="A search reads the tables and not the ledger. It answers with what was "
        "stored, as if nothing had happened, until somebody writes, asks or starts a server.",
    ),
    AtRest(
        scene="ledger: health",
        edited="the ledger",
        asked="`health`",
        verdicts="rrrrrrrra",
        accepted_because="An earlier state of all files is a sound store.",
    ),
    AtRest(
        scene="ledger: verify",
        edited="the ledger",
        asked="`verify`",
        verdicts="rrrrrrrra",
        accepted_because="An earlier state of all files is a sound store.",
    ),
    AtRest(
        scene="ledger, no tables: verify",
        edited="the ledger; the tables are deleted",
        asked="`verify`",
        verdicts="rarrrrrra",
        accepted_because="The tables remember how far the ledger had come. Without them a ledger "
        "that was cut at the end of a write is the ledger of an earlier day.",
    ),
    AtRest(
        scene="new hashes, no tables: verify",
        edited="the ledger, and every digest is computed anew; the tables are deleted",
        asked="`verify`",
        verdicts="aaaaaaaaa",
        accepted_because="The chain holds no secret: whoever writes it anew from the first changed "
        "record on has written a sound ledger.",
    ),
    AtRest(
        scene="new hashes, no tables: verify --head",
        edited="the ledger, and every digest is computed anew; the tables are deleted",
        asked="`verify --head`, with a head noted elsewhere",
        verdicts="rrrrarrrr",
        accepted_because="A record added behind the head is what the next honest write is too. A "
        "head says what was there, not who may add to it.",
    ),
    AtRest(
        scene="tables: search",
        edited="the tables",
        asked="`search`",
        verdicts="aaaaaaaaa",
        accepted_because="The tables are what a search answers from, and it does not compare them "
        "with the ledger.",
    ),
    AtRest(
        scene="tables: verify",
        edited="the tables",
        asked="`verify`",
        verdicts="rrrarraaa",
        accepted_because="Without `--digest` it compares the tables with their own indexes only.",
    ),
    AtRest(
        scene="tables: verify --digest",
        edited="the tables",
        asked="`verify --digest`",
        verdicts="rrrrrrrra",
        accepted_because="An earlier state of all files is a sound store.",
    ),
)
"""In the order of `tests.support.tampering.SCENES`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontDoor:
    """What became of one attack through the tool's own interface.

    Attributes:
        attack: The suite's name.
        tries: What the attacker does.
        kept_out: Whether nothing of it came back.
        because: Why.
    """

    attack: str
    tries: str
    kept_out: bool
    because: str


FRONT_DOOR: Final = (
    FrontDoor(
        attack="memory_injection",
        tries="stores a fact that the user never stated, in the user's workspace",
        kept_out=False,
        because="What may write a workspace is believed there. The history says which client wrote "
        "it, and the operation can be undone.",
    ),
    FrontDoor(
        attack="cross_session_bleed",
        tries="asks in another workspace for what a user stored in theirs",
        kept_out=True,
        because="A search sees one workspace and nothing of any other.",
    ),
    FrontDoor(
        attack="retrieval_hijack",
        tries="stores one text stuffed with the words of a subject, to be found in place of others",
        kept_out=False,
        because="The ranking is by words, and such a text has them.",
    ),
    FrontDoor(
        attack="indirect_prompt_injection",
        tries="stores a text that reads like an instruction to the model",
        kept_out=False,
        because="Texts come back as they were stored, in a field of a JSON object, and are not "
        "judged. Telling data from instructions is for who gives them to a model.",
    ),
    FrontDoor(
        attack="update_poisoning",
        tries="stores a false correction of a fact",
        kept_out=False,
        because="The correction is found beside the fact. It replaces nothing: that takes the "
        "fact's id.",
    ),
    FrontDoor(
        attack="metadata_poisoning",
        tries="gives its own text the tag that a reader trusts",
        kept_out=False,
        because="A tag is a word that the writer chose, and no proof of anything.",
    ),
)
"""In the suite's order."""
