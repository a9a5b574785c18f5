"""Options, declared once, as fields of dataclasses.

An option is one field with its type, limits and help:

    @dataclass(frozen=True)
    class MiningOptions(Options):
        k: Annotated[int, Opt("-k", "Neighbours for the margin.", ge=1)] = 4

The options of a command are made of these fields (`cli.declared`), and so are the keywords of the function that does
the same in Python (`keywords`); both check values here.
"""

import dataclasses
import enum
import functools
import inspect
import operator
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from bitextmine.arguments import a_path, byte_count, matching, one_of, real_number, whole_number, yes_or_no
from bitextmine.errors import UsageError

Result = TypeVar("Result")
Group = TypeVar("Group", bound="Options")
_LIMITS = {"ge": ("at least", operator.ge), "gt": ("above", operator.gt)}
_LIMITS |= {"le": ("at most", operator.le), "lt": ("below", operator.lt)}


@dataclass(frozen=True)
class Opt:
    """An option of the command line, in the annotation of a field or a parameter.

    Attributes:
        flags: its names, as in "-o --output" or "--clean/--no-clean"; for an argument its placeholder, as in
            "CORPUS..."; none for an option of Python alone.
        help: its line in ``--help``.
        ge, gt, le, lt: limits of a number.
        metavar: placeholder of the value in the help (default: by the type).
        default: describes a default whose value says nothing.
        alone: the value of the option without one.
        envvar: the environment variable that also sets it.
        remote: a URL may take the place of a path.
    """

    flags: str = ""
    help: str = ""
    _: KW_ONLY
    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None
    metavar: str | None = None
    default: str | None = None
    alone: str | None = None
    envvar: str | None = None
    remote: bool = False


@dataclass(frozen=True)
class Kind:
    """A type of values that Python lacks, such as a size: its placeholder, and its check.

    `check` takes the text of a command line or the value of a caller, and returns the value to use. Its UsageError
    does not name the option: "expected ..., found ...". `accepts` is the type of a caller's value, if it may have
    others than the declared one.
    """

    metavar: str
    check: Callable[[Any], Any]
    accepts: str = ""


def one_of_names(names: Iterable[str]) -> Kind:
    """Return the kind of values that are one of some names."""
    names = tuple(names)
    return Kind("|".join(names), matching("|".join(map(re.escape, names)), f"one of {', '.join(names)}"))


class Choice(enum.StrEnum):
    """A choice that equals its name as text, with its meaning for ``--help``."""

    meaning: str

    def __new__(cls, name: str, meaning: str = "") -> "Choice":
        """Make a member; with the name alone Python looks it up instead."""
        member = str.__new__(cls, name)
        member._value_ = name
        member.meaning = meaning
        return member


Path = str | os.PathLike[str]
Size = Annotated[int, Kind("SIZE", byte_count, "int | str")]
Seed = Annotated[int, Opt("--seed", "Random seed.", ge=0, le=2**32 - 1)]


@dataclass(frozen=True)
class Declared:
    """An option as its annotation declares it.

    Attributes:
        type: bool, int, float, str, os.PathLike, an enum, a subclass of `Options`, or Any.
        optional: None is a value.
        several: the value is a tuple.
        choices: the values of an enum or a Literal.
        marks: other objects in the annotation.
    """

    name: str
    type: Any
    default: Any
    opt: Opt
    kind: Kind | None
    optional: bool
    several: bool
    choices: tuple[str, ...]
    marks: tuple[Any, ...] = ()

    @property
    def group(self) -> bool:
        """Tell whether this is an object of further options."""
        return isinstance(self.type, type) and issubclass(self.type, Options)

    @property
    def annotation(self) -> str:
        """Return the type of the values that a caller may give, as Python writes it."""
        if self.kind is not None and self.kind.accepts:
            text = self.kind.accepts
        elif self.choices:
            named = "" if self.type is str else f"{self.type.__name__} | "
            text = f"{named}Literal[{', '.join(repr(str(choice)) for choice in self.choices)}]"
        elif self.type is os.PathLike:
            text = "str | os.PathLike[str]"
        else:
            text = "Any" if self.type is Any else self.type.__name__
        if self.several:
            text = f"Sequence[{text}]"
        return f"{text} | None" if self.optional else text

    def parameter(self, kind: Any) -> inspect.Parameter:
        """Return the parameter of a function for this option."""
        return inspect.Parameter(self.name, kind, default=self.default, annotation=self.annotation)

    def check(self, value: Any, name: str | None = None) -> Any:
        """Return a value in the declared type; raise UsageError, which calls it `name` (default: its own)."""
        name = name or self.name
        if value is None and self.optional:
            return None
        if not self.several:
            return self.check_each(value, name)
        if isinstance(value, str | os.PathLike) or not hasattr(value, "__iter__"):
            raise UsageError(f"{name}: expected a sequence, found {value!r}")
        return tuple(self.check_each(each, name) for each in value)

    def check_each(self, value: Any, name: str) -> Any:
        """Return one of the values; see `check`."""
        if self.kind is not None:
            try:
                return self.kind.check(value)
            except UsageError as error:
                raise UsageError(f"{name}: {error}") from None
        if self.choices:
            chosen = one_of(name, value, self.choices)
            return chosen if self.type is str else self.type(chosen)
        if self.type is int:
            return self._within(whole_number(name, value, None), name)
        if self.type is float:
            return self._within(real_number(name, value), name)
        if self.type is bool:
            return yes_or_no(name, value)
        if self.type is os.PathLike:
            return a_path(name, value)
        if isinstance(self.type, type) and not isinstance(value, self.type):
            raise UsageError(f"{name}: expected {self.type.__name__}, found {value!r}")
        return value

    def _within(self, number: Any, name: str) -> Any:
        for limit, (words, holds) in _LIMITS.items():
            bound = getattr(self.opt, limit)
            if bound is not None and not holds(number, bound):
                raise UsageError(f"{name} must be {words} {bound:g}, found {number:g}")
        return number


def declare(name: str, hint: Any, default: Any = inspect.Parameter.empty) -> Declared:
    """Return the option that an annotation declares."""
    opt, kind, optional, several, base = Opt(), None, False, False, hint
    choices: tuple[str, ...] = ()
    limits: tuple[Any, ...] = ()
    while (origin := get_origin(base)) is not None:
        if origin is Annotated:
            marks = base.__metadata__[::-1]
            opt = next((mark for mark in marks if isinstance(mark, Opt)), opt)
            kind = next((mark for mark in marks if isinstance(mark, Kind)), kind)
            limits += tuple(mark for mark in marks if not isinstance(mark, Opt | Kind))
            base = base.__origin__
        elif origin in (Union, UnionType):
            kinds = [each for each in get_args(base) if each is not NoneType]
            optional = optional or len(kinds) < len(get_args(base))
            paths = [each for each in kinds if get_origin(each) is os.PathLike]
            base = (paths or kinds)[0] if paths or len(kinds) == 1 else Any
        elif origin is tuple and kind is None:
            several, base = True, get_args(base)[0]
        elif origin is Literal:
            choices, base = get_args(base), str
        else:
            base = origin if origin is os.PathLike else Any
    if isinstance(base, type) and issubclass(base, enum.Enum):
        choices = tuple(str(choice) for choice in base)
    return Declared(name, base, default, opt, kind, optional, several, choices, limits)


def declared(options: Any) -> dict[str, Declared]:
    """Return the options of a dataclass by name, in order."""
    return _declared(options)


@functools.cache
def _declared(options: Any) -> dict[str, Declared]:
    hints = get_type_hints(options, include_extras=True)
    fields: dict[str, Declared] = {}
    for field in dataclasses.fields(options):
        factory: Any = field.default_factory
        default = field.default if factory is dataclasses.MISSING else factory()
        fields[field.name] = declare(field.name, hints[field.name], default)
    return fields


class _Signature:
    """The signature of a class of options for ``help()``, without what the command line alone needs."""

    def __get__(self, _: object, options: type["Options"]) -> inspect.Signature:
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return inspect.Signature([option.parameter(kind) for option in declared(options).values()])


class _Documentation:
    """The docstring of a class of options, with the help of each."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __get__(self, _: object, options: type["Options"]) -> str:
        helped = [
            f"    {name}: {option.opt.help}" for name, option in declared(options).items() if option.opt.help
        ]
        return "\n".join([self._text, "", "Options:", *helped]) if helped else self._text


@dataclass(frozen=True)
class Options:
    """A dataclass whose annotated fields are options; making one checks and converts their values.

    Raises:
        UsageError: a value has the wrong type or is out of range.
    """

    __signature__ = _Signature()

    def __init_subclass__(cls) -> None:
        cls.__doc__ = _Documentation(inspect.cleandoc(cls.__doc__ or ""))  # type: ignore[assignment]

    def __post_init__(self) -> None:
        for name, option in declared(type(self)).items():
            object.__setattr__(self, name, option.check(getattr(self, name)))


def take(options: type[Group], given: dict[str, Any], name: str | None = None) -> Group:
    """Return an object of options from keywords: the object itself under `name`, if any, and its fields, which win.

    Removes what it takes from `given`.

    Raises:
        UsageError: the object is of another class.
    """
    whole = None if name is None else given.pop(name, None)
    if whole is not None and not isinstance(whole, options):
        raise UsageError(f"{name}: expected {options.__name__}, found {whole!r}")
    values = {field: given.pop(field) for field in declared(options) if field in given}
    if whole is None:
        return options(**values)
    return dataclasses.replace(whole, **values) if values else whole


def keywords(function: Callable[..., Result]) -> Callable[..., Result]:
    """Let a function whose parameters are objects of `Options` take their fields as keywords, too.

    The fields win over an object. ``help()`` shows them all, with the texts of the command line.

    Raises:
        TypeError: a keyword is neither a parameter nor a field.
        UsageError: an object is of another class, or a value is wrong.
    """
    signature = inspect.signature(function)
    groups: dict[str, type[Options]] = {}
    own: list[inspect.Parameter] = []
    for name, parameter in signature.parameters.items():
        group = parameter.annotation
        if isinstance(group, str):
            group = function.__globals__.get(group)
        if isinstance(group, type) and issubclass(group, Options):
            groups[name] = group
        else:
            own.append(parameter)
    named = {parameter.name for parameter in own}
    options: dict[str, Declared] = {}
    for name, group in groups.items():
        options |= {**declared(group), name: declare(name, group)}
    more = []
    for option in sorted(options.values(), key=lambda option: option.group):
        if option.group:
            option = dataclasses.replace(option, default=None, optional=True)
        if option.name not in named:
            more.append(option.parameter(inspect.Parameter.KEYWORD_ONLY))
    documented = [each.name for each in own if each.kind is each.KEYWORD_ONLY] + [each.name for each in more]
    positional = [each.name for each in own if each.kind is each.POSITIONAL_OR_KEYWORD]

    @functools.wraps(function)
    def call(*args: Any, **given: Any) -> Result:
        if twice := given.keys() & positional[: len(args)]:
            name = min(twice)
            meant = f"; {name}_lang names its language" if f"{name}_lang" in documented else ""
            raise TypeError(f"{name!r} is given twice, by position and by name{meant}")
        rest = {name: given.pop(name) for name in given.keys() - named}
        if unknown := rest.keys() - set(documented):
            raise TypeError(f"unexpected argument {min(unknown)!r}; the options are {', '.join(documented)}")
        return function(*args, **given, **{name: take(group, rest, name) for name, group in groups.items()})

    texts = [f"    {each.name}: {each.opt.help}" for each in options.values() if each.opt.help]
    call.__doc__ = "\n".join([inspect.getdoc(function) or "", "", "Options:", *texts])
    call.__signature__ = signature.replace(parameters=[*own, *more])  # type: ignore[attr-defined]
    return call
