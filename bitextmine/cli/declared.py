"""Commands made of their functions: each parameter is an option (`declarations.Opt`), or an object of options."""

import contextlib
import dataclasses
import inspect
from collections.abc import Callable, Iterator
from typing import Any, get_type_hints

import click

from bitextmine.cli.shell import usage_errors
from bitextmine.declarations import Choice, Declared, Opt, declare, declared, take
from bitextmine.errors import UsageError
from bitextmine.files.storage import is_remote

Function = Callable[..., Any]


class Only:
    """A mark on an object of options: the command has these alone; a keyword declares one in another way."""

    def __init__(self, *names: str, **changed: Opt) -> None:
        self.names, self.changed = {*names, *changed}, changed


class _Value(click.ParamType):
    """The text of an option, converted and checked as its declaration says."""

    def __init__(self, option: Declared) -> None:
        self.option = option
        self.name = {int: "N", float: "X"}.get(option.type, "TEXT")
        if option.kind is not None:
            self.name = option.kind.metavar

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value; a problem with it is an error that names the option."""
        name = param.human_readable_name if isinstance(param, click.Argument) else self._flag(param)
        with usage_errors(ctx):
            return self.option.check_each(self._parsed(value, name), name)

    def _flag(self, param: click.Parameter | None) -> str:
        return max(param.opts, key=len) if param is not None else self.option.name

    def _parsed(self, value: Any, name: str) -> Any:
        if not isinstance(value, str):
            return value
        if not value and value != self.option.default:  # probably an unset variable of a script
            raise UsageError(f"{name}: the value is empty")
        if self.option.kind is not None:
            return value
        if self.option.type in (int, float):
            with contextlib.suppress(ValueError):
                return self.option.type(value)
        elif not self.option.opt.remote and is_remote(value):
            raise UsageError(f"{name}: expected a local path, not a URL: {value}")
        return value


def command(group: click.Group, name: str, **more: Any) -> Callable[[Function], Function]:
    """Add a function to a group of commands; `more` are arguments of `shell.Command`, and its docstring is the help."""

    def add(function: Function) -> Function:
        hints = get_type_hints(function, include_extras=True)
        hints.pop("return", None)
        parameters = inspect.signature(function).parameters
        options = [declare(name, hint, parameters[name].default) for name, hint in hints.items()]

        def call(**given: Any) -> Any:
            if (ray := given.pop("ray", None)) is not None:
                given["executor"] = f"ray://{ray}"
            single = {each.name: each.check(given.pop(each.name)) for each in options if not each.group}
            return function(**single, **{each.name: take(each.type, given) for each in options if each.group})

        params = [param for option in options for param in _params(option)]
        names = [param.name for param in params]
        assert len({*names}) == len(names), f"{name}: an option is declared twice: {names}"
        more.setdefault("help", inspect.getdoc(function))
        group.command(name, params=params, **more)(call)
        return function

    return add


def _params(option: Declared) -> Iterator[click.Parameter]:
    """Yield the parameters of a command for an option, or for each in an object of options."""
    if not option.group:
        yield _param(option)
        if option.name == "executor":  # an alias in this version
            yield click.Option(["--ray"], help="Alias: --executor ray://...", hidden=True)
        return
    only = next((mark for mark in option.marks if isinstance(mark, Only)), None)
    for field in declared(option.type).values():
        if field.opt.flags and (only is None or field.name in only.names):
            opt = field.opt if only is None else only.changed.get(field.name, field.opt)
            yield from _params(dataclasses.replace(field, opt=opt))


def _param(option: Declared) -> click.Parameter:
    opt, required = option.opt, option.default is inspect.Parameter.empty
    default = None if required else option.default
    more: dict[str, Any] = {"type": _Value(option), "required": required}
    if not opt.flags.startswith("-"):
        count = -1 if option.several else 1
        return click.Argument([option.name], metavar=opt.flags, nargs=count, **more)
    if option.type is bool:
        more = {"is_flag": True, "show_default": "/" in opt.flags and default is not None}
    elif option.choices:
        more["type"] = click.Choice([str(choice) for choice in option.choices])
        default = default if default is None else str(default)
    else:
        more["metavar"] = opt.metavar or more["type"].name
    shown = opt.default is None and default not in (None, (), "", "-")
    more = {"show_default": shown, "envvar": opt.envvar, **more}
    if not required:  # a default of None would count as a value
        more["default"] = default
    if opt.alone is not None:
        more |= {"is_flag": False, "flag_value": opt.alone}
    flags = [*opt.flags.split(), option.name]
    return click.Option(flags, help=_help(option), multiple=option.several, **more)


def _help(option: Declared) -> str:
    text = option.opt.help
    if isinstance(option.type, type) and issubclass(option.type, Choice):
        text += f" {'; '.join(f'{choice}: {choice.meaning}' for choice in option.type)}."
    if option.several:
        text += " Repeatable."
    if option.opt.default is not None:
        text += f"  [default: {option.opt.default}]"
    return text


def explicit(name: str) -> bool:
    """Return True if an option was given on the command line, not by the environment or a default."""
    source = click.get_current_context().get_parameter_source(name)
    return source == click.core.ParameterSource.COMMANDLINE
