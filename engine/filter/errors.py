"""What can be wrong with an expression.

    FilterError
    ├── InvalidSelector      it is no expression; nothing can be asked with it
    └── EvaluationFailed     nobody can say whether one message matches it

Source: org.apache.rocketmq.filter.expression.MQFilterException, RocketMQ 5.3.
"""

from __future__ import annotations


class FilterError(Exception):
    """An expression cannot be used, or not on one message."""


class InvalidSelector(FilterError, ValueError):
    """A text is no expression that RocketMQ takes."""


class EvaluationFailed(FilterError):
    """A property is not what the expression compares it with."""
