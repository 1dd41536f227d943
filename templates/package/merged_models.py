"""Base of the classes of `models` in a package of several revisions.

Such a class stands for the Structs that the revisions have under its name. A message is decoded
into the Struct of its own revision; a merged class has no objects of its own.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ._structs import constant_of
from ._wire import STRUCTS, UNSET, StructType, fields
from .facts import MergedClass


class MergedType(MergedClass):
    """The type of merged classes.

    Attributes:
        struct_names: Names of the Structs that the class stands for.
        modules: The modules of the Structs, oldest revision first.
    """

    struct_names: frozenset[str]
    modules: tuple[str, ...]

    def __new__(
        mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: bool
    ) -> MergedType:
        """A class; its options are those of a Struct, and only type checkers look at them."""
        made = super().__new__(mcs, name, bases, namespace)
        made.struct_names = frozenset({name, *namespace.get("_other_names", ())})
        if "_folders" in namespace:
            package = namespace["__module__"].rpartition(".")[0]
            made.modules = tuple(f"{package}.{each}.models" for each in namespace["_folders"])
        return made

    def __init__(
        cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: bool
    ) -> None:
        super().__init__(name, bases, namespace)

    def __instancecheck__(cls, instance: object) -> bool:
        """Whether a value is an object of one of the Structs."""
        return cls.__subclasscheck__(type(instance))

    def __subclasscheck__(cls, subclass: type) -> bool:
        """Whether a class is one of the Structs."""
        if subclass.__module__ in cls.modules:
            return subclass.__name__ in cls.struct_names
        return super().__subclasscheck__(subclass)

    def __call__(cls, **keywords: Any) -> Any:
        """An object of the newest revision that has all members given.

        A member that is `None` counts as absent, except where null is a value of its own. One that
        is constant, such as `type`, may be given too. A member may have its name on the wire.

        Raises:
            TypeError: No revision has these members, or all of them require more.
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


def _is_present(value: object) -> bool:
    return value is not None and value is not UNSET


if TYPE_CHECKING:
    from ._wire import Struct

    Merged = Struct
else:

    class Merged(metaclass=MergedType):
        """Base of the merged classes, which for type checkers are Structs themselves.

        A package has a class between, whose `_folders` are those of its revisions.
        """

        _folders: tuple[str, ...] = ()
