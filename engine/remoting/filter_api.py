"""FilterAPI: makes a subscription from an expression.

Source: org.apache.rocketmq.remoting.protocol.filter.FilterAPI, RocketMQ 5.3.
"""

from __future__ import annotations

import re

from crashmq.engine.remoting.subscription_data import (
    SUB_ALL,
    ExpressionType,
    SubscriptionData,
)
from crashmq.engine.store.message.message import java_string_hash

_OR = "||"
_SPACE = "".join(map(chr, range(0x21)))  # what String#trim removes
_ONLY_SEPARATORS = re.compile(r"(?:\|\|)+")


def build_subscription_data(
    topic: str,
    expression: str | None,
    expression_type: ExpressionType | None = "TAG",
    sub_version: int = 0,
) -> SubscriptionData:
    """The subscription of an expression.

    For tags, an empty expression and ``*`` mean every message, and ``A || B`` means
    those with tag A or B, where ``*`` is an ordinary tag; a blank expression matches no
    message.

    Raises:
        ValueError: there is no expression, or no tag between the separators.

    Source: FilterAPI#build, #buildSubscriptionData.
    """
    if expression_type not in (None, "TAG"):
        if not expression:
            raise ValueError(
                f"the subscription of {topic} has no {expression_type} expression: "
                f"write a condition on properties."
            )
        return SubscriptionData(
            topic,
            expression,
            sub_version=sub_version,
            expression_type=expression_type,
        )
    if not expression or expression == SUB_ALL:
        return SubscriptionData(topic, SUB_ALL, sub_version=sub_version)
    if _ONLY_SEPARATORS.fullmatch(expression):
        raise ValueError(
            f"the subscription of {topic} is {expression!r}: write tags between the "
            f"separators."
        )
    tags = {part.strip(_SPACE) for part in expression.split(_OR)} - {""}
    return SubscriptionData(
        topic,
        expression,
        tuple(sorted(tags)),
        tuple(sorted({java_string_hash(tag) for tag in tags})),
        sub_version,
    )
