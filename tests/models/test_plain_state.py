"""Copies of plain state live on their own; tokens are equal for equal state alone."""

from __future__ import annotations

from dataclasses import dataclass, field

from crashmq.models.plain_state import fork_of_fields, forked, is_alike, token


@dataclass
class Kept:
    """State of the kind that a judge keeps."""

    numbers: list[int]
    by_name: dict[str, list[int]]
    seen: set[str]
    cached: str = field(default="", compare=False)

    def fork(self) -> Kept:
        return fork_of_fields(self)


class Opaque:
    """Nothing that a token can look into."""


def test_a_change_of_a_copy_is_none_of_the_original() -> None:
    kept = Kept([1], {"a": [1]}, {"x"})

    copy = forked(kept)
    copy.numbers.append(2)
    copy.by_name["a"].append(2)
    copy.by_name["b"] = []
    copy.seen.add("y")

    assert kept == Kept([1], {"a": [1]}, {"x"})


def test_a_copy_reaches_what_forks_itself_inside_containers() -> None:
    kept = {"one": [Kept([1], {}, set())]}

    forked(kept)["one"][0].numbers.append(2)

    assert kept["one"][0].numbers == [1]


def test_equal_state_has_equal_tokens_and_other_state_another() -> None:
    one = Kept([1], {"a": [1]}, {"x", "y"})
    same = Kept([1], {"a": [1]}, {"y", "x"})

    assert token(one) == token(same)
    assert hash(token(one)) == hash(token(same))
    assert token(one) != token(Kept([1], {"a": [2]}, {"x", "y"}))


def test_a_field_that_takes_no_part_in_comparing_takes_none_in_a_token() -> None:
    assert token(Kept([], {}, set(), "a")) == token(Kept([], {}, set(), "b"))


def test_what_a_token_cannot_look_into_is_equal_to_itself_alone() -> None:
    opaque = Opaque()

    assert token([opaque]) == token([opaque])
    assert token([opaque]) != token([Opaque()])


def test_values_of_two_kinds_are_never_taken_for_each_other() -> None:
    assert token(1) != token(True)
    assert token(1) != token(1.0)


ALIKE = (1, True, "1", b"1", None, 2.0)
PLAIN = (
    *ALIKE,
    *[(one,) for one in ALIKE],
    *[[one] for one in ALIKE],
    *[{one} for one in ALIKE],
    *[{"a": one} for one in ALIKE],
    {"a": 1, "b": 1},
    {"b": 1, "a": 1},
    Kept([1], {"a": [1]}, {"x"}),
    Kept([1], {"a": [1]}, {"x"}, "kept"),
    Kept([1], {"a": [True]}, {"x"}),
    Kept([1], {"a": [1]}, {"y"}),
)


def test_what_is_alike_has_equal_tokens() -> None:
    for one in PLAIN:
        for other in PLAIN:
            if is_alike(one, forked(other)):
                assert token(one) == token(other), (one, other)


def test_state_is_alike_to_its_copy_and_to_what_differs_in_no_field_compared() -> None:
    kept = [(1, True), Kept([1], {"a": [1]}, {"x"}), "x"]

    assert is_alike(kept, forked(kept))
    assert is_alike(kept, [(1, True), Kept([1], {"a": [1]}, {"x"}, "kept"), "x"])


def test_what_cannot_be_looked_into_is_alike_to_itself_alone() -> None:
    one = Opaque()

    assert is_alike([one], [one])
    assert not is_alike([one], [Opaque()])
