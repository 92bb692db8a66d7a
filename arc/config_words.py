"""Checks the single words of fleet.yaml: names, machines, numbers and how often."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from urllib.parse import urlsplit

from agent_node.fields import is_money

from .durations import parse_duration

NAME_PATTERN = r"^[a-z][a-z0-9-]{0,31}$"
EVERY_MIN_S, EVERY_MAX_S = 1.0, 7 * 86_400.0
WORD_MAX, WORDS_MAX = 4096, 64  # of a command
WIDE = 24  # characters of an amount that somebody may have meant


def parse_name(value: object) -> str:
    """A name of a fleet, hub, node, sensor or domain."""
    if isinstance(value, str) and re.fullmatch(NAME_PATTERN[1:-1], value):
        return value
    raise ValueError("should be a name: a to z, 0 to 9 and -, a letter first, at most 32")


def parse_flag(value: object) -> bool:
    """True or false, and nothing that merely sounds like it."""
    if isinstance(value, bool):
        return value
    raise ValueError("should be true or false")


def text_of(longest: int, what: str) -> Callable[[object], str]:
    """A check for texts of one line that are not empty; `what` is what one should be."""

    def check(value: object) -> str:
        if isinstance(value, str) and value.strip() and value.isprintable():
            if len(value) <= longest:
                return value
            raise ValueError(f"should have at most {longest} characters")
        raise ValueError(f"should be {what}")

    return check


def whole_of(low: int, high: int) -> Callable[[object], int]:
    """A check for whole numbers within these bounds."""

    def check(value: object) -> int:
        if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
            return value
        raise ValueError(f"should be a whole number from {low} to {high}")

    return check


def parse_host(value: object) -> str:
    """A machine by its name or address, without user and port."""
    plain = text_of(253, "the name or the address of a machine")(value)
    if "@" in plain:
        user, _, host = plain.rpartition("@")
        raise ValueError(f"should be the machine alone; write host: {host} and user: {user}")
    if re.fullmatch(r"[^:]+:\d+", plain):
        host, _, port = plain.partition(":")
        raise ValueError(f"should be the machine alone; write host: {host} and port: {port}")
    if not re.fullmatch(r"[A-Za-z0-9_:][A-Za-z0-9_.:%-]*", plain):
        raise ValueError("should be the name or the address of a machine, such as spark.lan")
    return plain


def parse_user(value: object) -> str:
    """A user name of the machine."""
    if isinstance(value, str) and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}\$?", value):
        return value
    raise ValueError("should be the name of a user on that machine")


def parse_every(value: object) -> float:
    """How often a sensor runs, in seconds: neither in a rush nor once a year."""
    seconds = parse_duration(value)
    if EVERY_MIN_S <= seconds <= EVERY_MAX_S:
        return seconds
    raise ValueError("should lie between 1s and 7d")


def parse_some_time(value: object) -> float:
    """A length of time in seconds that is more than none."""
    seconds = parse_duration(value)
    if seconds > 0:
        return seconds
    raise ValueError("should be longer than 0s")


def parse_url(value: object) -> str:
    """An address of http or https, without a name and a password in it."""
    plain = text_of(2000, "an address such as https://example.org/arc")(value)
    try:
        parts = urlsplit(plain)
        good = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError as error:
        raise ValueError(f"should be an address of http or https: {error}") from error
    if not good or not plain.isascii() or " " in plain:
        raise ValueError("should be an address such as https://example.org/arc")
    if parts.username is not None or parts.password is not None:
        raise ValueError("should hold no name and no password; sign with secret_file")
    return plain


def parse_mail(value: object) -> str:
    """One address of one person."""
    plain = text_of(254, "one address, such as ada@example.org")(value)
    if not re.fullmatch(r"[A-Za-z0-9._%+=-]{1,64}@[A-Za-z0-9.-]{1,189}", plain):
        raise ValueError("should be one address, such as ada@example.org")
    return plain


def parse_command(value: object) -> tuple[str, ...]:
    """A program and its arguments, one text each; no shell reads them."""
    if not isinstance(value, list | tuple) or not value:
        raise ValueError("should be a list: the program and its arguments")
    good = all(isinstance(one, str) and "\0" not in one and len(one) <= WORD_MAX for one in value)
    if not good or not value[0] or len(value) > WORDS_MAX:
        raise ValueError("should be a list of texts: the program and its arguments")
    return tuple(value)


def parse_amount(value: object) -> str:
    """An amount of USD as text, as it stands in the file: no number with a fraction is exact."""
    said = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if isinstance(said, str) and is_money(said):
        return said
    meant = f'; did you mean "{near}"?' if (near := _meant(said)) else ""
    raise ValueError(f"should be an amount in USD, such as 12.50{meant}")


def _meant(said: object) -> str | None:
    """The same amount as it may be written; None: it is none."""
    try:
        near = Decimal(str(said)[: WIDE + 1])
    except InvalidOperation:
        return None
    if len(str(said)) > WIDE or not near.is_finite() or abs(near.adjusted()) > WIDE:
        return None
    text = format(near, "f")
    return text if is_money(text) else None
