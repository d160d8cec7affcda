"""The errors of expressions.

    FilterError
    ├── InvalidSelector      the text is no expression
    └── EvaluationFailed     the expression cannot be evaluated on one message

Source: org.apache.rocketmq.filter.expression.MQFilterException, RocketMQ 5.3.
"""

from __future__ import annotations


class FilterError(Exception):
    """An expression cannot be used at all, or not on one message."""


class InvalidSelector(FilterError, ValueError):
    """The text is no expression that RocketMQ accepts."""


class EvaluationFailed(FilterError):
    """A property has another kind of value than the one it is compared with."""
