"""Python's control flow, for tracing: functions are rewritten so that `if`, `while`, `for`, `and` … on tensors without values
become part of the graph. What is written on plain values runs as it stands (see `flow.py`).

A function is parsed, changed and compiled again under its own file and lines, so that errors name them. Returns, `break` and
`continue` inside of an `if` take what follows them into the other branch; `break` also sets a flag that ends the loop.
"""

from __future__ import annotations

import ast
import functools
import inspect
import os
import textwrap
import types
import weakref

from . import flow
from .to_static import is_ignored

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_HELPER = "__sampan_flow"
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_MADE: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def _walk(nodes):
    """All nodes, without those of inner functions and classes."""
    todo = list(nodes)
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, _SCOPES):
            todo.extend(ast.iter_child_nodes(node))


def _has(nodes, kinds, loops=True) -> bool:
    """Is there such a statement, outside of inner functions, and of inner loops unless these count?"""
    for node in nodes:
        if isinstance(node, kinds):
            return True
        if isinstance(node, _SCOPES) or (not loops and isinstance(node, (ast.While, ast.For))):
            continue
        if _has(ast.iter_child_nodes(node), kinds, loops):
            return True
    return False


def _stored(nodes) -> list[str]:
    """The names that statements give values to, in order."""
    names = []
    for node in nodes:
        for inner in _walk([node]):
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                names.append(inner.id)
            elif isinstance(inner, (ast.FunctionDef, ast.ClassDef)):
                names.append(inner.name)
    # What a comprehension names stays in it.
    inside = set()
    for node in nodes:
        for inner in _walk([node]):
            if isinstance(inner, ast.comprehension):
                inside |= {n.id for n in ast.walk(inner.target) if isinstance(n, ast.Name)}
    return [n for n in dict.fromkeys(names) if n not in inside and not n.startswith("__sampan")]


def _name(name: str, store=False) -> ast.Name:
    return ast.Name(name, ast.Store() if store else ast.Load())


def _call(helper: str, *args) -> ast.Call:
    return ast.Call(ast.Attribute(_name(_HELPER), helper, ast.Load()), list(args), [])


def _lambda(body, *params: str) -> ast.Lambda:
    args = ast.arguments([], [ast.arg(p) for p in params], None, [], [], None, [])
    return ast.Lambda(args, body)


def _tuple(names, store=False) -> ast.Tuple:
    return ast.Tuple([_name(n, store) for n in names], ast.Store() if store else ast.Load())


def _function(name: str, params, body) -> ast.FunctionDef:
    args = ast.arguments([], [ast.arg(p) for p in params], None, [], [], None, [])
    return ast.FunctionDef(name, args, body, [], None, type_params=[])


class _Rewriter(ast.NodeTransformer):
    def __init__(self):
        self.count = 0

    def fresh(self, what: str) -> str:
        self.count += 1
        return f"__sampan_{what}_{self.count}"

    # Statements, as lists: what follows an `if` that may leave belongs into its branches.
    def block(self, body: list, tail: bool) -> list:
        """Rewrites statements; `tail` says that the function ends with them."""
        out: list = []
        for at, node in enumerate(body):
            rest = body[at + 1 :]
            if isinstance(node, ast.If) and tail and _has([node], ast.Return, loops=False):
                return out + self.returning(node, rest)
            out += self.statement(node)
            if isinstance(node, (ast.Return, ast.Raise)):
                break
        return out

    def statement(self, node) -> list:
        if isinstance(node, ast.If):
            return self.branches(node)
        if isinstance(node, ast.While):
            return self.loop(node)
        if isinstance(node, ast.For):
            return self.iteration(node)
        if isinstance(node, (ast.With, ast.Try)):
            for field in ("body", "orelse", "finalbody"):
                if getattr(node, field, None):
                    setattr(node, field, self.block(getattr(node, field), False))
            for item in getattr(node, "items", []):
                item.context_expr = self.visit(item.context_expr)
            for handler in getattr(node, "handlers", []):
                handler.body = self.block(handler.body, False)
            return [node]
        if isinstance(node, ast.Assert):
            message = _lambda(self.visit(node.msg) if node.msg else ast.Constant(None))
            return [ast.copy_location(ast.Expr(_call("assert_", _lambda(self.visit(node.test)), message)), node)]
        if isinstance(node, _SCOPES):
            return [node]
        return [self.visit(node)]

    def returning(self, node: ast.If, rest: list) -> list:
        """An `if` that may return, and what follows: every path of it returns."""

        def path(body):
            ends = body and isinstance(body[-1], (ast.Return, ast.Raise))
            whole = body if ends else [*body, *_copies(rest)]
            if not whole or not isinstance(whole[-1], (ast.Return, ast.Raise)):
                whole = [*whole, ast.Return(ast.Constant(None))]
            return whole

        names = _stored([*node.body, *node.orelse, *rest])
        yes, no = self.fresh("then"), self.fresh("else")
        parts = [
            _function(yes, names, self.block(path(node.body), True)),
            _function(no, names, self.block(path(node.orelse), True)),
            ast.Return(_call("returns", self.visit(node.test), _name(yes), _name(no), _tuple(names))),
        ]
        return [ast.copy_location(s, node) for s in [*self.known(names), *parts]]

    def known(self, names) -> list:
        """Names that may have no value yet get a mark for that."""
        return [ast.Assign([_name(n, True)], _call("known", _lambda(_name(n)))) for n in names]

    def branches(self, node: ast.If) -> list:
        names = _stored([*node.body, *node.orelse])
        # Leaving in a way that no rewritten branch can: it stays an `if`, which no tensor without values passes.
        if _has([node], (ast.Return, ast.Break, ast.Continue, ast.Yield, ast.YieldFrom, ast.Await, ast.Delete, ast.Global, ast.Nonlocal)):
            node.test = _call("plain", self.visit(node.test), ast.Constant("if"))
            node.body, node.orelse = self.block(node.body, False), self.block(node.orelse, False)
            return [node]
        yes, no = self.fresh("then"), self.fresh("else")
        end = ast.Return(_tuple(names))
        parts = [
            _function(yes, names, [*self.block(node.body, False), end]),
            _function(no, names, [*self.block(node.orelse, False), end]),
        ]
        chosen = _call("if_", self.visit(node.test), _name(yes), _name(no), _tuple(names), ast.Constant(tuple(names)))
        parts.append(ast.Assign([_tuple(names, True)], chosen) if names else ast.Expr(chosen))
        return [ast.copy_location(s, node) for s in [*self.known(names), *parts]]

    def leaving(self, body: list, flag: str) -> list:
        """The body of a loop without `break` and `continue`: what follows them is another branch."""
        out: list = []
        for at, node in enumerate(body):
            rest = body[at + 1 :]
            if isinstance(node, ast.Continue):
                return out or [ast.Pass()]
            if isinstance(node, ast.Break):
                return [*out, ast.copy_location(ast.Assign([_name(flag, True)], ast.Constant(True)), node)]
            if isinstance(node, ast.If) and _has([node], (ast.Break, ast.Continue), loops=False):
                left = lambda part: part and isinstance(part[-1], (ast.Break, ast.Continue))
                yes = node.body if left(node.body) else [*node.body, *_copies(rest)]
                no = node.orelse if left(node.orelse) else [*node.orelse, *_copies(rest)]
                made = ast.If(node.test, self.leaving(yes, flag) or [ast.Pass()], self.leaving(no, flag))
                return [*out, ast.copy_location(made, node)]
            out.append(node)
        return out

    def prepared(self, node) -> tuple[str, list] | None:
        """The flag that ends a loop and its body without ways out; none if it can only be a plain one."""
        stays = (ast.Return, ast.Yield, ast.YieldFrom, ast.Await, ast.Delete, ast.Global, ast.Nonlocal)
        inner = [n for n in _walk(node.body) if isinstance(n, (ast.With, ast.Try))]
        if _has(node.body, stays) or node.orelse or _has(inner, (ast.Break, ast.Continue)):
            return None
        flag = self.fresh("ended").replace("__sampan", "_sampan")
        return flag, self.leaving(node.body, flag)

    def loop(self, node: ast.While) -> list:
        ready = self.prepared(node)
        if ready is None:
            node.test = _call("plain", self.visit(node.test), ast.Constant("while"))
            node.body = self.block(node.body, False)
            return [node]
        flag, body = ready
        breaks = any(isinstance(n, ast.Name) and n.id == flag for s in body for n in ast.walk(s))
        names = _stored(body)
        test = self.visit(node.test)
        if breaks:
            names = [flag, *[n for n in names if n != flag]]
            goes_on = _call("not_", _name(flag))
            test = _call("and_", _lambda(goes_on), _lambda(test))
        asked, step = self.fresh("test"), self.fresh("body")
        parts = [
            _function(asked, names, [ast.Return(test)]),
            _function(step, names, [*self.block(body, False), ast.Return(_tuple(names))]),
        ]
        chosen = _call("while_", _name(asked), _name(step), _tuple(names), ast.Constant(tuple(names)))
        parts.append(ast.Assign([_tuple(names, True)], chosen) if names else ast.Expr(chosen))
        start = [ast.Assign([_name(flag, True)], ast.Constant(False))] if breaks else []
        return [ast.copy_location(s, node) for s in [*start, *self.known([n for n in names if n != flag]), *parts]]

    def iteration(self, node: ast.For) -> list:
        ready = self.prepared(node)
        items = self.visit(node.iter)
        targets = [n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)]
        plain = all(isinstance(n, (ast.Name, ast.Tuple, ast.List, ast.expr_context, ast.Starred)) for n in ast.walk(node.target))
        if ready is None or not plain:
            node.iter, node.body = _call("items", items), self.block(node.body, False)
            return [node]
        flag, body = ready
        breaks = any(isinstance(n, ast.Name) and n.id == flag for s in body for n in ast.walk(s))
        names = list(dict.fromkeys([flag, *targets, *_stored(body)]))
        step, item = self.fresh("body"), self.fresh("item")
        unpack = ast.Assign([node.target], _name(item))
        inner = [unpack, *self.block(body, False), ast.Return(_tuple(names))]
        chosen = _call("for_", items, _name(step := step), _tuple(names), ast.Constant(tuple(names)), ast.Constant(breaks))
        parts = [
            ast.Assign([_name(flag, True)], ast.Constant(False)),
            *self.known([n for n in names if n != flag]),
            _function(step, [item, *names], inner),
            ast.Assign([_tuple(names, True)], chosen),
        ]
        return [ast.copy_location(s, node) for s in parts]

    # Expressions.
    def visit_BoolOp(self, node):
        helper = "and_" if isinstance(node.op, ast.And) else "or_"
        return ast.copy_location(_call(helper, *[_lambda(self.visit(v)) for v in node.values]), node)

    def visit_UnaryOp(self, node):
        node.operand = self.visit(node.operand)
        return ast.copy_location(_call("not_", node.operand), node) if isinstance(node.op, ast.Not) else node

    def visit_IfExp(self, node):
        parts = self.visit(node.test), _lambda(self.visit(node.body)), _lambda(self.visit(node.orelse))
        return ast.copy_location(_call("choose", *parts), node)

    def visit_Call(self, node):
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "super":
            return node
        node.func = ast.copy_location(_call("called", node.func), node.func)
        return node

    def visit_Lambda(self, node):
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_Lambda


def _copies(nodes) -> list:
    import copy

    return copy.deepcopy(nodes)


def _is_ours(function) -> bool:
    """Is it no code of a program: of this package, of Python or of a library?"""
    path = getattr(function.__code__, "co_filename", "")
    library = f"{os.sep}site-packages{os.sep}" in path or f"{os.sep}lib{os.sep}python" in path
    return path.startswith(_PACKAGE) or library or not os.path.exists(path)


def rewritten(function):
    """A function of a program in a form that can be traced; others as they are."""
    if not isinstance(function, types.FunctionType) or getattr(function, "_not_to_static", False):
        return function
    if function not in _MADE:
        stays = _is_ours(function) or is_ignored(function)
        _MADE[function] = function if stays else _rewrite(function)
    return _MADE[function]


def _rewrite(function):
    try:
        lines, first = inspect.getsourcelines(function)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError, IndentationError):
        return function
    made = tree.body[0] if tree.body else None
    if not isinstance(made, ast.FunctionDef) or inspect.isgeneratorfunction(function):
        return function
    made.decorator_list = []
    made.args.defaults = [ast.Constant(None)] * len(made.args.defaults)
    made.args.kw_defaults = [d and ast.Constant(None) for d in made.args.kw_defaults]
    for argument in ast.walk(made.args):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    made.returns = None
    made.body = _Rewriter().block(made.body, True)
    # A function around it gives it the cells of the old one, and the helpers.
    free = [*function.__code__.co_freevars, _HELPER]
    around = _function("__sampan_around", [], [*[ast.Assign([_name(n, True)], ast.Constant(None)) for n in free], made])
    module = ast.fix_missing_locations(ast.Module([around], []))
    ast.increment_lineno(module, first - 1)
    code = compile(module, function.__code__.co_filename, "exec")
    outer = next(c for c in code.co_consts if isinstance(c, types.CodeType))
    inner = next(c for c in outer.co_consts if isinstance(c, types.CodeType) and c.co_name == function.__name__)
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
    cells[_HELPER] = types.CellType(flow)
    closure = tuple(cells[name] for name in inner.co_freevars)
    result = types.FunctionType(inner, function.__globals__, function.__name__, function.__defaults__, closure)
    result.__kwdefaults__ = function.__kwdefaults__
    return functools.wraps(function)(result)
