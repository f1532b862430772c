r"""The truth: an append-only, hash-chained log of events in plain files.

This docstring is the specification of format 1. A change of the format and a change of this text
are one commit. Everything public is re-exported here; other packages import nothing else.

Layout
    <home>/ledger/                     directories 0700, files 0600, from the moment of creation
        FORMAT                         what this ledger is; written once, last of all at creation
        LOCK                           flock'd by every change; empty; never unlinked
        SEAL                           flock'd by the one sealer or redactor at work; empty; never
                                       unlinked
        MANIFEST.json                  the sealed segments; replaced atomically
        log/                           the segments
        checkpoints                    signed notes of what the ledger was; made with the first one
        quarantine/                    torn bytes that were cut, kept for people; no truth in them
    <home>/redactions                  what was erased, for a ledger put back from an older copy

    A segment is named after the seq of its first record, in 20 digits. A ledger of 30,000 records
    may hold
        log/00000000000000000001.g0.jsonl.zst   records 1 to 14,200, sealed, generation 0
        log/00000000000000014201.jsonl          14,201 to 28,350, rolled and not sealed yet
        log/00000000000000028351.jsonl          28,351 on: the live segment
    The raw segment with the greatest first seq is the live one. If a segment exists both raw and
    sealed, the manifest decides: what it names is read sealed, all else raw. Names that end in
    `.tmp` are files in the making and mean nothing. Each redaction that takes something out of a
    segment writes the next generation of it: `.g1`, `.g2`, and so on; the manifest says which one
    is in force, and the others are leftovers that the next sealing or redaction removes.

Envelopes
    FORMAT, MANIFEST.json, the first and last line of a segment and each line of `redactions` are
    lines of exactly
        {"<name>":<inner>,"d":"<64 hex>"}\n          d = SHA-256(0x01 || raw inner)
    and FORMAT and MANIFEST.json are exactly one such line. Inner bytes are in the one form that
    their fields encode to, so no byte of them is unprotected.
        format    version, ledger (random id), hash ("sha256"), genesis (`prev` of record 1:
                  SHA-256(0x03 || ledger)), origin (of signed checkpoints), key (HMAC key of
                  idempotency digests, 64 hex)
        manifest  version, ledger, segments: name, gen, first, last, prev, digest, count, raw_bytes,
                  file_bytes, sha256 (of the file)
        segment   format, ledger, first, prev (digest of the record before `first`), t
        footer    last, count, digest (of the last record), t
        redaction ledger, redaction (its id), seq, digest (of the erased record)

Record
    One line of exactly three raw parts, at most RECORD_BYTES_MAX (8 MiB) long:
        {"h":<header>,"p":<payload>,"d":"<64 hex>"}\n
        d    = SHA-256(0x00 || raw h)     the record's digest, and the RFC 6962 leaf of h
        h.pc = SHA-256(0x02 || raw p)     the commitment; p begins with a random salt
        h.prev = d of the record before   the chain
    Hashes cover bytes as written. `"p":null` is a payload that was redacted: header and digest stay
    valid. Header fields are those of `Header`; defaults are omitted. A header lives for ever and so
    holds nothing personal: every id in it is random and minted here. Times are
    `2026-11-30T20:29:33.123456Z`, the clock as read; `back` flags a time before the last record's.
    Order is `seq`, which runs from 1 without a gap.

    A *batch* (`b` first seq, `n` size) holds the events of one command: all or none survive.
    A *group* (`g` first seq) holds batches that are written and synced together: whatever comes
    before `g` was durable when the group was written. `g` and `b` are omitted on the record that
    they name.

    Event types and versions are names of ours, mapped to payloads in one table (`record.EVENTS`).
    Released ones never change meaning; an unknown one raises UnknownEventError and is not skipped.

Segment
    Header line, records, and, once rolled, a footer line; nothing after it. Rolled at
    LedgerOptions.segment_bytes_max or segment_age_s_max: footer, sync, the next segment made under
    a temporary name, synced, renamed, directory synced. So a segment always has its whole header,
    and every segment but the newest has its footer.

    Sealed, it is one zstd (or gzip) frame of exactly the rolled file's bytes, with checksum and
    content size. A reader believes it if size and SHA-256 of the file are the manifest's, the frame
    ends, nothing follows it, the content has `raw_bytes` (1 GiB at most), and footer and count
    agree.

Appending (legal order of calls)
    with ledger.lock(timeout_s) as writer:
        for record in writer.catch_up(known): ...    apply what others wrote
        group = writer.group()
        records = group.add(batch)                   as often as wanted; `withdraw` drops the last
        position = group.commit()                    one write, one sync: the commit point

    `catch_up` finds the live segment again, cuts a torn tail (below), and writes good bytes beyond
    `known` again in place and syncs them: their writer may have died before its own sync. Only then
    are they returned. A ledger that is shorter or other than `known` is refused. The first catch-up
    of a Ledger object checks the whole live segment.

    If a write or sync fails, that descriptor is never synced again. The live segment is replaced by
    a copy of its prefix before the group, synced under a new name and renamed (after a write that
    found no space, and no failed sync, cut through a new descriptor instead): outcome
    "not_written". If that fails as well, LOCK is set to mode 0400, which needs no space and which
    every process sees: outcome "unknown". Whoever next takes the lock tries to replace the live
    segment by its whole batches, and removes the mark; until that succeeds nothing is appended.

Reading only
    Opening an existing ledger writes nothing. If the system does not let this process write to its
    folders and its live segment, or its file system knows no flock, `is_read_only` is true and
    `lock` refuses for as long as the object lives. Reading needs neither lock nor permission to
    write.

Torn tail or damage
    Bytes after the last whole batch of the live segment are a tear unless something proves that
    they, or what they replaced, had been durable: a later record of a later group, a footer, a
    record out of its place (module `tail`), or a position the caller has seen. A tear goes to
    `quarantine/<time>-<segment>-<offset>.torn`, is synced there, then cut, and a TornTail is added
    to `ledger.reports`. Whole batches of a partly written group stay. Damage is never cut: it
    raises LedgerDamagedError, stops every append, and leaves the undamaged records readable
    (`read_tolerant`).

Sealing
    Outside the lock, one sealer at a time: compress to a temporary name, sync, read back, inflate
    and compare, rename, sync the directory. Under the lock: manifest, unlink the raw file. After a
    crash at any step the ledger opens, and the next run finishes and tidies up.

Redacting (legal order of calls)
    1. `memory_redacted` events are appended that name the records by seq and digest.
    2. The same is added to `<home>/redactions` (`RedactionList.add`), which outlives the ledger.
    3. `Redactor.rewrite(targets)`, without the ledger's lock.
    4. `Redactor.find(needles)` shows that no file holds the texts and salts any more.
    5. A `redaction_completed` is appended.
    Whoever meets 1 without 5 goes on with 2: every step may be done again.

    `rewrite` checks all targets first: seq, digest, and that the event's type is none of
    workspace_created, agent_registered, memory_redacted, redaction_completed, which are kept for
    ever. If a target stands in the live segment, that is rolled. Then, one segment after the other
    and under SEAL: each target's payload becomes `null`, every other byte of the segment stays;
    the result is sealed as the next generation (1, if it was not sealed) like any segment,
    read back and compared; under the lock the manifest names it, and the old file is unlinked.
    At last what may hold pieces of texts goes: `.tmp` files, other generations, and everything in
    `quarantine/`. Killed between two steps, both files are there and the manifest says which one
    is in force.

    Positions survive: a record is found again by seq and digest when its offset is stale. `verify`
    accepts a missing payload only where a `memory_redacted` anywhere in the ledger names that seq
    and digest, and never on a type that is kept. A named payload that still stands is a note.

    Since the salt goes with the payload, the commitment that stays in the header does not help to
    guess the text.

Backup and restore
    `backup` takes the end under the lock and copies every segment up to it, whatever is sealed,
    rolled or redacted meanwhile. The segment that holds the end becomes the live one of the copy,
    raw and without what follows; so a copy may be rolled elsewhere than its original. It is made as
    `<target>.partial-<id>`, FORMAT last, verified, and renamed.

    `Restoration` makes such a copy of a copy as `<home>/ledger.partial-<id>`, under a lock on
    `<home>/RESTORE`; appends a `memory_redacted` (same redaction, `cause` the redaction) for each
    record that `<home>/redactions` or the present ledger knows as erased and the copy does not;
    rewrites; verifies; and lets it change names with the present ledger, which becomes
    `<home>/ledger.replaced-<time>`, under that one's SEAL and LOCK. Where the file system cannot
    exchange two names there is no ledger for a moment; while one is aside, none is begun anew.

    `erase_aside` takes what is erased later out of those too, in the same way, and removes folders
    `ledger.partial-*` that a killed restore left; it holds `<home>/RESTORE` meanwhile.
    `remove_prepared` removes only the latter, for a store's upkeep: they may hold what is erased.

Checkpoints
    The tree over the first n records is that of RFC 6962, section 2.1, with their digests as leaf
    hashes: record k is leaf k - 1. A checkpoint is a C2SP tlog-checkpoint: a note of three lines
        <origin>                       as in FORMAT
        <n>                            decimal
        <root>                         base64, 32 bytes
    an empty line, and a line for each signature (C2SP signed-note)
        — <name> <base64 of 4 bytes of key id and the signature>
    of Ed25519 over the three lines, newlines included. `name` is the origin; the key id is the
    first bytes of SHA-256(name || 0x0A || 0x01 || public key). The key stands in
    <home>/checkpoint.key, mode 0600, as PKCS #8 in PEM, or where the settings say.

    `checkpoints` holds such notes one after the other. One is appended and synced under the lock,
    after the ledger's end was secured, every record read, and every note in the file found to be
    extended: two that contradict each other are never signed. What follows the last note is a tear:
    it is passed over, reported, and kept in `quarantine/` by the next one. A damaged note is
    reported, and the others count.

    The newest note is a floor for appending: a ledger with fewer records is refused, and bad bytes
    in place of them are damage. `verify` compares the ledger with every note of the file, and of
    files given to it, by size and root; signatures are checked if there is a key. In its own file a
    note by another key is compared and mentioned, as keys may change.

    A proof that a record is in a checkpoint is a C2SP tlog-proof; one that a checkpoint extends an
    earlier one is what C2SP witnesses take (add-checkpoint), and is by RFC 6962, section 2.1.2.

Not promised
    * `read` may show records whose sync has not returned, or has failed; only what `commit` or
      `catch_up` returned is durable. `until_seq` keeps to that.
    * A ledger cut at the end of a write, and its checkpoints with it, looks like an earlier ledger.
      A checkpoint or a position kept elsewhere (`against`, `known` of `verify`) shows it.
    * The chain shows that bytes changed, not who changed them: whoever holds the files and the key
      can write and sign a new history. Checkpoints kept elsewhere are evidence.
    * Erased is what the files say. Freed blocks of a disk, flash cells, a copy-on-write file
      system's older versions, snapshots and backups may hold it until they are overwritten; whoever
      needs more encrypts the disk.
    * Erased records keep their header: when, by whom, on which memory, and that it was erased.
    * A text that other records hold as well is erased from the records that were named only.
    * Appending needs flock and atomic rename from the file system. Missing locks are noticed;
      a network file system that says it has locks and has not is not.
    * A Ledger object belongs to the process that opened it.
"""

from ledger.backups import BackupReport, backup
from ledger.checkpoints import (
    MadeCheckpoint,
    Proof,
    create_checkpoint,
    grow_tree,
    list_checkpoints,
    newest_checkpoint,
    newest_of,
    proof_text,
    prove_extension,
    prove_record,
    publish_checkpoint,
    read_published,
)
from ledger.clock import Clock, SystemClock
from ledger.codec import Codec
from ledger.cover import Cover, CoverNode
from ledger.errors import (
    BackupDamagedError,
    BackupRefusal,
    BackupRefusedError,
    InvalidInstantError,
    InvalidPayloadError,
    LedgerBehindError,
    LedgerDamagedError,
    LedgerError,
    LedgerForkedError,
    LedgerFormatError,
    LedgerNotFoundError,
    LedgerPutAsideError,
    LedgerReadOnlyError,
    LedgerUnreadableError,
    LedgerWriteError,
    LockTimeoutError,
    NoteError,
    PublishedBehindError,
    RecordTooLargeError,
    RedactionRefusal,
    RedactionRefusedError,
    UnknownEventError,
    WriteOutcome,
    WriteReason,
)
from ledger.events import (
    AgentRegistered,
    AliasAdded,
    AliasRemoved,
    AliasState,
    ContentEvent,
    Event,
    MemoryAdded,
    MemoryDeleted,
    MemoryRedacted,
    MemoryRelinked,
    MemoryRestored,
    MemoryState,
    MemoryUpdated,
    RedactedRecord,
    RedactionCompleted,
    RedactionExplained,
    SessionEnded,
    SessionEvent,
    SessionRestored,
    SessionStarted,
    SessionState,
    SessionWithdrawn,
    WorkspaceCreated,
)
from ledger.ids import IdSource, RandomIds
from ledger.instants import format_us, parse_span, parse_us
from ledger.keys import KEY_NAME, ensure_signer, read_signer
from ledger.lines import line_of
from ledger.live import Report, RollFailed
from ledger.merkle import Tree, verify_consistency, verify_inclusion
from ledger.needles import Finding, SearchReport, find_erased, text_needles
from ledger.note import Checkpoint, Note, Signer, VerifierKey, parse_key, parse_note, to_base64
from ledger.notes import SignedCheckpoint
from ledger.osfile import OsFiles, write_reason
from ledger.quarantine import TornTail
from ledger.record import NEVER_ERASED, RECORD_BYTES_MAX, Header, Position, Record
from ledger.redact import Redactor
from ledger.redactions import ErasedRecord, Outstanding, RedactionList, outstanding
from ledger.restore import Aside, Restoration, RestoreReport, erase_aside, remove_prepared
from ledger.seal import Sealer
from ledger.store import Ledger, LedgerOptions, put_aside
from ledger.verify import Problem, VerifyReport, verify
from ledger.writer import Batch, Group, NewEvent, Writer

__all__ = [
    "KEY_NAME",
    "NEVER_ERASED",
    "RECORD_BYTES_MAX",
    "AgentRegistered",
    "AliasAdded",
    "AliasRemoved",
    "AliasState",
    "Aside",
    "BackupDamagedError",
    "BackupRefusal",
    "BackupRefusedError",
    "BackupReport",
    "Batch",
    "Checkpoint",
    "Clock",
    "Codec",
    "ContentEvent",
    "Cover",
    "CoverNode",
    "ErasedRecord",
    "Event",
    "Finding",
    "Group",
    "Header",
    "IdSource",
    "InvalidInstantError",
    "InvalidPayloadError",
    "Ledger",
    "LedgerBehindError",
    "LedgerDamagedError",
    "LedgerError",
    "LedgerForkedError",
    "LedgerFormatError",
    "LedgerNotFoundError",
    "LedgerOptions",
    "LedgerPutAsideError",
    "LedgerReadOnlyError",
    "LedgerUnreadableError",
    "LedgerWriteError",
    "LockTimeoutError",
    "MadeCheckpoint",
    "MemoryAdded",
    "MemoryDeleted",
    "MemoryRedacted",
    "MemoryRelinked",
    "MemoryRestored",
    "MemoryState",
    "MemoryUpdated",
    "NewEvent",
    "Note",
    "NoteError",
    "OsFiles",
    "Outstanding",
    "Position",
    "Problem",
    "Proof",
    "PublishedBehindError",
    "RandomIds",
    "Record",
    "RecordTooLargeError",
    "RedactedRecord",
    "RedactionCompleted",
    "RedactionExplained",
    "RedactionList",
    "RedactionRefusal",
    "RedactionRefusedError",
    "Redactor",
    "Report",
    "Restoration",
    "RestoreReport",
    "RollFailed",
    "Sealer",
    "SearchReport",
    "SessionEnded",
    "SessionEvent",
    "SessionRestored",
    "SessionStarted",
    "SessionState",
    "SessionWithdrawn",
    "SignedCheckpoint",
    "Signer",
    "SystemClock",
    "TornTail",
    "Tree",
    "UnknownEventError",
    "VerifierKey",
    "VerifyReport",
    "WorkspaceCreated",
    "WriteOutcome",
    "WriteReason",
    "Writer",
    "backup",
    "create_checkpoint",
    "ensure_signer",
    "erase_aside",
    "find_erased",
    "format_us",
    "grow_tree",
    "line_of",
    "list_checkpoints",
    "newest_checkpoint",
    "newest_of",
    "outstanding",
    "parse_key",
    "parse_note",
    "parse_span",
    "parse_us",
    "proof_text",
    "prove_extension",
    "prove_record",
    "publish_checkpoint",
    "put_aside",
    "read_published",
    "read_signer",
    "remove_prepared",
    "text_needles",
    "to_base64",
    "verify",
    "verify_consistency",
    "verify_inclusion",
    "write_reason",
]
