"""Base of the classes of `models` in a package of several revisions.

A merged class stands for the Structs of the same name in each revision. A message is decoded into
the Struct of the message's revision; a merged class has no instances of its own.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from types import new_class
from typing import TYPE_CHECKING, Any, TypeGuard

from ._structs import constant_of
from ._wire import STRUCTS, UNSET, StructType, fields
from .facts import MergedClass


class MergedType(MergedClass):
    """The metaclass of merged classes.

    Attributes:
        struct_names: Names of the Structs that the class stands for.
        modules: The modules of the Structs, oldest revision first.
    """

    struct_names: frozenset[str]
    modules: tuple[str, ...]

    def __new__(
        mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any
    ) -> Any:
        """Create a merged class; its options are those of a Struct, for type checkers only.

        A class that a user derives from a merged class is a Struct, derived from that of the newest
        revision.
        """
        parents = tuple(next(base.structs()) if _is_whole(base) else base for base in bases)
        if parents != bases:
            return new_class(name, parents, options, lambda body: body.update(namespace))
        merged = super().__new__(mcs, name, bases, namespace)
        merged.struct_names = frozenset({name, *namespace.get("_other_names", ())})
        if "_folders" in namespace:
            package = namespace["__module__"].rpartition(".")[0]
            merged.modules = tuple(f"{package}.{each}.models" for each in namespace["_folders"])
        return merged

    def __init__(
        cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any
    ) -> None:
        super().__init__(name, bases, namespace)

    def __instancecheck__(cls, instance: object) -> bool:
        """Whether a value is an instance of one of the Structs."""
        return cls.__subclasscheck__(type(instance))

    def __subclasscheck__(cls, subclass: type) -> bool:
        """Whether a class is one of the Structs, or derived from one."""
        if subclass.__module__ in cls.modules:
            return subclass.__name__ in cls.struct_names
        of_a_revision = (each for each in subclass.__mro__ if each.__module__ in cls.modules)
        if any(each.__name__ in cls.struct_names for each in of_a_revision):
            return True
        return super().__subclasscheck__(subclass)

    def __call__(cls, **keywords: Any) -> Any:
        """Create an object of the newest revision that has all the passed members.

        `None` counts as absent, except where null is a value of its own. Constant members, such as
        `type`, may be passed too. A keyword may be the Python name or the wire name of a member.

        Raises:
            TypeError: No revision has these members, or each of them requires others too.
        """
        for struct in cls.structs():
            own = {field.name: field for field in fields(struct)}
            by_wire_name = {field.encode_name: field.name for field in own.values()}
            members = {
                name if name in own else by_wire_name.get(name, name): value
                for name, value in keywords.items()
            }
            present = {name for name, value in members.items() if _is_present(value)}
            required = {name for name, field in own.items() if field.required}
            constants = {
                name for name in present - own.keys() if constant_of(struct, name) == members[name]
            }
            if required <= members.keys() and present - constants <= own.keys():
                nullable = {name for name, field in own.items() if field.default is UNSET}
                passed = (present - constants | required | nullable) & members.keys()
                return struct(**{name: members[name] for name in passed})
        names = sorted(name for name, value in keywords.items() if _is_present(value))
        raise TypeError(
            f"{cls.__name__}: expected members that one revision has, with all that it requires, "
            f"got {', '.join(names) or 'none'}"
        )

    def structs(cls) -> Iterator[StructType]:
        """The Structs that the class stands for, newest revision first; loads them one by one."""
        for module in reversed(cls.modules):
            members = vars(importlib.import_module(module))
            for name in sorted(cls.struct_names):
                struct = members.get(name)
                if isinstance(struct, type) and issubclass(struct, STRUCTS):
                    yield struct


def _is_whole(kind: type) -> TypeGuard[MergedType]:
    """Whether a class is a merged class, and no base of merged classes."""
    return isinstance(kind, MergedType) and bool(kind.modules) and "_folders" not in vars(kind)


def _is_present(value: object) -> bool:
    return value is not None and value is not UNSET


if TYPE_CHECKING:
    from ._wire import Struct

    Merged = Struct
else:

    class Merged(metaclass=MergedType):
        """Base of the merged classes; type checkers take these for Structs.

        A package derives a class whose `_folders` are those of the package's revisions.
        """

        _folders: tuple[str, ...] = ()
