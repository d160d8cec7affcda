"""A decorator that makes frozen dataclasses faster to construct.

A frozen dataclass sets each field by ``object.__setattr__``, which looks the field up
by its name. The descriptors of its slots can be called directly, which halves the time.
Nothing else about the class changes; it stays frozen.
"""

from __future__ import annotations

from dataclasses import MISSING, fields
from functools import update_wrapper
from typing import Any, TypeVar

T = TypeVar("T")


def quickly_made(cls: type[T]) -> type[T]:
    """Speed up the constructor of a frozen dataclass with slots; above ``@dataclass``.

    Raises:
        TypeError: a field has a default factory, or is keyword-only.
    """
    its_fields = fields(cls)  # type: ignore[arg-type]  # whoever uses it is one
    for one in its_fields:
        if one.default_factory is not MISSING or one.kw_only:
            raise TypeError(f"{cls.__name__}.{one.name} is no plain field.")
    names = [one.name for one in its_fields if one.init]
    lines = [f"def __init__(self, {', '.join(names)}):"]
    lines += [f"    _set_{name}(self, {name})" for name in names]
    if hasattr(cls, "__post_init__"):
        lines.append("    self.__post_init__()")
    scope: dict[str, Any] = {
        f"_set_{name}": getattr(cls, name).__set__ for name in names
    }
    exec("\n".join(lines), scope)
    made, quick = cls.__init__, scope["__init__"]
    update_wrapper(quick, made)
    quick.__defaults__ = made.__defaults__
    cls.__init__ = quick  # type: ignore[method-assign]  # the same, but quicker
    return cls
