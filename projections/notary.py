"""The commands on checkpoints: sign the ledger's state, publish it, prove from it.

They print what others are to have, notes and proofs, as it is. A door passes the file of the key,
if its settings name one, as `checkpoint_key` of the parsed command line.
"""

from __future__ import annotations

import argparse
from contextlib import suppress
from pathlib import Path

import msgspec

from ledger import (
    KEY_NAME,
    Ledger,
    LedgerUnreadableError,
    NoteError,
    Position,
    Proof,
    SignedCheckpoint,
    Signer,
    VerifierKey,
    create_checkpoint,
    ensure_signer,
    list_checkpoints,
    newest_of,
    parse_key,
    prove_extension,
    prove_record,
    publish_checkpoint,
    read_published,
    read_signer,
    to_base64,
)
from projections.checkpoint import read_checkpoint
from projections.connection import DAMAGE_ERRORS
from projections.errors import ProjectionError
from projections.generation import Generations
from projections.on_terminal import shown_phase

LOCK_TIMEOUT_S = 60.0

_PHASE = "records"


def add_checkpoint_commands(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
) -> list[argparse.ArgumentParser]:
    """Add the family `checkpoint` to a door's parser; return the parser of each action."""
    family = commands.add_parser(
        "checkpoint",
        help="sign the ledger's state, publish it, prove from it",
        description="Sign the ledger's state, publish it, prove from it.",
    )
    family.set_defaults(checkpoint_key=None)
    actions = family.add_subparsers(required=True, metavar="ACTION", dest="action_name")
    creating = actions.add_parser(
        "create",
        help="sign all that the ledger holds",
        description="Reads the ledger, signs its size and the root over its records, keeps that "
        "in the ledger's file `checkpoints` and prints it.",
    )
    creating.set_defaults(command=_create)
    listing = actions.add_parser(
        "list",
        help="list the checkpoints",
        description="One line for each checkpoint of the ledger, the newest last: how many "
        "records, the root over them, and whether this store's key has signed it.",
    )
    listing.set_defaults(command=_list)
    publishing = actions.add_parser(
        "publish-to",
        help="append the newest checkpoint to a file elsewhere",
        description="The file, in a git repository or on another disk, is made if it is not "
        "there and replaced as one. A file with checkpoints that this ledger does not extend is "
        "refused.",
    )
    publishing.add_argument("file", metavar="FILE", type=Path, help="where to publish")
    publishing.set_defaults(command=_publish)
    keying = actions.add_parser(
        "key",
        help="print the key that others check checkpoints with",
        description="Prints the verifier key. The signing key is made if there is none yet.",
    )
    keying.set_defaults(command=_key)
    proving = actions.add_parser(
        "prove",
        help="prove that a record is in the ledger",
        description="Prints a proof (C2SP tlog-proof) that leads from the record's digest to a "
        "checkpoint.",
    )
    proving.add_argument("seq", metavar="SEQ", type=int, help="the record's ledger position")
    proving.add_argument(
        "--in",
        dest="into",
        metavar="FILE",
        type=Path,
        help="to the newest checkpoint of this file instead of the ledger's own",
    )
    _add_key(proving)
    proving.set_defaults(command=_prove)
    extending = actions.add_parser(
        "extend",
        help="prove that the ledger only grew since an old checkpoint",
        description="Prints a consistency proof from the newest checkpoint of a file to the "
        "newest of the ledger, as witnesses take it (C2SP tlog-witness).",
    )
    extending.add_argument("old", metavar="OLD", type=Path, help="file of the old checkpoint")
    _add_key(extending)
    extending.set_defaults(command=_extend)
    made = list(actions.choices.values())
    for action in made:
        action.add_argument("--json", action="store_true", help="print the result as JSON")
    return made


def add_against(parser: argparse.ArgumentParser) -> None:
    """Add to `verify` the options on checkpoints."""
    parser.set_defaults(checkpoint_key=None)
    parser.add_argument(
        "--against",
        metavar="FILE",
        type=Path,
        action="append",
        default=[],
        help="checkpoints published or exported earlier, which the ledger must extend: a cut, an "
        "older copy and a rewritten history are seen; may be repeated",
    )
    _add_key(parser)


def verifier_key(arguments: argparse.Namespace, ledger: Ledger) -> VerifierKey | None:
    """Return the key that `verify` checks signatures with; None if there is none.

    Raises:
        NoteError: one is needed, and there is none that can be used.
        LedgerUnreadableError: likewise.

    """
    if arguments.key is not None:
        key: VerifierKey = arguments.key
        return key
    if arguments.against:
        return _checking_key(arguments, ledger)
    if not ledger.layout.checkpoints.exists():
        return None
    with suppress(NoteError, LedgerUnreadableError):
        return _checking_key(arguments, ledger)
    return None


def _create(arguments: argparse.Namespace, ledger: Ledger, generations: Generations) -> int:
    signer = _signer(arguments, ledger)
    with shown_phase(_PHASE) as progress:
        made = create_checkpoint(
            ledger,
            signer,
            lock_timeout_s=LOCK_TIMEOUT_S,
            known=_known(generations),
            progress=progress,
        )
    note = made.data.decode()
    result = {"size": made.checkpoint.size, "root": made.checkpoint.root, "is_new": made.is_new}
    return _show(arguments, note, {**result, "note": note})


def _list(arguments: argparse.Namespace, ledger: Ledger, _: Generations) -> int:
    key = None
    with suppress(NoteError, LedgerUnreadableError):
        key = _checking_key(arguments, ledger)
    lines: list[str] = []
    rows: list[dict[str, object]] = []
    for each in list_checkpoints(ledger):
        size, root = each.checkpoint.size, each.checkpoint.root
        signature = "unchecked" if key is None else key.judge(each.note)
        rows.append({"size": size, "root": root, "signature": signature})
        lines.append(f"{size:>10}  {to_base64(root)}  {signature}\n")
    return _show(arguments, "".join(lines) or "no checkpoint yet\n", {"checkpoints": rows})


def _publish(arguments: argparse.Namespace, ledger: Ledger, _: Generations) -> int:
    key = _checking_key(arguments, ledger)
    with shown_phase(_PHASE) as progress:
        made = publish_checkpoint(ledger, key, arguments.file, progress=progress)
    size = made.checkpoint.size
    text = (
        f"{'published' if made.is_new else 'already there'}: {size} records, in {arguments.file}\n"
    )
    result = {"size": size, "root": made.checkpoint.root, "is_new": made.is_new}
    return _show(arguments, text, {**result, "file": str(arguments.file)})


def _key(arguments: argparse.Namespace, ledger: Ledger, _: Generations) -> int:
    key = _signer(arguments, ledger).key
    return _show(arguments, f"{key.text}\n", {"key": key.text})


def _prove(arguments: argparse.Namespace, ledger: Ledger, _: Generations) -> int:
    signed = None if arguments.into is None else _published(arguments, arguments.into, ledger)
    with shown_phase(_PHASE) as progress:
        proof = prove_record(ledger, arguments.seq, checkpoint=signed, progress=progress)
    return _show(arguments, proof.text, {"seq": arguments.seq, **_proof(proof)})


def _extend(arguments: argparse.Namespace, ledger: Ledger, _: Generations) -> int:
    old = _published(arguments, arguments.old, ledger)
    with shown_phase(_PHASE) as progress:
        proof = prove_extension(ledger, old, progress=progress)
    return _show(arguments, proof.text, {"old_size": old.checkpoint.size, **_proof(proof)})


def _published(arguments: argparse.Namespace, path: Path, ledger: Ledger) -> SignedCheckpoint:
    key = arguments.key or _checking_key(arguments, ledger)
    return newest_of(read_published(path, ledger.identity.origin, key))


def _proof(proof: Proof) -> dict[str, object]:
    checkpoint = proof.checkpoint
    return {
        "size": checkpoint.size,
        "root": checkpoint.root,
        "hashes": proof.hashes,
        "proof": proof.text,
    }


def _show(arguments: argparse.Namespace, text: str, result: dict[str, object]) -> int:
    """Print a result: its text, or as JSON, in which bytes are base64."""
    print(f"{msgspec.json.encode(result).decode()}\n" if arguments.json else text, end="")
    return 0


def _add_key(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--key",
        metavar="KEY",
        type=_parsed_key,
        help="check signatures with this verifier key, as `checkpoint key` printed it, instead of "
        "the store's own",
    )


def _parsed_key(text: str) -> VerifierKey:
    try:
        return parse_key(text)
    except NoteError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _key_path(arguments: argparse.Namespace, ledger: Ledger) -> Path:
    path: Path | None = arguments.checkpoint_key
    return path or ledger.layout.root.parent / KEY_NAME


def _signer(arguments: argparse.Namespace, ledger: Ledger) -> Signer:
    """Return the signer; its key is made if the settings name none and there is none yet."""
    path = _key_path(arguments, ledger)
    if arguments.checkpoint_key is None:
        return ensure_signer(ledger, path, lock_timeout_s=LOCK_TIMEOUT_S)
    return _existing(path, ledger, "a key that the settings name is never made")


def _checking_key(arguments: argparse.Namespace, ledger: Ledger) -> VerifierKey:
    if hasattr(arguments, "key"):
        hint = "give the verifier key of the checkpoints by --key"
    else:
        hint = "`checkpoint create` makes one and signs with it"
    return _existing(_key_path(arguments, ledger), ledger, hint).key


def _existing(path: Path, ledger: Ledger, hint: str) -> Signer:
    signer = read_signer(path, ledger.identity.origin)
    if signer is None:
        raise NoteError(f"there is no key at {path}; {hint}")
    return signer


def _known(generations: Generations) -> Position | None:
    """Return up to where the projections have come, if there are any: so far it was durable."""
    with suppress(ProjectionError, *DAMAGE_ERRORS):
        generation = generations.open_current()
        try:
            return read_checkpoint(generation.writer)
        finally:
            generation.close()
    return None
