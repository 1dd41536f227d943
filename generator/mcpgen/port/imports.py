"""The imports of a changed module.

An import of a name that has a place in the package is an import from there. One of a name that the
changed module no longer mentions goes; any other one stays, and is listed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider

from mcpgen.port import alternatives
from mcpgen.port.alternatives import Target
from mcpgen.port.rewriting import Rewritten
from mcpgen.port.servers import Servers, dotted_name
from mcpgen.port.unported import Unported


def change_imports(path: str, changed: Rewritten, package: str, servers: Servers) -> cst.Module:
    """The module with its imports changed; adds to the findings what stays.

    Args:
        path: Its file, as it was named.
        changed: The module, and what it needs of the package.
        package: The import name of the package.
        servers: Its servers.
    """
    module = changed.module.visit(_DeadOptions(servers, changed.module))
    assert isinstance(module, cst.Module)  # the visitor removes statements alone
    mentions = _Mentions()
    module.visit(mentions)
    fixer = _Fixer(path, package, mentions, changed.needed)
    wrapper = MetadataWrapper(module)
    made = wrapper.visit(fixer)
    changed.findings += fixer.findings
    lines = _library_imports(made, changed.modules)
    if fixer.needed:
        lines += _lines(package, fixer.needed)
    return made if not lines else _with_import(made, lines)


class _Mentions(cst.CSTVisitor):
    """Collects the names and the chains of attributes of a module, without its imports."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.chains: set[str] = set()

    def visit_Import(self, node: cst.Import) -> bool:
        return False

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:
        return False

    def visit_Attribute(self, node: cst.Attribute) -> None:
        if chain := dotted_name(node):
            self.chains.add(chain)

    def visit_Name(self, node: cst.Name) -> None:
        self.names.add(node.value)


class _DeadOptions(cst.CSTTransformer):
    """Removes `options = server.create_initialization_options()` where nothing uses it.

    So it does with `options = InitializationOptions(...)`, whose name and version have moved.
    """

    def __init__(self, servers: Servers, module: cst.Module) -> None:
        super().__init__()
        self._servers = servers
        counter = _Counter()
        module.visit(counter)
        self._counts = counter.counts
        self._classes = counter.options

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine | cst.RemovalSentinel:
        match updated_node.body:
            case [
                cst.Assign(
                    targets=[cst.AssignTarget(target=cst.Name(value=name))],
                    value=cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value=member))),
                )
            ]:
                is_server = dotted_name(owner) in self._servers.names
                is_made = is_server and member == "create_initialization_options"
                if is_made and self._counts[name] == 1:
                    return cst.RemoveFromParent()
            case [
                cst.Assign(
                    targets=[cst.AssignTarget(target=cst.Name(value=name))],
                    value=cst.Call(func=cst.Name(value=own)),
                )
            ] if own in self._classes and self._counts[name] == 1:
                return cst.RemoveFromParent()
            case _:
                pass
        return updated_node


class _Counter(cst.CSTVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.counts: defaultdict[str, int] = defaultdict(int)
        self.options: set[str] = set()

    def visit_ImportFrom(self, node: cst.ImportFrom) -> None:
        if node.module is None or isinstance(node.names, cst.ImportStar):
            return
        if dotted_name(node.module) == "mcp.server.models":
            self.options |= {dotted_name(each.name) for each in node.names if each.asname is None}

    def visit_Name(self, node: cst.Name) -> None:
        self.counts[node.value] += 1


class _Fixer(cst.CSTTransformer):
    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(
        self, path: str, package: str, mentions: _Mentions, needed: Iterable[Target]
    ) -> None:
        super().__init__()
        self.findings: list[Unported] = []
        self.needed: set[Target] = {
            each for each in needed if (each.name or each.module) in mentions.names
        }
        self._imported: set[tuple[Target, str]] = set()
        self._depth = 0
        self._path = path
        self._package = package
        self._mentions = mentions

    def visit_IndentedBlock(self, node: cst.IndentedBlock) -> None:
        self._depth += 1

    def leave_IndentedBlock(
        self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock
    ) -> cst.IndentedBlock:
        self._depth -= 1
        return updated_node

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> (
        cst.SimpleStatementLine | cst.FlattenSentinel[cst.SimpleStatementLine] | cst.RemovalSentinel
    ):
        if len(updated_node.body) != 1:
            return updated_node
        statement = updated_node.body[0]
        made: list[cst.BaseSmallStatement] | None = None
        if isinstance(statement, cst.ImportFrom):
            made = self._from(original_node, statement)
        elif isinstance(statement, cst.Import):
            made = self._plain(original_node, statement)
        if made is None:
            return updated_node
        if not made:
            return cst.RemoveFromParent()
        lines = [cst.SimpleStatementLine([each]) for each in made]
        lines[0] = lines[0].with_changes(leading_lines=updated_node.leading_lines)
        lines[-1] = lines[-1].with_changes(trailing_whitespace=updated_node.trailing_whitespace)
        return cst.FlattenSentinel(lines)

    def _from(
        self, line: cst.CSTNode, statement: cst.ImportFrom
    ) -> list[cst.BaseSmallStatement] | None:
        module = "" if statement.module is None else dotted_name(statement.module)
        if statement.relative or not alternatives.is_sdk(module):
            return None
        if isinstance(statement.names, cst.ImportStar):
            self._leave(line, f"from {module} import *", "import each name")
            return None
        kept: list[cst.ImportAlias] = []
        targets: set[tuple[Target, str]] = set()
        for each in statement.names:
            name = dotted_name(each.name)
            local = name if each.asname is None else dotted_name(each.asname.name)
            target = alternatives.target(f"{module}.{name}")
            if target is not None:
                keeps_name = each.asname is not None or not target.name
                if keeps_name and local in self._mentions.names:
                    targets.add((target, local))
            elif local in self._mentions.names:
                kept.append(each)
                advice = alternatives.advice_on_name(f"{module}.{name}")
                self._leave(line, f"from {module} import {name}", advice)
        if len(kept) == len(statement.names):
            return None
        made: list[cst.BaseSmallStatement] = []
        if kept:
            last = kept[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
            made.append(statement.with_changes(names=[*kept[:-1], last]))
        return [*made, *self._imports(targets)]

    def _imports(self, targets: Iterable[tuple[Target, str]]) -> list[cst.BaseSmallStatement]:
        """Imports of targets, and of what else the module needs, each once.

        An import in a block binds names there alone, so that has only the names given by it.
        """
        if self._depth:
            return _lines_of(self._package, {*targets})
        whole = {*targets, *((each, each.name or each.module) for each in self.needed)}
        self.needed = set()
        new = whole - self._imported
        self._imported |= new
        return _lines_of(self._package, new)

    def _plain(self, line: cst.CSTNode, statement: cst.Import) -> list[cst.BaseSmallStatement]:
        kept: list[cst.ImportAlias] = []
        made: list[cst.BaseSmallStatement] = []
        for each in statement.names:
            name = dotted_name(each.name)
            if not alternatives.is_sdk(name):
                kept.append(each)
                continue
            alias = None if each.asname is None else dotted_name(each.asname.name)
            target = alternatives.target(name)
            if target is not None and alias is not None:
                is_named = alias in self._mentions.names
                made += self._imports({(target, alias)} if is_named else ())
                continue
            chains = self._mentions.chains
            local = alias or name
            is_used = any(f"{chain}.".startswith(f"{local}.") for chain in chains)
            if is_used or (alias is not None and alias in self._mentions.names):
                kept.append(each)
                self._leave(line, f"import {name}", alternatives.advice_on_name(name))
            else:
                made += self._imports(())
        if kept:
            last = kept[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
            made.insert(0, statement.with_changes(names=[*kept[:-1], last]))
        return made

    def _leave(self, node: cst.CSTNode, code: str, remedy: str) -> None:
        position = self.get_metadata(PositionProvider, node)
        assert isinstance(position, CodeRange)  # the module is whole
        self.findings.append(Unported(self._path, position.start.line, code, remedy))


def _library_imports(module: cst.Module, names: Iterable[str]) -> list[cst.BaseSmallStatement]:
    """Imports of modules of Python's library that a module lacks at its top."""
    present = {
        dotted_name(each.name)
        for line in module.body
        if isinstance(line, cst.SimpleStatementLine)
        for statement in line.body
        if isinstance(statement, cst.Import)
        for each in statement.names
        if each.asname is None
    }
    made: list[cst.BaseSmallStatement] = []
    for name in sorted({*names} - present):
        statement = cst.parse_statement(f"import {name}")
        made += cst.ensure_type(statement, cst.SimpleStatementLine).body
    return made


def _lines(package: str, targets: Iterable[Target]) -> Sequence[cst.BaseSmallStatement]:
    return _lines_of(package, {(each, each.name or each.module) for each in targets})


def _lines_of(package: str, targets: set[tuple[Target, str]]) -> list[cst.BaseSmallStatement]:
    """Import statements, each with the names of one module of the package, sorted."""
    by_module: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    for target, local in targets:
        if target.name:
            module = f"{package}.{target.module}" if target.module else package
            by_module[module].append((target.name, local))
        else:
            by_module[package].append((target.module, local))
    made: list[cst.BaseSmallStatement] = []
    for module, names in sorted(by_module.items()):
        texts = [
            name if name == local else f"{name} as {local}" for name, local in sorted(set(names))
        ]
        statement = cst.parse_statement(f"from {module} import {', '.join(texts)}")
        made += cst.ensure_type(statement, cst.SimpleStatementLine).body
    return made


def _with_import(module: cst.Module, lines: Sequence[cst.BaseSmallStatement]) -> cst.Module:
    """The module with import statements after its docstring and its imports from `__future__`."""
    index = 0
    for number, each in enumerate(module.body):
        if not isinstance(each, cst.SimpleStatementLine):
            break
        first = each.body[0]
        is_future = (
            isinstance(first, cst.ImportFrom)
            and first.module is not None
            and dotted_name(first.module) == "__future__"
        )
        is_docstring = number == 0 and isinstance(first, cst.Expr)
        if is_future or is_docstring:
            index = number + 1
    made = [cst.SimpleStatementLine([each]) for each in lines]
    return module.with_changes(body=[*module.body[:index], *made, *module.body[index:]])
