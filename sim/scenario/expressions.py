"""Expressions: ``leader('orders-0') in {b2, b3} and hw('orders-0') == 10``.

The syntax is Python's, the meaning is not: a text is parsed by ``ast`` and turned into ``sim.
scenario.terms``, and whatever is not compare, ``and or not``, ``+ - *``, a call of an observable,
``len``, a set, a name of a node, a text, an integer, True, False or None is refused with its place.
Nothing is ever compiled or evaluated by Python. Calls and kinds are checked against the table of
observables, so ``hw('orders-0') == '10'`` is an error and not always false.

To the interpreter: ``expression.evaluate(env)`` with ``env[name](*arguments)`` for each name of
``expression.calls`` (``sim.scenario.observables`` says what goes in and what must come back), and
``expression.values(env)`` for what each call said, to show why an expectation does not hold. An
``Expression`` never changes and is shared by copies of a world.

Left out: reading a world.
"""

from __future__ import annotations

import ast
import re
import warnings
from typing import Any, Final

from attrs import field, frozen

from sim.scenario.arguments import NUMBER_MAX, check_argument
from sim.scenario.names import Names
from sim.scenario.observables import OBSERVABLES, Argument, Observable
from sim.scenario.problems import Refusal, Refusals, guess, seen
from sim.scenario.syntax_words import REFUSED, shown, source_of, without_texts
from sim.scenario.terms import (
    Arithmetic,
    Both,
    Call,
    Compare,
    Constant,
    Environment,
    Not,
    SetOf,
    Size,
    Term,
)

__all__ = ["EXPRESSION_CHARS_MAX", "Expression", "expression"]

EXPRESSION_CHARS_MAX: Final = 1_000
_DEPTH_MAX: Final = 20
_TERMS_MAX: Final = 200
_KINDS: Final = {
    "node": "a node",
    "nodes": "a set of nodes",
    "int": "a number",
    "bool": "true or false",
    "text": "a text",
    "none": "None",
}
_COMPARE: Final[dict[type[ast.cmpop], str]] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.In: "in",
    ast.NotIn: "not in",
    ast.Is: "is",
    ast.IsNot: "is not",
}
_ARITHMETIC: Final[dict[type[ast.operator], str]] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*"}
_LITERALS: Final = {"true": "True", "false": "False", "null": "None", "none": "None", "nil": "None"}
_ONE_EQUALS: Final = re.compile(r"(?<![=!<>:+*/%&|^@-])=(?!=)")
_OTHER_WORDS: Final = (("&&", "and"), ("||", "or"), ("<>", "!="))


@frozen(repr=False)
class Expression:
    """A checked expression whose value is true or false.

    Attributes:
        text: as the file has it.
        term: what it means.
        calls: every call in it once, in the order of the text.
    """

    text: str
    term: Term = field(eq=False)
    calls: tuple[Call, ...] = field(eq=False)

    def __deepcopy__(self, memo: object) -> Expression:
        return self

    def __repr__(self) -> str:
        return f"Expression({self.text!r})"

    def __str__(self) -> str:
        return self.text

    def evaluate(self, env: Environment) -> bool:
        """Whether it holds now.

        Args:
            env: a callable for each name in ``calls``.
        """
        return bool(self.term.evaluate(env))

    def values(self, env: Environment) -> list[tuple[str, object]]:
        """Each call as text, and what it says now."""
        return [(str(call), call.evaluate(env)) for call in self.calls]


def expression(value: object, names: Names) -> Expression:
    """Read an expression of a file, whose topics, nodes and clients are ``names``.

    Raises:
        Refusals: everything that is wrong with it.
    """
    if not isinstance(value, str):
        hint = "write it in quotes" if isinstance(value, bool) else ""
        raise Refusals([Refusal(f"{seen(value)} is no expression", hint=hint)])
    if len(value) > EXPRESSION_CHARS_MAX:
        text = f"the expression has {len(value)} characters"
        raise Refusals([Refusal(text, hint=f"allowed are {EXPRESSION_CHARS_MAX}")])
    if not value.strip():
        raise Refusals([Refusal("the expression is empty", hint="write what must hold")])
    flat = value.replace("\r", " ").replace("\n", " ").replace("\t", " ")
    stripped = flat.lstrip(" ")
    reader = _Reader(flat, stripped, len(flat) - len(stripped), names)
    tree = reader.parse()
    term, kind = reader.read(tree, 0)
    if kind not in ("bool", ""):
        hint = "compare it: ... == ..."
        reader.refuse(tree, f"the expression is {_KINDS[kind]}, not true or false", hint=hint)
    if reader.found:
        raise Refusals(reader.found)
    return Expression(value, term, tuple(dict.fromkeys(reader.calls)))


class _Reader:
    """One expression while it is read: terms, and what is wrong so far.

    A kind is ``node``, ``nodes``, ``int``, ``bool``, ``text``, ``none``, or empty where a mistake
    has been told already.
    """

    def __init__(self, flat: str, text: str, shift: int, names: Names) -> None:
        self.flat = flat
        self.text = text
        self.bytes = text.encode("utf-8", "replace")
        self.shift = shift
        self.names = names
        self.found: list[Refusal] = []
        self.calls: list[Call] = []
        self.count = 0

    # Parsing -------------------------------------------------------------------------------------

    def parse(self) -> ast.expr:
        hidden = without_texts(self.text)
        slip = _ONE_EQUALS.search(hidden)
        if slip:
            raise Refusals([self._at(slip.start(), 1, "'=' compares nothing; write '=='")])
        for other, word in _OTHER_WORDS:
            at = hidden.find(other)
            if at >= 0:
                raise Refusals([self._at(at, 2, f"'{other}' is unknown; write '{word}'")])
        for at, each in enumerate(hidden):
            if not each.isascii() or not each.isprintable():
                shown = (
                    f"{each} (U+{ord(each):04X})" if each.isprintable() else f"U+{ord(each):04X}"
                )
                text = f"the character {shown} has no meaning outside of quotes"
                raise Refusals([self._at(at, 1, text)])
            if each in "\\#;`":
                raise Refusals([self._at(at, 1, f"the character {each} has no meaning here")])
        try:
            # What Python only warns of (1if, '\d') is as unclear in a scenario.
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                return ast.parse(self.text, mode="eval").body
        except SyntaxError as error:
            at = (error.offset or 1) - 1
            at = min(max(at, 0), max(len(self.text) - 1, 0))
            said = (error.msg or "invalid syntax").split(". Perhaps")[0]
            raise Refusals([self._at(at, 1, f"this cannot be read: {said}")]) from None
        except (ValueError, MemoryError, RecursionError):
            raise Refusals([self._at(0, 1, "this cannot be read: too deep or too long")]) from None

    def _at(self, at: int, width: int, text: str, hint: str = "") -> Refusal:
        return Refusal(text, hint=hint, offset=at + self.shift, width=width)

    def refuse(
        self, node: ast.AST, text: str, *, hint: str = "", allowed: tuple[str, ...] | list[str] = ()
    ) -> tuple[Term, str]:
        """Note a mistake; gives a term of no kind, so that the rest is read too."""
        start = self._chars(getattr(node, "col_offset", 0))
        end = self._chars(getattr(node, "end_col_offset", None) or 0)
        self.found.append(
            Refusal(
                text,
                hint=hint,
                allowed=allowed,
                offset=start + self.shift,
                width=max(1, end - start),
            )
        )
        return Constant(None), ""

    def _chars(self, offset: int) -> int:
        """``ast`` counts bytes of UTF-8."""
        return len(self.bytes[:offset].decode("utf-8", "replace"))

    # Terms ---------------------------------------------------------------------------------------

    def read(self, node: ast.expr, depth: int) -> tuple[Term, str]:
        """The term of a node and its kind."""
        self.count += 1
        if depth > _DEPTH_MAX or self.count > _TERMS_MAX:
            if self.found and self.found[-1].text.startswith("the expression is too"):
                return Constant(None), ""
            return self.refuse(node, "the expression is too deep or has too many parts")
        match node:
            case ast.BoolOp(op=op, values=values):
                terms = tuple(self._flag(each, depth) for each in values)
                return Both(terms, is_and=isinstance(op, ast.And)), "bool"
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return Not(self._flag(operand, depth)), "bool"
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return Arithmetic("-", Constant(0), self._number(operand, depth)), "int"
            case ast.BinOp(op=op, left=left, right=right) if type(op) in _ARITHMETIC:
                sides = self._number(left, depth), self._number(right, depth)
                return Arithmetic(_ARITHMETIC[type(op)], *sides), "int"
            case ast.BinOp():
                return self.refuse(node, "only + - * calculate", hint=f"{shown(node)} is refused")
            case ast.Compare():
                return self._compare(node, depth)
            case ast.Call():
                return self._call(node, depth)
            case ast.Set(elts=members):
                return self._set(members, depth)
            case ast.Constant(value=value):
                return self._constant(node, value)
            case ast.Name(id=name):
                return self._name(node, name)
            case ast.Dict(keys=[]):
                hint = "for the empty set write len(...) == 0"
                return self.refuse(node, "{} is no set", hint=hint)
            case _:
                hint = REFUSED.get(type(node), "")
                return self.refuse(node, f"{shown(node)} is not allowed here", hint=hint)

    def _flag(self, node: ast.expr, depth: int) -> Term:
        return self._of_kind(node, "bool", depth)

    def _number(self, node: ast.expr, depth: int) -> Term:
        return self._of_kind(node, "int", depth)

    def _of_kind(self, node: ast.expr, wanted: str, depth: int) -> Term:
        term, kind = self.read(node, depth + 1)
        if kind not in (wanted, ""):
            self.refuse(node, f"this is {_KINDS[kind]}, not {_KINDS[wanted]}")
        return term

    def _constant(self, node: ast.expr, value: object) -> tuple[Term, str]:
        if value is None:
            return Constant(None), "none"
        if isinstance(value, bool):
            return Constant(value), "bool"
        if isinstance(value, int):
            if value > NUMBER_MAX:
                return self.refuse(node, "the number is too large", hint="allowed is 2^63-1")
            return Constant(value), "int"
        if isinstance(value, str) and getattr(node, "kind", None) is None:
            return Constant(value), "text"
        if isinstance(value, float):
            return self.refuse(node, f"{seen(value)} is no integer")
        return self.refuse(node, "only texts and integers stand for themselves")

    def _name(self, node: ast.expr, name: str) -> tuple[Term, str]:
        if self.names.is_node(name):
            return Constant(name), "node"
        if name in _LITERALS:
            return self.refuse(node, f'"{name}" is unknown', hint=f"write {_LITERALS[name]}")
        if name in OBSERVABLES:
            signature = OBSERVABLES[name].signature
            return self.refuse(node, f'"{name}" is asked with arguments', hint=signature)
        if name in self.names.topics:
            return self.refuse(node, f'"{name}" is a topic', hint=f"write '{name}-0', in quotes")
        nodes = self.names.nodes
        return self.refuse(
            node,
            f"there is no node {seen(name)}",
            hint=guess(name, [*nodes, *OBSERVABLES]) or "texts stand in quotes",
            allowed=nodes,
        )

    def _set(self, members: list[ast.expr], depth: int) -> tuple[Term, str]:
        read = [self._as_node(*self.read(each, depth + 1)) for each in members]
        kinds = {kind for _, kind in read if kind}
        if len(kinds) > 1 or not kinds <= {"node", "int", "text"}:
            for member, (_, kind) in zip(members, read, strict=True):
                if kind and (kind != read[0][1] or kind not in ("node", "int", "text")):
                    self.refuse(member, f"{_KINDS[kind]} is no member of this set")
            return Constant(None), ""
        if not all(isinstance(term, Constant) for term, _ in read):
            return self.refuse(members[0], "a set has fixed members", hint="write {b1, b2}")
        kind = read[0][1]
        terms = SetOf(frozenset(term.value for term, _ in read if isinstance(term, Constant)))
        return terms, {"node": "nodes", "int": "ints", "text": "texts"}.get(kind, "")

    def _as_node(self, term: Term, kind: str) -> tuple[Term, str]:
        """A text that is a node's name stands for it where a node is due."""
        if kind == "text" and isinstance(term, Constant) and self.names.is_node(str(term.value)):
            return term, "node"
        return term, kind

    # Comparison ----------------------------------------------------------------------------------

    def _compare(self, node: ast.Compare, depth: int) -> tuple[Term, str]:
        nodes = [node.left, *node.comparators]
        sides = [self.read(each, depth + 1) for each in nodes]
        names = []
        for at, op in enumerate(node.ops):
            name = _COMPARE[type(op)]
            names.append(name)
            (left, left_kind), (right, right_kind) = sides[at], sides[at + 1]
            if "node" in (left_kind, right_kind) or "nodes" in (left_kind, right_kind):
                left, left_kind = self._as_node(left, left_kind)
                right, right_kind = self._as_node(right, right_kind)
            if left_kind and right_kind:
                self._check_compare(nodes[at + 1], name, left_kind, right_kind)
        return Compare(tuple(term for term, _ in sides), tuple(names)), "bool"

    def _check_compare(self, node: ast.expr, name: str, left: str, right: str) -> None:
        kinds = {**_KINDS, "ints": "a set of numbers", "texts": "a set of texts"}
        if name in ("in", "not in"):
            members = {"nodes": ("node", "none"), "ints": ("int",), "texts": ("text", "none")}
            if right not in members:
                self.refuse(node, f"{kinds[right]} has no members", hint="write a set: {b1, b2}")
            elif left not in members[right]:
                self.refuse(node, f"{kinds[left]} is never in {kinds[right]}")
        elif name in ("is", "is not"):
            if right != "none" or left not in ("node", "text", "none"):
                self.refuse(node, f"'{name}' is for None only", hint="write == or !=")
        elif name in ("==", "!="):
            if left != right and (left, right) not in _MAY_BE_NONE:
                self.refuse(node, f"{kinds[left]} never equals {kinds[right]}")
        elif (left, right) != ("int", "int"):
            self.refuse(node, f"'{name}' compares numbers, not {kinds[left]} with {kinds[right]}")

    # Calls ---------------------------------------------------------------------------------------

    def _call(self, node: ast.Call, depth: int) -> tuple[Term, str]:
        if not isinstance(node.func, ast.Name):
            return self.refuse(node.func, f"{shown(node.func)} cannot be called")
        for keyword in node.keywords:
            self.refuse(keyword.value, "arguments have no names here", hint="write the value alone")
        name = node.func.id
        if name == "len" and len(node.args) == 1 and not node.keywords:
            return Size(self._of_kind(node.args[0], "nodes", depth)), "int"
        known = OBSERVABLES.get(name)
        if known is None:
            hint = guess(name, OBSERVABLES)
            allowed = [*OBSERVABLES, "len"]
            return self.refuse(
                node.func, f"unknown observable {seen(name)}", hint=hint, allowed=allowed
            )
        if node.keywords:
            return Constant(None), ""
        arguments = self._arguments(node, known)
        if arguments is None:
            return Constant(None), ""
        call = Call(known.name, arguments, tuple(source_of(each) for each in node.args))
        self.calls.append(call)
        return call, known.result

    def _arguments(self, node: ast.Call, known: Observable) -> tuple[Any, ...] | None:
        given = node.args
        if len(given) < known.least or (known.most is not None and len(given) > known.most):
            counts = f"{len(given)} argument{'' if len(given) == 1 else 's'}"
            self.refuse(node, f"{known.name} has {counts}", hint=known.signature)
            return None
        before = len(self.found)
        values = []
        for at, each in enumerate(given):
            argument = known.arguments[min(at, len(known.arguments) - 1)]
            values.append(self._argument(each, argument, known))
        return tuple(values) if len(self.found) == before else None

    def _argument(self, node: ast.expr, argument: Argument, known: Observable) -> object:
        match node:
            case ast.Constant(value=value) if value.__class__ in (str, int):
                is_name = False
            case ast.Name(id=name):
                value, is_name = name, True
            case _:
                self.refuse(node, f"{argument.name} is no fixed value here", hint=known.signature)
                return None
        problem = check_argument(value, is_name, argument, self.names)
        if problem is not None:
            hint = problem.hint or known.signature
            self.refuse(node, problem.text, hint=hint, allowed=list(problem.allowed))
            return None
        return self.names.partition(value) if argument.kind == "partition" else value


_MAY_BE_NONE: Final = frozenset(
    {("node", "none"), ("none", "node"), ("text", "none"), ("none", "text")}
)
