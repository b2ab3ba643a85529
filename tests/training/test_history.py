"""Rounds as rows of a table, and back."""

from graphveil.training.history import Round, SecretMetrics, numbered


def test_a_row_has_the_values_of_every_secret_under_a_name_of_its_own() -> None:
    secrets = (SecretMetrics(0.1, 0.2, 0.3), SecretMetrics(0.4, 0.5, 0.6))
    one = Round(7, 1.5, secrets, utility=0.9, score=0.8)
    row = one.row()
    assert list(row) == [
        *("round", "utility_loss", "utility", "score", "secret_loss", "adversary", "probe"),
        *("secret_loss-2", "adversary-2", "probe-2"),
    ]
    assert (row["probe"], row["secret_loss-2"]) == (0.3, 0.4)
    assert Round.of(list(row.values())) == one


def test_the_first_secret_has_the_plain_name() -> None:
    assert [numbered("adversary", number) for number in range(3)] == ["adversary", "adversary-2", "adversary-3"]
