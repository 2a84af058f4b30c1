"""What a checked expression means, as data that evaluates itself.

Terms hold no callables and never change. Numbers may be absent only where an observable breaks its
word; a comparison of order with None is false rather than an error.

Left out: texts (``sim.scenario.expressions``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from attrs import field, frozen

__all__ = [
    "Arithmetic",
    "Both",
    "Call",
    "Compare",
    "Constant",
    "Environment",
    "Not",
    "SetOf",
    "Size",
    "Term",
]

Environment = Mapping[str, Callable[..., Any]]
"""A callable for each observable's name."""


@frozen
class Term:
    """A part of an expression."""

    def evaluate(self, env: Environment) -> Any:
        """Its value now."""
        raise NotImplementedError

    def __deepcopy__(self, memo: object) -> Term:
        return self


@frozen
class Constant(Term):
    """None, True, False, a number, a text, or the name of a node."""

    value: Any

    def evaluate(self, env: Environment) -> Any:
        return self.value


@frozen
class SetOf(Term):
    """A set of fixed members."""

    value: frozenset[Any]

    def evaluate(self, env: Environment) -> Any:
        return self.value


@frozen
class Call(Term):
    """An observable with its arguments.

    Attributes:
        name: of ``OBSERVABLES``.
        arguments: fixed values, partitions as ``PartitionName``.
        shown: the arguments as the text has them.
    """

    name: str
    arguments: tuple[Any, ...]
    shown: tuple[str, ...] = field(eq=False)

    def __str__(self) -> str:
        return f"{self.name}({', '.join(self.shown)})"

    def evaluate(self, env: Environment) -> Any:
        return env[self.name](*self.arguments)


@frozen
class Size(Term):
    """How many members a set has."""

    inner: Term

    def evaluate(self, env: Environment) -> Any:
        return len(self.inner.evaluate(env))


@frozen
class Not(Term):
    """True where ``inner`` is not."""

    inner: Term

    def evaluate(self, env: Environment) -> Any:
        return not self.inner.evaluate(env)


@frozen
class Both(Term):
    """``and`` or ``or`` of two or more, from left to right until it is decided."""

    terms: tuple[Term, ...]
    is_and: bool = field(kw_only=True)

    def evaluate(self, env: Environment) -> Any:
        for term in self.terms:
            if bool(term.evaluate(env)) is not self.is_and:
                return not self.is_and
        return self.is_and


@frozen
class Arithmetic(Term):
    """Sum, difference or product of two numbers."""

    operator: str
    left: Term
    right: Term

    def evaluate(self, env: Environment) -> Any:
        left, right = self.left.evaluate(env), self.right.evaluate(env)
        if self.operator == "+":
            return left + right
        return left - right if self.operator == "-" else left * right


@frozen
class Compare(Term):
    """A chain of comparisons: ``0 <= x < 5``."""

    sides: tuple[Term, ...]
    operators: tuple[str, ...]

    def evaluate(self, env: Environment) -> Any:
        left = self.sides[0].evaluate(env)
        for operator, side in zip(self.operators, self.sides[1:], strict=True):
            right = side.evaluate(env)
            if not _COMPARISONS[operator](left, right):
                return False
            left = right
        return True


def _less(left: Any, right: Any) -> bool:
    return left is not None and right is not None and bool(left < right)


def _at_most(left: Any, right: Any) -> bool:
    return left is not None and right is not None and bool(left <= right)


_COMPARISONS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": lambda left, right: bool(left == right),
    "!=": lambda left, right: bool(left != right),
    "<": _less,
    "<=": _at_most,
    ">": lambda left, right: _less(right, left),
    ">=": lambda left, right: _at_most(right, left),
    "in": lambda left, right: left in right,
    "not in": lambda left, right: left not in right,
    "is": lambda left, right: left is right,
    "is not": lambda left, right: left is not right,
}
