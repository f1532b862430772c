"""Chains of memories: what would be wrong with them."""

from collections.abc import Iterable

from projections.model import Memory


def chain_faults(memories: Iterable[Memory]) -> list[str]:
    """Return what is broken in the chains of all memories of a workspace; empty when whole.

    Several memories may be superseded by one, which then names one of them.
    """
    known = {memory.id: memory for memory in memories}
    beside: dict[str, set[str]] = {}
    for memory in known.values():
        if memory.superseded_by is not None:
            beside.setdefault(memory.superseded_by, set()).add(memory.id)
    faults = [
        f"{memory_id} is superseded by {newer}, which is not there"
        for newer, older in beside.items()
        if newer not in known
        for memory_id in older
    ]
    faults += [
        f"{memory.id} names {memory.supersedes}, not one of {sorted(beside.get(memory.id, ()))}"
        for memory in known.values()
        if (memory.supersedes is not None or memory.id in beside)
        and memory.supersedes not in beside.get(memory.id, ())
    ]
    return faults + [f"{one} reaches no head" for one in known if not _reaches_head(one, known)]


def _reaches_head(memory_id: str, known: dict[str, Memory]) -> bool:
    seen: set[str] = set()
    while memory_id in known and memory_id not in seen:
        seen.add(memory_id)
        newer = known[memory_id].superseded_by
        if newer is None:
            return True
        memory_id = newer
    return False
