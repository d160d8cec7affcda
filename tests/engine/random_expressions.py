"""Random expressions and properties: mostly right ones, some that RocketMQ refuses."""

from __future__ import annotations

from random import Random

NAMES = ("a", "b", "c", "A", "_x", "$y", "notes", "isnt")
INTEGERS = ("0", "1", "5", "7", "10", "2147483647", "2147483648", "9223372036854775807")
LITERALS = (
    *INTEGERS,
    *("5L", "3l", "5.0", "5.", ".5", "1.5", "5E1", "1e300", "0.0", "4.9E-324", "1E400"),
    *("9223372036854775808", "007", "9007199254740993", "1.0E-400"),
)
NUMBERS = tuple(one for one in LITERALS if one not in ("0.0", "1E400", "007"))[:-2]
STRINGS = ("'x'", "'5'", "''", "'it''s'", "'el'", "'TRUE'", "'支付'", "'💰'", "'a\nb'")
WORDS = ("TRUE", "false", "Null", "NULL")
EQUALS = (*NAMES, *NUMBERS, *STRINGS, "TRUE", "false")
ODD = 0.03
VALUES = (
    *("5", "05", "+5", "-5", " 5", "5 ", "5.0", "10", "10.5", "3000000000", "-0", "0"),
    *("-0.0", "abc", "x", "true", "TRUE", "yes", "NaN", "-Infinity", "1e3", "2d", "5L"),
    *("0x1p3", "0x.8P1f", ".5", "5.", "hello", "it's", "el", "", "1_0", "1e999"),
    *("\u0665", "\uff15", "\U0001d7d3", "\u652f\u4ed8", "\U0001f4b0", "\u00a05"),
    *("9223372036854775807", "9223372036854775808", "2147483648", "\t7\n", "\x005"),
    *("+", "-", "infinity", "nan", "1e", "1e+", "0x10"),
)
"""Numbers among them have digits of other scripts, and what trims away."""
JUNK = (
    *("junk", "@", "!", ".b", "'open", ")", "(", "5", "AND", "/* c */", "-- c", "IS"),
    "#",
)
SEARCHES = ("CONTAINS", "STARTSWITH", "ENDSWITH", "contains", "EndsWith")
ORDERS = (">", ">=", "<", "<=", "=", "<>")


class Expressions:
    """Draws texts from one source of chance."""

    def __init__(self, seed: int) -> None:
        self._chance = Random(seed)

    def properties(self) -> dict[str, str]:
        chance = self._chance
        return {name: chance.choice(VALUES) for name in NAMES if chance.random() < 0.6}

    def expression(self) -> str:
        chance = self._chance
        text = self._condition(chance.randint(0, 4))
        if chance.random() < 0.05:
            at = chance.randint(0, len(text))
            text = text[:at] + " " + chance.choice(JUNK) + " " + text[at:]
        if chance.random() < 0.05:
            at = chance.randint(0, len(text))
            text = text[:at] + text[at + chance.randint(1, 3) :]
        if chance.random() < 0.1:
            text += chance.choice((" ", "\n", "")) + chance.choice(JUNK)
        return text

    def _condition(self, depth: int) -> str:
        chance = self._chance
        if depth == 0:
            return self._comparison()
        match chance.randint(0, 8):
            case 0 | 1 | 7:
                link = chance.choice((" AND ", " and ", " /* so */ AND\n"))
            case 2 | 3 | 8:
                link = chance.choice((" OR ", " Or "))
            case 4:
                return f"NOT ({self._condition(depth - 1)})"
            case 5:
                return f"({self._condition(depth - 1)}) {self._tail()}"
            case _:
                return f"NOT {self._condition(depth - 1)}"
        parts = [self._condition(depth - 1) for _ in range(chance.randint(2, 3))]
        whole = link.join(parts)
        return f"({whole})" if chance.random() < 0.5 else whole

    def _comparison(self) -> str:
        if self._chance.random() < ODD:
            return f"{self._operand()} {self._tail()}"
        return f"{self._chance.choice(NAMES)} {self._tail()}"

    def _tail(self) -> str:
        """What may follow an operand; mostly something that is right there."""
        chance = self._chance
        negation = chance.choice(("", "", "NOT "))
        match chance.randint(0, 15):
            case 0 | 1 | 2:
                return f"{chance.choice(ORDERS)} {self._number()}"
            case 3 | 4:
                return f"{chance.choice(('=', '<>'))} {chance.choice(EQUALS)}"
            case 5 | 6:
                return f"IS {negation}NULL"
            case 7 | 8:
                return f"{negation}{chance.choice(SEARCHES)} {chance.choice(STRINGS)}"
            case 9 | 10:
                return f"{negation}BETWEEN {self._number()} AND {self._number()}"
            case 11 | 12:
                many = chance.choice((1, 2, 6))
                texts = ", ".join(chance.choice(STRINGS) for _ in range(many))
                return f"{negation}IN ({texts})"
            case 13:
                return f"= {chance.choice(EQUALS)} {self._tail()}"
            case 14:
                return f"{chance.choice(ORDERS)} {self._operand()}"
            case _:
                return ""

    def _number(self) -> str:
        chance = self._chance
        if chance.random() < ODD:
            return self._operand()
        sign = chance.choice(("", "", "", "", "-", "+", "- -"))
        return sign + chance.choice((*NAMES, *NUMBERS))

    def _operand(self) -> str:
        chance = self._chance
        match chance.randint(0, 15):
            case 0 | 1 | 2 | 3 | 4 | 5 | 6:
                found = chance.choice(NAMES)
            case 7 | 8 | 9 | 10:
                found = chance.choice(LITERALS)
            case 11 | 12:
                found = chance.choice(STRINGS)
            case 13:
                found = chance.choice(WORDS)
            case 14:
                found = f"({self._comparison()})"
            case _:
                found = f"{chance.choice(INTEGERS)}{chance.choice(STRINGS)}"
        sign = chance.choice(("", "", "", "", "", "", "-", "+", "- -"))
        return sign + found
