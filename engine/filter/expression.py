"""Expressions over the properties of a message, with three-valued logic.

A value of None is unknown: a property is missing. A property is a string; how it is
compared with a literal is in ``java_values``. Operands are evaluated from left to
right, and only as far as the result needs; if one fails, the whole expression fails.

Source: org.apache.rocketmq.filter.expression, RocketMQ 5.3: ComparisonExpression,
LogicExpression, UnaryExpression, ConstantExpression, PropertyExpression.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from crashmq.engine.filter.java_values import Long, Value, compare, read_double

Properties: TypeAlias = Mapping[str, str]


class Expression:
    """A part of an expression; ``is_boolean``: its value is True, False or None."""

    __slots__ = ()
    is_boolean = False

    @abstractmethod
    def evaluate(self, properties: Properties) -> Value | None:
        """Its value for a message; None: unknown.

        Raises:
            EvaluationFailed: a property has another kind of value than it is compared
                with.
        """


class Condition(Expression):
    """An expression whose value is True, False or None."""

    __slots__ = ()
    is_boolean = True

    @abstractmethod
    def evaluate(self, properties: Properties) -> bool | None:
        """Whether it holds for a message; None: unknown."""


@dataclass(frozen=True, slots=True)
class Constant(Expression):
    """A number or a string."""

    value: int | Long | float | str

    def evaluate(self, properties: Properties) -> Value:
        """The literal."""
        del properties
        return self.value


@dataclass(frozen=True, slots=True)
class BooleanConstant(Condition):
    """TRUE, FALSE or NULL."""

    value: bool | None

    def evaluate(self, properties: Properties) -> bool | None:
        """The literal."""
        del properties
        return self.value


@dataclass(frozen=True, slots=True)
class Property(Expression):
    """A property of the message, by its name."""

    name: str

    def evaluate(self, properties: Properties) -> str | None:
        """Its value; None if the message does not have it."""
        return properties.get(self.name)


@dataclass(frozen=True, slots=True)
class Negated(Expression):
    """A number with the other sign. Source: UnaryExpression#createNegate."""

    of: Expression

    def evaluate(self, properties: Properties) -> Value | None:
        """The negated number; None if the operand is no number."""
        value = self.of.evaluate(properties)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return Long(-value) if isinstance(value, Long) else -value


@dataclass(frozen=True, slots=True)
class Cast(Condition):
    """A property used as a condition: a string is never true.

    Source: UnaryExpression#createBooleanCast.
    """

    of: Property

    def evaluate(self, properties: Properties) -> bool | None:
        """False, or None if the message has no such property."""
        return None if self.of.evaluate(properties) is None else False


@dataclass(frozen=True, slots=True)
class Not(Condition):
    """Logical not; unknown if its operand is. Source: UnaryExpression#createNOT."""

    of: Condition

    def evaluate(self, properties: Properties) -> bool | None:
        """The negated value of its operand."""
        value = self.of.evaluate(properties)
        return None if value is None else not value


@dataclass(frozen=True, slots=True)
class And(Condition):
    """Logical and; stops at the first false one. Source: LogicExpression#createAND."""

    parts: tuple[Condition, ...]

    def evaluate(self, properties: Properties) -> bool | None:
        """False if one is, else None if one is unknown, else True."""
        result: bool | None = True
        for part in self.parts:
            value = part.evaluate(properties)
            if value is False:
                return False
            if value is None:
                result = None
        return result


@dataclass(frozen=True, slots=True)
class Or(Condition):
    """Logical or; stops at the first true one. Source: LogicExpression#createOR."""

    parts: tuple[Condition, ...]

    def evaluate(self, properties: Properties) -> bool | None:
        """True if one is, else None if one is unknown, else False."""
        result: bool | None = False
        for part in self.parts:
            value = part.evaluate(properties)
            if value:
                return True
            if value is None:
                result = None
        return result


@dataclass(frozen=True, slots=True)
class Equal(Condition):
    """Equality of two values; unknown if only the left one is unknown.

    Source: ComparisonExpression#doCreateEqual.
    """

    left: Expression
    right: Expression

    def evaluate(self, properties: Properties) -> bool | None:
        """Two unknown values are equal; a known and an unknown one are not."""
        left = self.left.evaluate(properties)
        right = self.right.evaluate(properties)
        if left is None or right is None:
            return None if left is None and right is not None else left is right
        return compare(left, right) == 0


@dataclass(frozen=True, slots=True)
class IsNull(Condition):
    """Whether a value is unknown. Source: ComparisonExpression#createIsNull."""

    of: Expression

    def evaluate(self, properties: Properties) -> bool:
        """True or False, never unknown."""
        return self.of.evaluate(properties) is None


ORDERS: Mapping[str, Callable[[int], bool]] = {
    ">": lambda sign: sign > 0,
    ">=": lambda sign: sign >= 0,
    "<": lambda sign: sign < 0,
    "<=": lambda sign: sign <= 0,
}


@dataclass(frozen=True, slots=True)
class Ordered(Condition):
    """A comparison by order; unknown if a value is. Two strings are read as doubles.

    Source: ComparisonExpression#evaluate.
    """

    left: Expression
    order: str
    right: Expression

    def evaluate(self, properties: Properties) -> bool | None:
        """The result; the right side is not evaluated if the left one is unknown."""
        left = self.left.evaluate(properties)
        if left is None:
            return None
        right = self.right.evaluate(properties)
        if right is None:
            return None
        if isinstance(left, str) and isinstance(right, str):
            left, right = read_double(left), read_double(right)
        return ORDERS[self.order](compare(left, right))


SEARCHES: Mapping[str, Callable[[str, str], bool]] = {
    "CONTAINS": lambda text, search: search in text,
    "STARTSWITH": str.startswith,
    "ENDSWITH": str.endswith,
}


@dataclass(frozen=True, slots=True)
class Search(Condition):
    """Whether a string contains, begins or ends with another one, or does not.

    Source: ComparisonExpression.ContainsExpression and its likes.
    """

    of: Expression
    kind: str
    text: str
    is_not: bool

    def evaluate(self, properties: Properties) -> bool:
        """False if an operand is no string or the search is empty, also with NOT."""
        if not self.text:
            return False
        value = self.of.evaluate(properties)
        if not isinstance(value, str):
            return False
        return SEARCHES[self.kind](value, self.text) is not self.is_not


@dataclass(frozen=True, slots=True)
class In(Condition):
    """Whether a property is (not) one of some strings; unknown if it is missing.

    Source: UnaryExpression#createInExpression.
    """

    of: Property
    texts: tuple[str, ...]
    is_not: bool

    def evaluate(self, properties: Properties) -> bool | None:
        """Whether it is; None if the property is missing."""
        value = self.of.evaluate(properties)
        return None if value is None else (value in self.texts) is not self.is_not
