"""The commands of the family `audit`."""

from __future__ import annotations

from typing import Final

from server.app import App
from server.audit_args import AuditExportArgs, AuditShowArgs
from server.audit_views import of_audit, of_audit_export
from server.options import Place
from server.status import DONE
from server.verb import Verb, Work, plain


def _export(work: Work) -> int:
    args = work.args(AuditExportArgs, only_workspace=work.parsed.workspace is not None)
    result = work.job.ask(lambda app, call: app.audit_export(args, call))
    work.show(result, of_audit_export(result))
    return DONE


AUDIT_VERBS: Final = (
    Verb(
        name="audit show",
        help="tell who changed what, when and why",
        description="One entry an operation: its ledger position, time, actor and what it did, "
        "field by field; of deleted and redacted memories too. `mnemolog undo --position` takes "
        "a position back.",
        example="mnemolog audit show --memory ID\n"
        "mnemolog audit show --actor nightly-report --type deleted --from 'last week'",
        struct=AuditShowArgs,
        run=plain(App.audit_show, of_audit),
        author_option=None,
    ),
    Verb(
        name="audit export",
        help="write a bundle that a stranger can check",
        description="A new folder with the records as they stand in the ledger, a signed "
        "checkpoint, proofs and `verify.py`, which needs nothing but Python: of the whole ledger, "
        "or of the part that --workspace, --memory, --entity, --from and --to name. Its VERIFY.md "
        "says how to check it and what is not proven. Exit status 3 if the folder exists.",
        example="mnemolog audit export audit-2026\n"
        "mnemolog audit export for-ana --entity 'Ana Petrova' --to 2026-11-30",
        struct=AuditExportArgs,
        run=_export,
        places=(Place(field="folder", metavar="DIR"),),
        without=("only_workspace",),
    ),
)
"""The commands, for the table of commands."""
