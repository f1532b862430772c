"""The list of what waits is well formed and names no case twice for the same thing."""

import re

from tests.cases.waiting import WAITING


def test_every_waiting_clause_names_its_case_and_what_it_waits_for() -> None:
    for case, clause, part in WAITING:
        assert re.fullmatch(r"[A-Z]-\d+", case)
        assert len(clause.split()) >= 5
        assert not clause.endswith(".")
        assert part


def test_no_clause_waits_twice() -> None:
    assert len({*WAITING}) == len(WAITING)
    assert len({(case, clause) for case, clause, _ in WAITING}) == len(WAITING)


def test_the_list_is_in_the_order_of_the_groups() -> None:
    groups = [case[0] for case, _, _ in WAITING]
    assert [
        group for index, group in enumerate(groups) if groups[index - 1 : index] != [group]
    ] == (list(dict.fromkeys(groups)))
