"""Where source text depends on the order of a set, found from its syntax tree alone.

A set's order follows hashes, and those of text follow PYTHONHASHSEED. What is known to be a set: a
display, a comprehension, ``set()``, an operation on one of these or on the keys of a dict, a name
or attribute that was annotated as one or assigned one, and what a function annotated to return one
returns. Containers are followed one level at a time (``dict[str, set[int]]``). Attributes and
functions count everywhere if every definition of that name in the tree is a set, else only as
``self.x`` in their own class.

What has no order is left alone: ``sorted``, ``any``, ``len``, another set, ``min`` and ``max``.
With a key, ``sorted``, ``min`` and ``max`` show the set's order among equals, unless the key is a
lambda for a tuple that ends in the element itself.

Left out: sets that only a type checker could follow, as through a parameter without annotation.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from attrs import define, field

__all__ = ["Definitions", "unsorted_uses"]

# ("set", None), or ("of", kind) for a container of that kind.
Kind = tuple[str, "Kind | None"]

SET: Kind = ("set", None)

_SET_TYPES = frozenset({"AbstractSet", "MutableSet", "Set", "frozenset", "set"})
_CONTAINERS = frozenset(
    """Collection Iterable Iterator Mapping MutableMapping OrderedDict Sequence defaultdict deque
    dict list tuple""".split()
)
_WRAPPERS = frozenset({"ClassVar", "Final", "Optional"})
_SET_METHODS = frozenset({"difference", "intersection", "symmetric_difference", "union"})
_VIEWS = frozenset({"items", "keys"})
_OPERATORS = (ast.BitAnd, ast.BitOr, ast.BitXor, ast.Sub)

_FREE = frozenset("all any bool frozenset len max min set sorted sum".split())
_FREE_METHODS = _SET_METHODS | frozenset(
    """difference_update intersection_update isdisjoint issubset issuperset
    symmetric_difference_update""".split()
)
_KEYED = frozenset({"max", "min", "sorted"})
_ORDERED = frozenset(
    """Counter OrderedDict array bytearray bytes chain deque dict enumerate filter format iter list
    map print repr reversed str tuple zip""".split()
)
_ORDERED_METHODS = frozenset({"extend", "extendleft", "from_iterable", "fromkeys", "join"})

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


@define
class Definitions:
    """What attributes and functions are, by their last name, in all modules that were added.

    Attributes:
        by_class: (module, class, attribute) -> kind.
        by_name: attribute or function -> every kind that one of that name has.
    """

    by_class: dict[tuple[str, str, str], Kind] = field(factory=dict)
    by_name: dict[str, list[Kind | None]] = field(factory=dict)

    def add(self, module: str, tree: ast.Module) -> None:
        """Take the definitions of one module."""
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                self._add_class(module, node)
            elif isinstance(node, _Function):
                self.by_name.setdefault(node.name, []).append(_annotated(node.returns))

    def anywhere(self, name: str) -> Kind | None:
        """What an attribute or function of this name is, whoever has it."""
        kinds = self.by_name.get(name, [None])
        return kinds[0] if all(kind == kinds[0] for kind in kinds) else None

    def _add_class(self, module: str, node: ast.ClassDef) -> None:
        for part in node.body:
            if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
                self._note(module, node.name, part.target.id, _annotated(part.annotation))
            elif isinstance(part, _Function):
                self._note_own(module, node.name, part.name, _annotated(part.returns))
                for inner in ast.walk(part):
                    self._add_assignment(module, node.name, inner)

    def _add_assignment(self, module: str, owner: str, node: ast.AST) -> None:
        match node:
            case ast.AnnAssign(target=ast.Attribute(value=ast.Name("self"), attr=attr)):
                self._note(module, owner, attr, _annotated(node.annotation))
            case ast.Assign(targets=[ast.Attribute(value=ast.Name("self"), attr=attr)]):
                if (module, owner, attr) not in self.by_class:
                    kind = _Scope(self, module, owner).kind(node.value)
                    self._note(module, owner, attr, kind)
            case _:
                pass

    def _note(self, module: str, owner: str, name: str, kind: Kind | None) -> None:
        self.by_name.setdefault(name, []).append(kind)
        self._note_own(module, owner, name, kind)

    def _note_own(self, module: str, owner: str, name: str, kind: Kind | None) -> None:
        if kind is not None:
            self.by_class[module, owner, name] = kind


def unsorted_uses(
    module: str, tree: ast.Module, definitions: Definitions
) -> Iterator[tuple[ast.expr, str]]:
    """Each expression that is a set whose order shows, and how it does."""
    yield from _Scope(definitions, module, "").uses(tree.body)


def _annotated(annotation: ast.expr | None) -> Kind | None:
    match annotation:
        case ast.Constant(value=str(text)):
            return _annotated(ast.parse(text, mode="eval").body)
        case ast.Name(name) | ast.Attribute(attr=name):
            return SET if name in _SET_TYPES else None
        case ast.Subscript(value=ast.Name(name) | ast.Attribute(attr=name), slice=inside):
            if name in _SET_TYPES:
                return SET
            parts = inside.elts if isinstance(inside, ast.Tuple) else [inside]
            if name == "tuple" and not (len(parts) == 2 and _is_ellipsis(parts[1])):
                return None
            kind = _annotated(parts[0] if name == "tuple" else parts[-1])
            if kind is None or name in _WRAPPERS:
                return kind
            return ("of", kind) if name in _CONTAINERS else None
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _annotated(left) or _annotated(right)
        case _:
            return None


@define
class _Scope:
    """The names of one function, or of a module outside functions."""

    definitions: Definitions
    module: str
    owner: str
    names: dict[str, Kind | None] = field(factory=dict)

    # What an expression is ---------------------------------------------------------------------

    def kind(self, node: ast.expr) -> Kind | None:
        match node:
            case ast.Set() | ast.SetComp():
                return SET
            case ast.Name(name):
                return self.names.get(name)
            case ast.Attribute():
                return self._attribute(node)
            case ast.Subscript(value=value):
                return _inside(self.kind(value))
            case ast.Call():
                return self._call(node)
            case ast.BinOp(left=left, op=op, right=right) if isinstance(op, _OPERATORS):
                sides = (left, right)
                if any(self.kind(side) == SET or _is_view(side) for side in sides):
                    return SET
                return None
            case ast.IfExp(body=one, orelse=other):
                return self.kind(one) or self.kind(other)
            case ast.BoolOp(values=values):
                return next(filter(None, map(self.kind, values)), None)
            case ast.NamedExpr(value=value):
                return self.kind(value)
            case _:
                return None

    def _attribute(self, node: ast.Attribute) -> Kind | None:
        if isinstance(node.value, ast.Name) and node.value.id == "self" and self.owner:
            own = self.definitions.by_class.get((self.module, self.owner, node.attr))
            if own is not None:
                return own
        return self.definitions.anywhere(node.attr)

    def _call(self, node: ast.Call) -> Kind | None:
        match node.func:
            case ast.Name("set" | "frozenset") | ast.Subscript(value=ast.Name("set" | "frozenset")):
                return SET
            case ast.Name(name):
                return self.definitions.anywhere(name)
            case ast.Attribute(attr=name) if name in _SET_METHODS:
                return SET
            case ast.Attribute(value=value, attr="copy"):
                return self.kind(value)
            case ast.Attribute(value=value, attr="get" | "pop" | "setdefault" as name):
                return _inside(self.kind(value)) or (
                    next(filter(None, map(self.kind, node.args[1:])), None)
                    if name != "pop"
                    else None
                )
            case ast.Attribute(value=value, attr="values"):
                return self.kind(value)
            case ast.Attribute():
                return self._attribute(node.func)
            case _:
                return None

    # Where it is used --------------------------------------------------------------------------

    def uses(self, body: list[ast.stmt]) -> Iterator[tuple[ast.expr, str]]:
        self._bind(body)
        for statement in body:
            yield from self._visit(statement, is_free=False)

    def _bind(self, body: list[ast.stmt]) -> None:
        """Every name of the scope that is a set wherever it is assigned, or annotated as one."""
        found: dict[str, list[Kind | None]] = {}
        for node in _own_nodes(body):
            match node:
                case ast.AnnAssign(target=ast.Name(name), annotation=annotation):
                    found.setdefault(name, []).append(_annotated(annotation))
                case ast.Assign(targets=[ast.Name(name)], value=value):
                    found.setdefault(name, []).append(self.kind(value))
                case ast.NamedExpr(target=ast.Name(name), value=value):
                    found.setdefault(name, []).append(self.kind(value))
                case ast.For(target=target, iter=source):
                    self._bind_target(target, source, found)
                case _:
                    continue
            for name, kinds in found.items():
                self.names[name] = next(filter(None, kinds), None)

    def _bind_target(
        self, target: ast.expr, source: ast.expr, found: dict[str, list[Kind | None]]
    ) -> None:
        match target, source:
            case ast.Tuple(elts=[_, ast.Name(name)]), ast.Call(
                func=ast.Attribute(value=value, attr="items")
            ):
                found.setdefault(name, []).append(_inside(self.kind(value)))
            case ast.Name(name), _:
                found.setdefault(name, []).append(_inside(self.kind(source)))
            case _:
                pass

    def _visit(self, node: ast.AST, *, is_free: bool) -> Iterator[tuple[ast.expr, str]]:
        if isinstance(node, _SCOPES):
            yield from self._visit_scope(node)
            return
        if isinstance(node, ast.GeneratorExp | ast.ListComp | ast.SetComp | ast.DictComp):
            yield from self._visit_comprehension(node, is_free=is_free)
            return
        match node:
            case ast.For(iter=source) if self._is_set(source):
                yield source, "for"
            case ast.YieldFrom(value=source) if self._is_set(source):
                yield source, "yield from"
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                yield from self._starred(elements)
            case ast.FormattedValue(value=value) if self._is_set(value):
                yield value, "an f-string"
            case ast.Assign(targets=[ast.Tuple() | ast.List() as target], value=value):
                if self._is_set(value) and len(target.elts) > 1:
                    yield value, "unpacking"
            case ast.AugAssign(op=ast.Add(), value=value) if self._is_set(value):
                yield value, "+="
            case ast.Call():
                yield from self._visit_call(node)
                return
            case _:
                pass
        for child in ast.iter_child_nodes(node):
            yield from self._visit(child, is_free=False)

    def _visit_scope(self, node: ast.AST) -> Iterator[tuple[ast.expr, str]]:
        if isinstance(node, ast.ClassDef):
            yield from _Scope(self.definitions, self.module, node.name, {**self.names}).uses(
                node.body
            )
            return
        assert isinstance(node, _Function | ast.Lambda)
        inner = _Scope(self.definitions, self.module, self.owner, {**self.names})
        arguments = node.args
        for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
            inner.names[argument.arg] = _annotated(argument.annotation)
        if isinstance(node, ast.Lambda):
            yield from inner._visit(node.body, is_free=False)
        else:
            yield from inner.uses(node.body)

    def _visit_comprehension(
        self,
        node: ast.GeneratorExp | ast.ListComp | ast.SetComp | ast.DictComp,
        *,
        is_free: bool,
    ) -> Iterator[tuple[ast.expr, str]]:
        inner = _Scope(self.definitions, self.module, self.owner, {**self.names})
        for part in node.generators:
            if inner._is_set(part.iter) and not is_free and not isinstance(node, ast.SetComp):
                yield part.iter, "a comprehension"
            found: dict[str, list[Kind | None]] = {}
            inner._bind_target(part.target, part.iter, found)
            for name in (n.id for n in ast.walk(part.target) if isinstance(n, ast.Name)):
                inner.names[name] = found.get(name, [None])[0]
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.comprehension):
                for expression in (child.iter, *child.ifs):
                    yield from inner._visit(expression, is_free=False)
            else:
                yield from inner._visit(child, is_free=False)

    def _visit_call(self, node: ast.Call) -> Iterator[tuple[ast.expr, str]]:
        receiver, name, is_method = _called(node.func)
        is_free = name in (_FREE_METHODS if is_method else _FREE)
        if is_method and name == "update":
            is_free = receiver is not None and self._is_set(receiver)
        if not is_method and name in _KEYED and any(map(_may_have_equals, node.keywords)):
            is_free = False
            yield from ((a, "a key with equals") for a in node.args if self._is_set(a))
        if name in (_ORDERED_METHODS if is_method else _ORDERED):
            yield from ((a, f"{name}()") for a in node.args if self._is_set(a))
        if receiver is not None and name == "pop" and not node.args and self._is_set(receiver):
            yield receiver, "pop()"
        if not is_free:
            yield from self._starred(node.args)
        yield from self._visit(node.func, is_free=False)
        for argument in node.args:
            # What zip, map and the like give is in a set's order, unless all of it is order-free.
            if is_free and isinstance(argument, ast.Call) and _called(argument.func)[1] in _ORDERED:
                for inner in argument.args:
                    yield from self._visit(inner, is_free=True)
            else:
                yield from self._visit(argument, is_free=is_free)
        for keyword in node.keywords:
            yield from self._visit(keyword.value, is_free=False)

    def _starred(self, elements: list[ast.expr]) -> Iterator[tuple[ast.expr, str]]:
        for element in elements:
            if isinstance(element, ast.Starred) and self._is_set(element.value):
                yield element.value, "*"

    def _is_set(self, node: ast.expr) -> bool:
        return self.kind(node) == SET


def _called(function: ast.expr) -> tuple[ast.expr | None, str, bool]:
    """(receiver, name, whether it is a method) of what a call calls."""
    match function:
        case ast.Name(name) | ast.Subscript(value=ast.Name(name)):
            return None, name, False
        case ast.Attribute(value=value, attr=name):
            return value, name, True
        case _:
            return None, "", False


def _inside(kind: Kind | None) -> Kind | None:
    return kind[1] if kind is not None and kind[0] == "of" else None


def _may_have_equals(keyword: ast.keyword) -> bool:
    match keyword.value:
        case ast.Lambda(
            args=ast.arguments(args=[ast.arg(arg=element)]),
            body=ast.Tuple(elts=[*_, ast.Name(last)]),
        ):
            return keyword.arg == "key" and element != last
        case _:
            return keyword.arg == "key"


def _is_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is Ellipsis


def _is_view(node: ast.expr) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr=name), args=[]):
            return name in _VIEWS
        case _:
            return False


def _own_nodes(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """The nodes of a scope in order of the text, without the scopes inside it."""
    for statement in body:
        if isinstance(statement, _SCOPES):
            continue
        yield from _own(statement)


def _own(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, _SCOPES):
            yield from _own(child)
