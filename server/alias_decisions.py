"""Decisions about aliases: further names of entities."""

from __future__ import annotations

from ledger import AliasAdded, AliasRemoved, AliasState, NewEvent
from projections.facts import Facts
from projections.model import Alias
from server.commands import AliasArgs
from server.decision import Decision, Moment, refuse_blank
from server.errors import AliasConflictError, InvalidArgumentsError, NotFoundError
from server.results import AliasResult


def decide_alias(args: AliasArgs, facts: Facts, moment: Moment) -> Decision:
    """Add or remove an alias."""
    assert args.action != "list"
    decide = _add if args.action == "add" else _remove
    return decide(args, facts, moment)


def _add(args: AliasArgs, facts: Facts, moment: Moment) -> Decision:
    name, entity = _given("alias", args.alias), _given("entity_name", args.entity_name)
    known = facts.alias(name)
    if known is not None and known.state is not None and known.state.entity != entity:
        raise AliasConflictError(
            f"{name!r} is an alias of {known.state.entity!r} already; nothing was changed. Remove "
            "that alias first.",
            details={"alias": name, "entity_name": known.state.entity},
        )
    if name in facts.names_of(entity):
        same = AliasResult(
            changed=False,
            aliases=(Alias(alias=name, entity_name=entity),),
            notes=("both are names of one entity already: nothing was written",),
        )
        return Decision(events=(), reply=lambda _: same)
    event = AliasAdded(
        salt=moment.new_salt(),
        alias=AliasState(name=name, entity=entity),
        request=moment.request,
    )
    return Decision(
        events=(NewEvent(moment.new_id(), event, 0),),
        reply=lambda position: _changed(name, entity, position),
    )


def _remove(args: AliasArgs, facts: Facts, moment: Moment) -> Decision:
    name = _given("alias", args.alias)
    known = facts.alias(name)
    if known is None or known.state is None or args.entity_name not in (None, known.state.entity):
        raise NotFoundError(
            f"{name!r} is no alias of {args.entity_name or 'anything'!r} in this workspace; "
            "nothing was changed. memory_alias with action list shows what there is.",
            details={"alias": name},
        )
    entity = known.state.entity
    event = AliasRemoved(salt=moment.new_salt(), request=moment.request)
    return Decision(
        events=(NewEvent(known.id, event, known.last_seq),),
        reply=lambda position: _changed(name, entity, position),
    )


def _given(field: str, text: str | None) -> str:
    if text is None:
        raise InvalidArgumentsError(
            f"`{field}` is required for this action.", details={"field": field}
        )
    refuse_blank(field, text)
    return text


def _changed(name: str, entity: str, position: int) -> AliasResult:
    return AliasResult(
        changed=True, aliases=(Alias(alias=name, entity_name=entity),), position=position
    )
