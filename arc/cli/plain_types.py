"""Reads texts, numbers, flags and lists of texts from the command line without pydantic.

Typer reads every value through pydantic, whose import takes longer than most of our commands do.
Our options are of four plain types, so they are read here; any other type still goes typer's way.
The places that are leaned on are typer's own inside: `tests/hub/cli/test_starting.py` notices when
a new version has moved them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast, get_args, get_origin

from typer import BadParameter
from typer._click import Command, Context
from typer._click.core import ParameterSource
from typer._coercion import RuntimeParam
from typer.core import TyperArgument, TyperGroup, TyperOption
from typer.core import _TyperParameter as Parameter

PLAIN = (str, int, bool)
MAY_BE_EMPTY = {"reason", "body"}


class PlainParam(RuntimeParam):
    """A value of a plain type, or of a list of one."""

    def _coerce_value(self, value: object, param: Parameter, ctx: Context) -> object:
        if _is_list(self.annotation):
            kind = get_args(self.annotation)[0]
            return [_read(one, kind, param, ctx) for one in cast("Iterable[object]", value)]
        if isinstance(value, str) and not value.strip() and _has_to_say_something(param, ctx):
            raise BadParameter("says nothing; leave it out, or give a value", ctx=ctx, param=param)
        return _read(value, cast("type", self.annotation), param, ctx)


def _has_to_say_something(param: Parameter, ctx: Context) -> bool:
    """An option that was typed as "" (from a variable of a script that is not set) would count as
    left out, and the command would do another thing than was meant; one of blanks alone says no
    more, and would be kept as a word that nobody sees.
    """
    typed = ctx.get_parameter_source(str(param.name)) is ParameterSource.COMMANDLINE
    return typed and isinstance(param, TyperOption) and param.default == "" and (
        param.name not in MAY_BE_EMPTY)


def _is_list(kind: object) -> bool:
    origin: object = get_origin(cast("type", kind))
    return origin is list


def _read(value: object, kind: type, param: Parameter, ctx: Context) -> object:
    if isinstance(value, kind):
        return value
    if kind is int and isinstance(value, str) and value.removeprefix("-").isdecimal():
        return int(value)
    raise BadParameter(f"{value!r} is no whole number", ctx=ctx, param=param)


def read_plainly(command: Command, help_names: list[str]) -> None:
    """Let this command, and all below it, read their plain options here; the help's flag too."""
    asks_help = command.get_help_option(Context(command, help_option_names=help_names))
    for param in [*command.params, *([asks_help] if asks_help else [])]:
        if isinstance(param, TyperArgument | TyperOption) and _is_plain(param):
            said = param.type_descriptor
            param._runtime_param = PlainParam(said.parameter_info, said.annotation)  # noqa: SLF001
    for below in command.commands.values() if isinstance(command, TyperGroup) else ():
        read_plainly(below, help_names)


def _is_plain(param: TyperArgument | TyperOption) -> bool:
    said = param.type_descriptor
    kind = said.annotation
    if _is_list(kind):
        kind = get_args(kind)[0]
    return kind in PLAIN and not (said.is_choice or said.is_ranged or said.is_file)
