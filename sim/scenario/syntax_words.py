"""What pieces of Python's syntax are called, and what to write instead of those that are refused.

Left out: refusing them (``sim.scenario.expressions``).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Final

__all__ = ["REFUSED", "shown", "source_of", "without_texts"]

REFUSED: Final[dict[type[ast.AST], str]] = {
    ast.Attribute: "a dot looks into nothing here",
    ast.Subscript: "[...] looks into nothing here",
    ast.Lambda: "no functions can be made",
    ast.IfExp: "there is no if",
    ast.NamedExpr: "nothing can be assigned",
    ast.JoinedStr: "texts stand as they are, without f",
    ast.List: "write a set: {b1, b2}",
    ast.Tuple: "write a set: {b1, b2}",
    ast.Dict: "write a set: {b1, b2}",
    ast.Starred: "no * before an argument",
}


def without_texts(text: str) -> str:
    """The text with everything in quotes blanked out, quotes included."""
    return re.sub(r"'[^']*'|\"[^\"]*\"", lambda match: " " * len(match[0]), text)


def shown(node: ast.AST) -> str:
    """What a piece of syntax is called."""
    words: Mapping[type[ast.AST], str] = {
        ast.Attribute: "a look into something",
        ast.Subscript: "a subscript",
        ast.Lambda: "a function",
        ast.ListComp: "a loop",
        ast.SetComp: "a loop",
        ast.DictComp: "a loop",
        ast.GeneratorExp: "a loop",
        ast.JoinedStr: "a text with f",
        ast.List: "a list",
        ast.Tuple: "a tuple",
        ast.Dict: "a table",
        ast.IfExp: "a choice",
        ast.NamedExpr: "an assignment",
        ast.BinOp: "this operator",
        ast.Constant: "a fixed value",
        ast.Call: "the result of a call",
    }
    return words.get(type(node), "this")


def source_of(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name):
            return name
        case ast.Constant(value=value):
            return repr(value)
    raise AssertionError("an argument that is neither a name nor a constant")
