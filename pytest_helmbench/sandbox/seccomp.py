"""The filter of system calls in sandboxes, an allow list: as a program for bubblewrap, as a profile for containers."""

from __future__ import annotations

import errno
import platform
import socket
import struct
from collections.abc import Iterator, Sequence
from importlib.resources import files

from pytest_helmbench.core.json_types import JsonObject, JsonValue

_PROCESSORS = ("x86_64", "aarch64")
# Which arguments some of them may have. A namespace of one's own opens much of the kernel to people without rights;
# other families of sockets lead to other machines and to drivers (vsock, alg, netlink, packet, can, …).
_NEW_NAMESPACES = 0x7E020000  # every CLONE_NEW* that `clone` knows
_FAMILIES = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6)
_TYPES = (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET)
_TYPE_BITS = 0xF
_PROTOCOLS = (0, 1, 6, 17)  # any, ICMP (and AF_UNIX by its own number), TCP, UDP
_TERMINAL_INPUT = (0x5412, 0x541C)  # TIOCSTI and TIOCLINUX type into a terminal
_PERSONALITIES = (0, 0xFFFFFFFF)  # the ordinary one, and the question which it is
_WITH_CONDITIONS = ("clone", "ioctl", "personality", "socket")
_LOAD = 0x20  # BPF_LD | BPF_W | BPF_ABS
_AND = 0x54  # BPF_ALU | BPF_AND | BPF_K
_IF_EQUAL = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_IF_BITS = 0x45  # BPF_JMP | BPF_JSET | BPF_K
_RETURN = 0x06
_ALLOW = 0x7FFF0000
_REFUSE = 0x00050000
_KILL = 0x80000000
_X32_BIT = 0x40000000
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}


def _numbers() -> dict[str, dict[str, int]]:
    lines = files(__package__).joinpath("system_calls.txt").read_text("ascii").splitlines()
    rows = [line.split() for line in lines if line and not line.startswith("#")]
    return {
        processor: {name: int(numbers[place]) for name, *numbers in rows if numbers[place] != "-"}
        for place, processor in enumerate(_PROCESSORS)
    }


NUMBERS = _numbers()
"""By processor, as `platform.machine()` calls it, then by name."""


_NUMBER, _ARCH = 0, 4  # offsets in seccomp_data

_Step = tuple[int, int, int, int]


def filter_program(machine: str = platform.machine()) -> bytes | None:
    """Return the filter as bubblewrap's `--seccomp` reads it; None for a processor that is not known.

    A call that is not allowed fails as on a kernel that does not know it, so that programs take another way.
    """
    numbers = NUMBERS.get(machine)
    if numbers is None:
        return None
    code: list[_Step] = [
        (_LOAD, 0, 0, _ARCH),
        (_IF_EQUAL, 1, 0, _ARCHITECTURES[machine]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
    ]
    if machine == "x86_64":
        code += [(_IF_BITS, 0, 1, _X32_BIT), (_RETURN, 0, 0, _KILL)]
    for name, number in numbers.items():
        rule = list(_conditions(name)) if name in _WITH_CONDITIONS else [(_RETURN, 0, 0, _ALLOW)]
        code += [(_IF_EQUAL, 0, len(rule), number), *rule]
    code.append((_RETURN, 0, 0, _REFUSE | errno.ENOSYS))
    return b"".join(struct.pack("=HBBI", *step) for step in code)


def _conditions(name: str) -> Iterator[_Step]:
    """Yield the steps that end with leave or a refusal, by the arguments of a call."""
    match name:
        case "clone":
            yield _argument(0)
            yield from ((_IF_BITS, 0, 1, _NEW_NAMESPACES), _refusal(errno.EPERM))
        case "ioctl":
            yield _argument(1)
            for number in _TERMINAL_INPUT:
                yield from ((_IF_EQUAL, 0, 1, number), _refusal(errno.EPERM))
        case "personality":
            yield from _one_of(0, _PERSONALITIES, errno.EPERM)
        case "socket":
            yield from _one_of(0, _FAMILIES, errno.EAFNOSUPPORT)
            yield from _one_of(1, _TYPES, errno.ESOCKTNOSUPPORT, bits=_TYPE_BITS)
            yield from _one_of(2, _PROTOCOLS, errno.EPROTONOSUPPORT)
    yield (_RETURN, 0, 0, _ALLOW)


def _one_of(argument: int, known: Sequence[int], otherwise: int, bits: int = 0) -> Iterator[_Step]:
    yield _argument(argument)
    if bits:
        yield (_AND, 0, 0, bits)
    for place, value in enumerate(known):
        yield (_IF_EQUAL, len(known) - place, 0, value)
    yield _refusal(otherwise)


def _argument(number: int) -> _Step:
    return (_LOAD, 0, 0, 16 + 8 * number)  # its low half: the kernel looks at no more of these


def _refusal(error: int) -> _Step:
    return (_RETURN, 0, 0, _REFUSE | error)


def container_profile() -> JsonObject:
    """Return the same list as docker and podman read it."""
    plain = [name for name in {**NUMBERS["x86_64"], **NUMBERS["aarch64"]} if name not in _WITH_CONDITIONS]
    rules: list[JsonValue] = [_rule(plain), _rule(["clone"], (0, _NEW_NAMESPACES, "SCMP_CMP_MASKED_EQ", 0))]
    rules += [_rule(["personality"], (0, value, "SCMP_CMP_EQ", 0)) for value in _PERSONALITIES]
    # A rule can look at an argument once only; the other number is a console's, which no container has.
    rules.append(_rule(["ioctl"], (1, _TERMINAL_INPUT[0], "SCMP_CMP_NE", 0)))
    for family in _FAMILIES:
        for kind in _TYPES:
            for protocol in _PROTOCOLS:
                conditions = (
                    (0, int(family), "SCMP_CMP_EQ", 0),
                    (1, _TYPE_BITS, "SCMP_CMP_MASKED_EQ", int(kind)),
                    (2, protocol, "SCMP_CMP_EQ", 0),
                )
                rules.append(_rule(["socket"], *conditions))
    return {
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": errno.ENOSYS,
        "architectures": ["SCMP_ARCH_X86_64", "SCMP_ARCH_AARCH64"],
        "syscalls": rules,
    }


def _rule(names: Sequence[str], *conditions: tuple[int, int, str, int]) -> dict[str, JsonValue]:
    args: list[JsonValue] = [
        {"index": index, "value": value, "valueTwo": second, "op": operator}
        for index, value, operator, second in conditions
    ]
    return {"names": list(names), "action": "SCMP_ACT_ALLOW", "args": args}
