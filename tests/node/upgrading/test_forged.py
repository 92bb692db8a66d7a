"""Sends programs that nobody signed, or that were signed for something else: none is taken."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_node import signing
from agent_node.errors import BadInput
from agent_node.signing import NAMESPACE, operators_line, verify
from agent_node.strict import LINE_MAX
from tests.node.upgrading.programs import Keys, ProgramNode, Pyz, a_program
from tests.node.wire.processes import Program

Offer = dict[str, Any]
Forge = Callable[[Offer, Keys, Pyz], Offer]


def restated(offer: Offer, keys: Keys, **said: object) -> Offer:
    """The statement says this instead, and is well signed."""
    statement = json.dumps({**json.loads(offer["statement"]), **said})
    return {**offer, "statement": statement, "signature": keys.sign(statement.encode())}


def by_hub(offer: Offer, keys: Keys, new: Pyz) -> Offer:
    return {**offer, "signature": keys.sign(offer["statement"].encode(), key=keys.hub)}


def for_mail(offer: Offer, keys: Keys, new: Pyz) -> Offer:
    return {**offer, "signature": keys.sign(offer["statement"].encode(), namespace="git")}


def of_the_file(offer: Offer, keys: Keys, new: Pyz) -> Offer:
    return {**offer, "signature": keys.sign(new.content)}


def altered_file(offer: Offer, keys: Keys, new: Pyz) -> Offer:
    altered = new.content[:-1] + bytes([new.content[-1] ^ 1])
    return {**offer, "file": base64.b64encode(altered).decode()}


FORGED: dict[str, tuple[str, Forge]] = {
    "unsigned": ("bad_input", lambda o, k, n: {**o, "signature": None}),
    "an empty signature": ("signature_unreadable", lambda o, k, n: {**o, "signature": ""}),
    "a text as signature": ("signature_unreadable", lambda o, k, n: {**o, "signature": "yes"}),
    "an armoured nothing": ("signature_unreadable", lambda o, k, n: {
        **o, "signature": "-----BEGIN SSH SIGNATURE-----\nU1NI\n-----END SSH SIGNATURE-----"}),
    "signed by the hub's key": ("signature_unknown_key", by_hub),
    "signed for something else": ("signature_namespace", for_mail),
    "the file signed, not the statement": ("signature_wrong", of_the_file),
    "an altered file": ("upgrade_other_program", altered_file),
    "an altered statement": ("signature_wrong", lambda o, k, n: {
        **o, "statement": o["statement"].replace('"allow_older":false', '"allow_older":true')}),
    "a statement about another file": (
        "upgrade_other_program", lambda o, k, n: restated(o, k, program_sha256="0" * 64)),
    "an older version": ("upgrade_older", lambda o, k, n: restated(o, k, version="0.0.9")),
    "a version that is none": ("bad_input", lambda o, k, n: restated(o, k, version="1.0.0-rc1")),
    "a word that we do not know": ("bad_input", lambda o, k, n: restated(o, k, only="loom")),
    "another schema": ("bad_input", lambda o, k, n: restated(o, k, schema="mail/1")),
    "signed in a year to come": (
        "upgrade_older", lambda o, k, n: restated(o, k, made_at="2999-01-01T00:00:00Z")),
    "a path as hash": ("bad_input", lambda o, k, n: {
        **restated(o, k, program_sha256="../../../../etc/passwd"),
        "sha256": "../../../../etc/passwd"}),
    "a list as file": ("bad_input", lambda o, k, n: {**o, "file": [1, 2]}),
    "no base64": ("bad_input", lambda o, k, n: {**o, "file": "?" * 100}),
    "no file at all": ("bad_input", lambda o, k, n: {**o, "file": None}),
    "meant for another life": ("other_incarnation", lambda o, k, n: {
        **o, "incarnation": "01J00000000000000000000000"}),
}  # fmt: skip


@pytest.mark.parametrize(("code", "forge"), FORGED.values(), ids=FORGED)
def test_a_forged_program_is_refused_by_name_and_nothing_is_written(
    node: ProgramNode, keys: Keys, old: Pyz, new: Pyz, code: str, forge: Forge
) -> None:
    """Fails for its own row when the check of that row is taken away; without `verify` the rows
    of the hub's key, of the other namespace and of altered statements install the program.
    """
    (_, reply) = node.wire(forge(keys.offer(new), keys, new))
    assert not reply["ok"], reply
    assert reply["error"]["code"] == code, reply
    assert node.programs == {old.name}
    assert node.runs == old.name
    assert sorted(path.name for path in (node.home / "program").iterdir()) in (
        [old.name, "agent-node.pyz"], [old.name, "agent-node.pyz", "lock"],
    )  # fmt: skip


def test_a_statement_that_was_here_cannot_come_back_after_a_later_one(
    node: ProgramNode, keys: Keys, new: Pyz
) -> None:
    """The replay of a well signed program that may be older: fails without the rule on made_at."""
    first = keys.offer(a_program("0.1.1"), made_at="2026-01-05T00:00:00.000Z", allow_older=True)
    later = keys.offer(new, made_at="2026-01-06T00:00:00.000Z")
    assert node.upgrade(first)["outcome"] == "upgraded"
    assert node.upgrade(later)["outcome"] == "upgraded"
    (_, reply) = node.wire(first)
    assert reply["error"]["code"] == "upgrade_older"
    assert "2026-01-06" in reply["error"]["message"]


OPERATORS: dict[str, Callable[[Path], object]] = {  # what is put in the place of the list
    "none": Path.unlink,
    "an empty one": lambda path: path.write_text(""),
    "one that others may write": lambda path: path.chmod(0o622),
    "a link": lambda path: path.rename(path.with_name("o")).with_name("operators").symlink_to("o"),
    "a hard link": lambda path: path.with_name("o").hardlink_to(path),
    "a folder": lambda path: path.rename(path.with_name("o")).with_name("operators").mkdir(),
    "an endless one": lambda path: path.write_text("#\n" * 100_000),
}


@pytest.mark.parametrize("spoil", OPERATORS.values(), ids=OPERATORS)
def test_a_list_of_operators_that_is_not_to_be_trusted_names_nobody(
    node: ProgramNode, keys: Keys, new: Pyz, spoil: Callable[[Path], object]
) -> None:
    spoil(node.home / "operators")
    (_, reply) = node.wire(keys.offer(new))
    assert reply["error"]["code"] == "no_operators", reply


def test_a_hub_that_was_replaced_brings_no_code(
    node: ProgramNode, keys: Keys, new: Pyz
) -> None:
    hello = {"do": "hello", "fleet": "arc0", "hub": "arc", "wire": [1, 1]}
    node.wire({**hello, "term": 5})
    reply = node.wire({**hello, "term": 4}, keys.offer(new))[-1]
    assert reply["error"]["code"] == "old_term"


def test_a_request_without_end_is_cut_where_a_line_ends(node: ProgramNode) -> None:
    """Standing for a gigabyte: nothing beyond one line is kept, whatever follows."""
    serve = Program("-I", "-S", node.command[-1], "serve", "--stdio", env=node.env)
    try:
        serve.line()
        serve.write(b'{"do":"upgrade","id":1,"file":"')
        with pytest.raises(BrokenPipeError):
            write_for_ever(serve)
        assert serve.hear()["error"]["code"] == "bad_input"
        assert serve.ended() == 1
    finally:
        serve.process.kill()
        serve.process.communicate()


def write_for_ever(serve: Program) -> None:
    for _ in range(4 * LINE_MAX // 65536):
        serve.write(b"A" * 65536)


def test_where_nothing_can_verify_nothing_is_taken(
    keys: Keys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signing, "_PLACES", (str(tmp_path),))
    with pytest.raises(signing.CannotVerify, match="no ssh-keygen"):
        verify(b"x", b"y", tmp_path / "operators")


def test_a_verifier_that_hangs_is_not_waited_for(
    keys: Keys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = tmp_path / "ssh-keygen"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o700)
    monkeypatch.setattr(signing, "_PLACES", (str(tmp_path), "/bin", "/usr/bin"))
    operators = tmp_path / "operators"
    operators.write_text(operators_line(keys.operator.with_suffix(".pub").read_text()))
    operators.chmod(0o600)
    with pytest.raises(signing.CannotVerify, match="no answer within"):
        verify(b"x", keys.sign(b"x").encode(), operators, timeout_s=0.2)


def test_the_line_of_an_operator_is_for_upgrades_alone(keys: Keys) -> None:
    public = keys.operator.with_suffix(".pub").read_text()
    line = operators_line(public)
    assert line.startswith(f'operator namespaces="{NAMESPACE}" ssh-ed25519 AAAA')
    assert (line.count("\n"), line[-1]) == (1, "\n")
    assert operators_line(line.split(" ", 2)[2]) == line, "comments and spaces are dropped"


@pytest.mark.parametrize("key", [
    "", "ssh-ed25519", "ssh-dss AAAAB3NzaC1kc3M=", "ssh-ed25519 AAAA", "ssh-ed25519 ????",
    'operator namespaces="*" ssh-ed25519 AAAA', "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAAQE=",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA==\nssh-ed25519 AAAA", "cert-authority ssh-rsa AAAA",
])  # fmt: skip
def test_what_is_no_good_public_key_makes_no_line(key: str) -> None:
    with pytest.raises(BadInput):
        operators_line(key)
