"""SelectorParser: parses SQL92 expressions as RocketMQ does.

    a > 5 AND (b IN ('x', 'y') OR c IS NULL)

Keywords are case-insensitive; names of properties are not. RocketMQ's parser stops at
the first token that cannot continue the expression and ignores the rest: ``a = 1 junk``
means ``a = 1``. Only that one token has to be lexically right. This parser does the
same.

Source: org.apache.rocketmq.filter.parser.SelectorParser (SelectorParser.jj), RocketMQ
5.3. Differs: an expression nested deeper than ``DEPTH_MAX`` is refused; there it is
refused once it exhausts the stack.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from functools import cache, lru_cache

from lark import Lark, Token, Transformer, v_args
from lark.exceptions import UnexpectedInput, UnexpectedToken

from crashmq.engine.filter.errors import InvalidSelector
from crashmq.engine.filter.expression import (
    SEARCHES,
    And,
    BooleanConstant,
    Cast,
    Condition,
    Constant,
    Equal,
    Expression,
    In,
    IsNull,
    Negated,
    Not,
    Or,
    Ordered,
    Property,
    Search,
)
from crashmq.engine.filter.java_values import INT_MAX, LONG_MAX, Long, compare
from crashmq.engine.host.probe import probe

DEPTH_MAX = 100
CACHED = 100
_KEYWORDS = frozenset(
    [
        "NOT",
        "AND",
        "OR",
        "BETWEEN",
        "IN",
        "TRUE",
        "FALSE",
        "NULL",
        "IS",
        "CONTAINS",
        "STARTSWITH",
        "ENDSWITH",
    ]
)
_GRAMMAR = r"""
start: disjunction
?disjunction: conjunction
    | conjunction ("OR" conjunction)+ -> any_of
?conjunction: equality
    | equality ("AND" equality)+ -> all_of
?equality: comparison
    | equality "=" comparison -> equal
    | equality _UNEQUAL comparison -> not_equal
    | equality "IS" "NULL" -> is_null
    | equality "IS" "NOT" "NULL" -> is_not_null
?comparison: unary
    | comparison ORDER unary -> ordered
    | comparison SEARCH STRING -> search
    | comparison "NOT" SEARCH STRING -> not_search
    | comparison "BETWEEN" unary "AND" unary -> between
    | comparison "NOT" "BETWEEN" unary "AND" unary -> not_between
    | comparison "IN" "(" STRING ("," STRING)* ")" -> is_in
    | comparison "NOT" "IN" "(" STRING ("," STRING)* ")" -> is_not_in
?unary: "+" unary
    | "-" unary -> negated
    | "NOT" unary -> contrary
    | primary
?primary: STRING -> text
    | DECIMAL -> decimal
    | FLOAT -> floating
    | "TRUE" -> true
    | "FALSE" -> false
    | "NULL" -> null
    | ID -> variable
    | "(" disjunction ")"

ORDER: ">=" | "<=" | ">" | "<"
_UNEQUAL.2: "<>"
ID: /[A-Za-z_$][A-Za-z0-9_$]*/
DIGITS: /[0-9]+/
EXPONENT: /[eE][+-]?[0-9]+/
FLOAT.2: DIGITS "." DIGITS? EXPONENT? | "." DIGITS EXPONENT? | DIGITS EXPONENT
DECIMAL: /0|[1-9][0-9]*[lL]?/
STRING: /'(?:''|[^'])*'/
SPACE: /[ \t\n\r\f]+/
LINE_COMMENT.2: /--[^\n\r]*[\n\r]/
BLOCK_COMMENT.2: /\/\*[^*]*\*(?:\*|[^*\/][^*]*\*)*\//
%declare SEARCH
%ignore SPACE
%ignore LINE_COMMENT
%ignore BLOCK_COMMENT
"""

PARSED = probe("selector_parser.parse", "an expression was read")
STOPPED = probe(
    "selector_parser.stopped", "the rest of an expression was taken no notice of"
)
INVALID = probe("selector_parser.invalid", "a text was no expression")


@lru_cache(maxsize=CACHED)
def parse(text: str) -> Condition:
    """The condition in a text.

    Raises:
        InvalidSelector: the text is no expression.

    Source: SelectorParser#parse.
    """
    try:
        condition = _parse(text)
    except (UnexpectedInput, _Unusable) as error:
        INVALID.hit()
        why = f"{error}".partition("\n")[0]
        raise InvalidSelector(
            f"{text!r} is not an expression: {why} Write a condition on properties, "
            f"as in a > 5 AND b = 'x'."
        ) from None
    PARSED.hit()
    return condition


def _parse(text: str) -> Condition:
    """Parse the longest expression, and check that the next token is a token."""
    parser = _parser()
    trial = parser.parse_interactive(text)
    taken: list[Token] = []
    tokens = trial.lexer_thread.lex(trial.parser_state)  # type: ignore[no-untyped-call]
    for token in tokens:
        try:
            trial.feed_token(token)
        except UnexpectedToken:
            STOPPED.hit()
            break
        taken.append(token)
    reading = parser.parse_interactive("")
    for token in taken:
        reading.feed_token(token)
    end = taken[-1] if taken else None
    condition = reading.feed_eof(end)  # type: ignore[no-untyped-call]
    assert isinstance(condition, Condition), condition
    _refuse_deep(condition)
    return condition


@cache
def _parser() -> Lark:
    return Lark(
        _GRAMMAR,
        parser="lalr",
        lexer="basic",
        lexer_callbacks={"ID": _as_keyword},
        transformer=_Builder(),
    )


def _as_keyword(token: Token) -> Token:
    """The token, as a keyword if its word is one in any case."""
    word = token.upper()
    if word in SEARCHES:
        return Token("SEARCH", word)
    return Token(word, word) if word in _KEYWORDS else token


class _Unusable(ValueError):
    """A parsed part is not allowed at its place."""


@v_args(inline=True)
class _Builder(Transformer[Token, Expression]):
    """Builds expressions from parsed parts; refuses what RocketMQ refuses."""

    def start(self, whole: Expression) -> Condition:
        return _condition(whole)

    def any_of(self, *parts: Expression) -> Condition:
        return Or(tuple(map(_condition, parts)))

    def all_of(self, *parts: Expression) -> Condition:
        return And(tuple(map(_condition, parts)))

    def equal(self, left: Expression, right: Expression) -> Condition:
        return _equal(left, right)

    def not_equal(self, left: Expression, right: Expression) -> Condition:
        return Not(_equal(left, right))

    def is_null(self, of: Expression) -> Condition:
        return IsNull(of)

    def is_not_null(self, of: Expression) -> Condition:
        return Not(IsNull(of))

    def ordered(self, left: Expression, order: str, right: Expression) -> Condition:
        return _ordered(left, f"{order}", right)

    def search(self, of: Expression, kind: str, text: str) -> Condition:
        return Search(of, f"{kind}", _unquoted(text), is_not=False)

    def not_search(self, of: Expression, kind: str, text: str) -> Condition:
        return Search(of, f"{kind}", _unquoted(text), is_not=True)

    def between(self, of: Expression, low: Expression, high: Expression) -> Condition:
        parts = _ordered(of, ">=", low), _ordered(of, "<=", high)
        if (
            isinstance(low, Constant)
            and isinstance(high, Constant)
            and compare(high.value, low.value) < 0
        ):
            raise _Unusable("the lower bound of BETWEEN is the greater one.")
        return And(parts)

    def not_between(
        self, of: Expression, low: Expression, high: Expression
    ) -> Condition:
        return Or((_ordered(of, "<", low), _ordered(of, ">", high)))

    def is_in(self, of: Expression, *texts: str) -> Condition:
        return _among(of, texts, is_not=False)

    def is_not_in(self, of: Expression, *texts: str) -> Condition:
        return _among(of, texts, is_not=True)

    def negated(self, of: Expression) -> Expression:
        return Negated(of)

    def contrary(self, of: Expression) -> Condition:
        return Not(_condition(of))

    def text(self, text: str) -> Expression:
        return Constant(_unquoted(text))

    def decimal(self, text: str) -> Expression:
        value = int(text.rstrip("lL"))
        if value > LONG_MAX:
            raise _Unusable(f"{text} has more than 64 bits.")
        return Constant(value if value <= INT_MAX else Long(value))

    def floating(self, text: str) -> Expression:
        value = float(text)
        if value in (0.0, float("inf")):
            raise _Unusable(f"{text} is no number that a literal may be.")
        return Constant(value)

    def true(self) -> Expression:
        return BooleanConstant(value=True)

    def false(self) -> Expression:
        return BooleanConstant(value=False)

    def null(self) -> Expression:
        return BooleanConstant(value=None)

    def variable(self, name: str) -> Expression:
        return Property(f"{name}")


def _condition(found: Expression) -> Condition:
    """A parsed part used as a condition. Source: #asBooleanExpression."""
    if isinstance(found, Condition):
        return found
    if isinstance(found, Property):
        return Cast(found)
    raise _Unusable("a number or a text is no condition.")


def _equal(left: Expression, right: Expression) -> Condition:
    for side in (left, right):
        if isinstance(side, BooleanConstant) and side.value is None:
            raise _Unusable("NULL can only be compared with IS NULL.")
    if isinstance(left, BooleanConstant) and isinstance(right, Constant):
        raise _Unusable("a boolean is not compared with a number or a text.")
    return Equal(left, right)


def _ordered(left: Expression, order: str, right: Expression) -> Condition:
    for side in (left, right):
        is_text = isinstance(side, Constant) and isinstance(side.value, str)
        if is_text or isinstance(side, Condition):
            raise _Unusable("only numbers and properties have an order.")
    return Ordered(left, order, right)


def _among(of: Expression, texts: tuple[str, ...], *, is_not: bool) -> Condition:
    if not isinstance(of, Property):
        raise _Unusable("IN asks for a property.")
    return In(of, tuple(map(_unquoted, texts)), is_not)


def _unquoted(text: str) -> str:
    """The text of a literal. Source: SelectorParser#stringLitteral."""
    return text[1:-1].replace("''", "'")


def _refuse_deep(whole: Expression) -> None:
    level, depth = [whole], 0
    while level:
        depth += 1
        if depth > DEPTH_MAX:
            raise _Unusable(f"it is nested deeper than {DEPTH_MAX}.")
        level = [part for one in level for part in _parts_of(one)]


def _parts_of(one: Expression) -> Iterator[Expression]:
    for field in fields(one):  # type: ignore[arg-type]  # each is a dataclass
        value = getattr(one, field.name)
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, Expression):
                yield part
