"""What a `where` over commits can meet: operations that change no row alone, or others too."""

from __future__ import annotations

import pytest

from tidegate.rules.sql.operations import only_rowless

OPTIMIZE = ("OPTIMIZE",)


@pytest.mark.parametrize(
    ("where", "rowless"),
    [
        ("operation = 'OPTIMIZE'", OPTIMIZE),
        ("OPERATION <=> 'OPTIMIZE'", OPTIMIZE),
        ("'OPTIMIZE' = operation and version > 3", OPTIMIZE),
        ("not (operation <> 'OPTIMIZE')", OPTIMIZE),
        ("not (operation <> 'OPTIMIZE' or version > 3)", OPTIMIZE),
        ("operation in ('OPTIMIZE', 'REORG') and operation <> 'REORG'", OPTIMIZE),
        ("operation = 'WRITE'", ()),
        ("operation <> 'OPTIMIZE'", ()),
        ("user_metadata = 'OPTIMIZE'", ()),
        ("operation = 'OPTIMIZE' or version > 3", ()),
        ("operation = 'OPTIMIZE' or not (not (version > 3))", ()),
        ("not (operation <> 'OPTIMIZE' and version > 3)", ()),
        ("operation in ('OPTIMIZE', user_metadata)", ()),
        ("operation = 'OPTIMIZE' or operation in (select 'WRITE')", ()),
        ("operation like 'OPTIMIZE'", ()),
        ("operation = ", ()),
    ],
)
def test_only_what_no_other_operation_meets_is_rowless(
    where: str, rowless: tuple[str, ...]
) -> None:
    assert tuple(only_rowless(where)) == rowless
