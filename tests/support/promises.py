"""What mnemolog promises, each promise under an id, and the tests that prove it.

A test that proves a promise cites it: `@pytest.mark.guarantee("G-ACK-1")`. The sentences stand here
and nowhere else: `docs/guarantees.md` prints all of them, with what is not promised and where the
proofs are, and the README prints those that are marked. `tests/test_guarantees.py` fails when a
promise has no test and when a test cites what is no promise.

A promise's number is never given to another one.

A promise that waits for a part which is not there yet says so in `awaits`. It is printed nowhere
and needs no test; once a test cites it, `awaits` must go.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Guarantee:
    """One promise.

    Attributes:
        id: `G-`, a word for what it is about, and a number.
        promise: One sentence.
        limit: What is not promised along with it; empty where the sentence says all.
        in_readme: Whether it is one of those that a reader of the README sees.
        awaits: The part that it waits for; empty once it is made.
    """

    id: str
    promise: str
    limit: str = ""
    in_readme: bool = False
    awaits: str = ""


GROUPS: Final[dict[str, tuple[Guarantee, ...]]] = {
    "What was acknowledged": (
        Guarantee(
            "G-ACK-1",
            "An acknowledged write is on disk: no kill, at any moment, loses it, and at most one "
            "unacknowledged one more is there for each writer.",
            "What a disk loses after it has said that it had synced it.",
            in_readme=True,
        ),
        Guarantee(
            "G-ACK-2",
            "Bytes that a dead process left and may not have synced are written and synced again "
            "before anybody believes them.",
        ),
        Guarantee(
            "G-ACK-3",
            "After a failed write or sync nobody builds on bytes that may not be there; the caller "
            "is told whether it was written.",
            "That it is always known: where the disk refuses everything the answer is "
            "`outcome_unknown`, and a repeat with the same key finds out.",
            in_readme=True,
        ),
        Guarantee(
            "G-ACK-4",
            "A full disk refuses writes and loses nothing, and once there is room writing goes on "
            "without a restart.",
            "That a full disk can be written to: no room is kept in reserve.",
        ),
        Guarantee(
            "G-APPLY-1",
            "An event that the tables cannot take is refused instead of stored, and stops no "
            "other.",
        ),
        Guarantee(
            "G-BATCH-1",
            "Of the events of one operation all survive or none.",
            "That a call is one operation: each memory of `memory_add_many` is one of its own.",
        ),
        Guarantee(
            "G-CANCEL-1",
            "A write that is cancelled is there whole or not at all, and its repetition with the "
            "same key does not double it.",
        ),
        Guarantee(
            "G-MANY-1",
            "Many processes write one store at once; nothing is lost, nothing is there twice, also "
            "while another one swaps the projections.",
            "Many machines: a home on a network drive is for one machine at a time.",
            in_readme=True,
        ),
        Guarantee(
            "G-MANY-2",
            "Reading waits for no writer, and a writer waits for another no longer than the "
            "setting says and is then told `busy`.",
        ),
    ),
    "Damage": (
        Guarantee(
            "G-DAMAGE-1",
            "Damage of the ledger is never silent: every flipped byte, every truncation and every "
            "missing file is noticed.",
            "The same of changes by somebody who computes every digest anew, or puts all files "
            "back to an earlier day: that takes a head noted elsewhere (G-HEAD-1).",
            in_readme=True,
        ),
        Guarantee(
            "G-DAMAGE-2",
            "Damage is never cut or repaired: writes stop, and what is whole stays readable.",
            in_readme=True,
        ),
        Guarantee(
            "G-DAMAGE-3",
            "Damage of the ledger is told unasked: by a server on standard error when it starts, "
            "by `memory_health`, and by every write, which is refused by segment, record and byte.",
            "That a search tells of it: it answers from the tables, which hold what was stored.",
        ),
        Guarantee(
            "G-TAIL-1",
            "An unfinished tail is set aside and kept, never thrown away, and the ledger goes on.",
            in_readme=True,
        ),
        Guarantee(
            "G-VERIFY-1",
            "`verify` changes nothing, names the place of all that it finds, and its status tells "
            "clean from damaged and both from a store that it could not look at.",
        ),
        Guarantee(
            "G-HEAD-1",
            "A head that was noted elsewhere shows whether the ledger was cut, put back or written "
            "anew since, also by somebody who computed every digest anew.",
            "Who wrote a record, and that none was added behind the head.",
            in_readme=True,
        ),
        Guarantee(
            "G-CHECKPOINT-1",
            "A signed checkpoint that is kept elsewhere shows whether the ledger was cut, put back "
            "or written anew since, also by somebody who computed every digest anew.",
            "The same of somebody who has the key as well, and that none was added behind it.",
            in_readme=True,
            awaits="signed checkpoints",
        ),
        Guarantee(
            "G-CHECKPOINT-2",
            "That a record is in the ledger, and that a ledger grew out of an earlier one, is "
            "proven by a few digests that are checked without the ledger.",
            awaits="signed checkpoints",
        ),
        Guarantee(
            "G-POWER-1",
            "After a power cut at any moment, with whatever a disk may then hold of what was not "
            "synced, the store opens and has all that was acknowledged.",
            "What a disk loses after it has said that it had synced it.",
            in_readme=True,
            awaits="the enumeration of states after a power cut",
        ),
        Guarantee(
            "G-HEALTH-1",
            "`doctor` and `memory_health` name a damaged ledger, lost projections, a full disk, "
            "open permissions, a wrong clock, kept torn bytes and unfinished jobs, each with what "
            "to do.",
            awaits="the doctor",
        ),
        Guarantee(
            "G-BACKUP-1",
            "A backup holds all that was acknowledged before it began, also while others write, "
            "and one that was not finished cannot be taken for one.",
            in_readme=True,
            awaits="backup and restore",
        ),
    ),
    "Erasing": (
        Guarantee(
            "G-ERASE-1",
            "After a redaction no file of the store holds the text, its words, its stems, its "
            "salt or its copies, and until then the reply says that it is not done.",
            "Files outside the home, such as exports, backups and snapshots of the system: those "
            "that are known are listed, and none is changed.",
            in_readme=True,
            awaits="redaction",
        ),
        Guarantee(
            "G-ERASE-2",
            "A redacted ledger verifies, and a payload may be missing only where a redaction names "
            "it.",
            in_readme=True,
            awaits="redaction",
        ),
        Guarantee(
            "G-ERASE-3",
            "A redaction that is killed at any step goes on at the next start, and what cannot be "
            "undone is never half done.",
            awaits="redaction",
        ),
        Guarantee(
            "G-ERASE-4",
            "What was redacted does not come back by a rebuild, a replay, an undo, a search of the "
            "past or a backup that is put back.",
            "The same of a text that somebody stores again.",
            in_readme=True,
            awaits="redaction",
        ),
        Guarantee(
            "G-ERASE-5",
            "Who redacted what, when and why stays known, and the reason can be redacted itself.",
            awaits="redaction",
        ),
        Guarantee(
            "G-ERASE-6",
            "A dry run names what a redaction would take, and writes nothing.",
            awaits="redaction",
        ),
    ),
    "Audit": (
        Guarantee(
            "G-AUDIT-1",
            "A stranger with nothing but Python checks an exported bundle, and a changed byte, a "
            "dropped record, an added key and a payload that is missing without its redaction are "
            "each named.",
            "That nothing was left out at the end of a part of the history, and that a signature "
            "of the same machine is an independent one.",
            in_readme=True,
            awaits="the audit export",
        ),
        Guarantee(
            "G-AUDIT-2",
            "The history of one memory, one entity or one time can be shown and checked without "
            "showing the rest.",
            "That the headers in between say nothing: times, kinds and numbers are in a proof.",
            awaits="the audit export",
        ),
        Guarantee(
            "G-AUDIT-3",
            "`audit show` names for every change who made it, when and why, and for every "
            "redaction by whom it was.",
            awaits="the audit export",
        ),
        Guarantee(
            "G-AUDIT-4",
            "Verifying and exporting stream: their memory does not grow with the ledger.",
            awaits="the audit export",
        ),
    ),
    "The ledger's format": (
        Guarantee(
            "G-FORMAT-1",
            "Common tools read the ledger, the live segment as JSON Lines and a sealed one as one "
            "zstd frame, and Python's standard library alone checks its chain.",
            in_readme=True,
        ),
        Guarantee(
            "G-FORMAT-2",
            "What an earlier program of this format wrote is read as it was written, and appended "
            "to in the same bytes.",
        ),
        Guarantee(
            "G-FORMAT-3",
            "An event of a newer program stops an older one with an error and is never skipped.",
        ),
        Guarantee(
            "G-HEADER-1",
            "A record's header, which lives for ever, holds nothing that was given, and none can "
            "be used to try guesses at what was.",
            "That times, random ids, kinds of events and the number of them say nothing.",
        ),
        Guarantee(
            "G-SEAL-1",
            "A segment's raw file goes only after its compressed copy was read back from the disk "
            "and is the same.",
        ),
    ),
    "The projections": (
        Guarantee(
            "G-TABLES-1",
            "Projections are disposable: tables rebuilt from zero have the same state digests as "
            "the tables that grew.",
            in_readme=True,
        ),
        Guarantee(
            "G-TABLES-2",
            "Projections that are deleted or damaged are rebuilt without being asked, and "
            "meanwhile no answer is an empty one.",
            "That a search finds a row that somebody changed in place: `verify --digest` does, and "
            "a rebuild mends it.",
            in_readme=True,
        ),
        Guarantee(
            "G-TABLES-3",
            "A rebuild that is killed, or finds the disk full, leaves the old projections in use "
            "and whole.",
        ),
        Guarantee(
            "G-ROOM-1",
            "Steady writing does not let the write-ahead log grow without end, and one that a "
            "reader pinned is cut after it lets go, without a restart.",
        ),
        Guarantee(
            "G-TABLES-4",
            "An older program neither reads nor replaces the projections that a newer one made; it "
            "says that it is `outdated`.",
        ),
    ),
    "History": (
        Guarantee(
            "G-UNDO-1",
            "Every operation can be undone while nothing later touched the same memories, the undo "
            "included.",
            "An undo of an operation that later ones built on: the refusal names them.",
            in_readme=True,
        ),
        Guarantee(
            "G-UNDO-2",
            "An undo in bulk takes back newest first what can be, and names what it skipped and "
            "why.",
            awaits="undo in bulk",
        ),
        Guarantee(
            "G-HISTORY-1",
            "Every version of a memory is kept, with the ledger positions between which it was "
            "current.",
            in_readme=True,
        ),
        Guarantee(
            "G-CHAIN-1",
            "Chains stay whole: whatever is deleted, expired or undone, what is left is joined and "
            "has a newest memory.",
            in_readme=True,
        ),
        Guarantee(
            "G-REPEAT-1",
            "A repeat with the same idempotency key writes nothing, after a restart and a rebuild "
            "too.",
            "The same of two clients or two workspaces: a key belongs to one of each.",
            in_readme=True,
        ),
        Guarantee(
            "G-STALE-1",
            "A change with an `expected_version` that the memory has no more is refused, says what "
            "is current and writes nothing.",
            in_readme=True,
        ),
        Guarantee(
            "G-ASOF-1",
            "`as_of` answers with what was true in the world at a moment, as it is known today.",
        ),
        Guarantee(
            "G-PAST-1",
            "`replay` shows the store as it was at any position or time, and judges what had "
            "expired by that time.",
        ),
        Guarantee(
            "G-KNOWN-1",
            "`known_at` answers as a store would that was replayed until then, hits and scores, "
            "less what was redacted since, whose number the reply says.",
            in_readme=True,
            awaits="time travel",
        ),
        Guarantee(
            "G-KNOWN-2",
            "`diff` names all that changed between two moments and nothing else.",
            awaits="time travel",
        ),
    ),
    "What an answer holds": (
        Guarantee(
            "G-QUERY-1",
            "The text of a query is never syntax: whatever is asked, it cannot break the search.",
            in_readme=True,
        ),
        Guarantee(
            "G-FILTER-1",
            "All filters given hold, each exactly and none as a pattern, and pages of any size cut "
            "one and the same list.",
            in_readme=True,
        ),
        Guarantee(
            "G-SPACE-1",
            "A workspace's memories are neither seen nor touched from another one.",
            "Access control: whoever may start a server on a home may name any workspace.",
            in_readme=True,
        ),
        Guarantee(
            "G-EXPIRY-1",
            "An expired memory is hidden from every answer about now from the very moment; no job "
            "has to run.",
            in_readme=True,
        ),
        Guarantee(
            "G-DELETE-1",
            "Deletion by filter takes what the filter says and nothing else; an empty, null or "
            "misspelt filter is refused.",
            in_readme=True,
        ),
        Guarantee(
            "G-DATE-1",
            "A time that is not understood is refused, and never means any time at all.",
        ),
        Guarantee(
            "G-PAGE-1",
            "Pages of a list hold each memory once, whatever is added or deleted between them; "
            "exports are complete.",
            in_readme=True,
        ),
        Guarantee(
            "G-REPLY-1", "Replies are bounded and paged, and say what was cut.", in_readme=True
        ),
        Guarantee(
            "G-TEXT-1",
            "A text comes back character by character as it was stored.",
            "What is no Unicode: its broken pieces become U+FFFD, and the reply says so.",
        ),
        Guarantee(
            "G-DATA-1",
            "What is stored comes back as data beside where it comes from, in a structure that it "
            "cannot break out of, and is in no description of a tool.",
            "That a model which reads a text does not follow it, and that a Markdown export, which "
            "gives texts to people as they are, keeps them apart from what stands around them.",
            in_readme=True,
        ),
        Guarantee(
            "G-QUIET-1",
            "A search writes nothing into the store; its log is written beside it, later, and its "
            "loss or damage touches no call.",
            in_readme=True,
        ),
    ),
    "The server and the commands": (
        Guarantee(
            "G-STDOUT-1",
            "Standard output carries protocol lines and nothing else.",
            in_readme=True,
        ),
        Guarantee(
            "G-ANSWER-1",
            "Every request gets one answer, also at the end of input and at a signal; a cancelled "
            "one gets at most one.",
            in_readme=True,
        ),
        Guarantee(
            "G-SDK-1",
            "Valid requests are answered as the official SDK's server answers them, in both eras "
            "of the protocol.",
            in_readme=True,
        ),
        Guarantee(
            "G-INPUT-1",
            "Wrong input is refused with the field and what is accepted, and nothing is written.",
            in_readme=True,
        ),
        Guarantee(
            "G-LOG-1",
            "The log on standard error holds no content and no query, at any level.",
            "The same of a fault of the program: its traceback goes there.",
        ),
        Guarantee(
            "G-NET-1",
            "No command and no server opens a connection to anywhere.",
            in_readme=True,
        ),
        Guarantee(
            "G-NEWS-1",
            "Who subscribes to a resource is told of its changes, by whichever process they were "
            "made.",
            "A message for each change, since several at once are one, and one when time alone "
            "changes something: what has expired goes at once and is told with the next write.",
        ),
        Guarantee(
            "G-OUTPUT-1",
            "A file that a command writes is there whole or not at all, is its owner's alone, and "
            "replaces none unless told to.",
        ),
        Guarantee(
            "G-SETTINGS-1",
            "A setting that is not accepted stops the process with status 2 and a message that "
            "says what is.",
        ),
        Guarantee(
            "G-STATUS-1",
            "The exit status of a command tells done, damage, wrong usage, a refusal and what is "
            "not possible now apart.",
        ),
    ),
    "Files": (
        Guarantee(
            "G-FILES-1",
            "Folders have mode 0700 and files 0600 from the moment they are made.",
            "Encryption: whoever may read the files may read the memories.",
            in_readme=True,
        ),
        Guarantee(
            "G-READ-1",
            "A store on read-only media can be read whole and is not changed.",
            in_readme=True,
        ),
        Guarantee(
            "G-DRIVE-1",
            "Where a file system has no locks nothing is written, and on a network drive the "
            "projections are kept on this machine; the ledger stays valid.",
            "A network drive that says it has locks and has none.",
        ),
    ),
}
"""Heading -> its promises."""

_ALL: Final = tuple(guarantee for group in GROUPS.values() for guarantee in group)

GUARANTEES: Final = tuple(guarantee for guarantee in _ALL if not guarantee.awaits)
"""What is promised."""

COMING: Final = tuple(guarantee for guarantee in _ALL if guarantee.awaits)
"""What will be."""
