"""The ledger and the note of a code book."""

import pytest

from graphveil.formats.release import CodeBookRecord, LedgerRecord
from graphveil.formats.store import parse
from tests.formats import made


@pytest.mark.parametrize("number", [0, -1, 1.5, "../1", 10**12])
def test_the_codes_of_an_entry_are_the_number_of_a_file(number: object) -> None:
    content = made.ledger()
    content["releases"][0]["codes"] = number
    with pytest.raises(ValueError, match=r"^releases\[0\]\.codes: expected a whole number"):
        parse(content, LedgerRecord)


def test_a_code_book_without_signs_does_not_mention_them() -> None:
    assert CodeBookRecord("Look it up.").to_dict() == {"use": "Look it up."}
    assert CodeBookRecord("Look it up.", (1, -1)).to_dict() == {"use": "Look it up.", "signs": [1, -1]}
