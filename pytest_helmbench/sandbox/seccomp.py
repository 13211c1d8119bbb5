"""The system calls that no benchmark needs and that lead around the bounds of a sandbox, as a filter program."""

from __future__ import annotations

import errno
import platform
import struct
from dataclasses import dataclass

__all__ = ["filter_program"]

_LOAD = 0x20  # BPF_LD | BPF_W | BPF_ABS
_IF_EQUAL = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_IF_BITS = 0x45  # BPF_JMP | BPF_JSET | BPF_K
_RETURN = 0x06
_ALLOW = 0x7FFF0000
_REFUSE = 0x00050000
_KILL = 0x80000000
_NUMBER, _ARCH, _FIRST_ARGUMENT = 0, 4, 16  # offsets in seccomp_data
_NEW_USER = 0x10000000  # CLONE_NEWUSER
_X32_BIT = 0x40000000


@dataclass(frozen=True, slots=True)
class _Machine:
    """Numbers of one processor family.

    Args:
        arch: AUDIT_ARCH constant.
        clone: Refused with CLONE_NEWUSER.
        missing: Answered with ENOSYS, so that programs take another way: clone3, memfd_create, memfd_secret.
        refused: Answered with EPERM: unshare, setns, ptrace, process_vm_readv, process_vm_writev, shmget,
            msgget, bpf, perf_event_open, userfaultfd, keyctl, add_key, request_key, io_uring_setup, mount,
            pivot_root, kexec_load, init_module, finit_module.
    """

    arch: int
    clone: int
    missing: tuple[int, ...]
    refused: tuple[int, ...]


_MACHINES = {
    "x86_64": _Machine(
        0xC000003E,
        56,
        (435, 319, 447),
        (272, 308, 101, 310, 311, 29, 68, 321, 298, 323, 250, 248, 249, 425, 165, 155, 246, 175, 313),
    ),
    "aarch64": _Machine(
        0xC00000B7,
        220,
        (435, 279, 447),
        (97, 268, 117, 270, 271, 194, 186, 280, 241, 282, 219, 217, 218, 425, 40, 41, 104, 105, 273),
    ),
}


def filter_program(machine: str = platform.machine()) -> bytes | None:
    """Return the filter as bubblewrap's `--seccomp` reads it; None for a processor that is not known.

    It closes what limits cannot reach: memory that belongs to no process (memfd, System V), new user namespaces,
    looking into other processes, and rarely used doors of the kernel. Nothing in it is needed for safety against
    an honest kernel.
    """
    numbers = _MACHINES.get(machine)
    if numbers is None:
        return None
    code = [
        (_LOAD, 0, 0, _ARCH),
        (_IF_EQUAL, 1, 0, numbers.arch),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
    ]
    if machine == "x86_64":
        code += [(_IF_BITS, 0, 1, _X32_BIT), (_RETURN, 0, 0, _KILL)]
    for number in numbers.missing:
        code += [(_IF_EQUAL, 0, 1, number), (_RETURN, 0, 0, _REFUSE | errno.ENOSYS)]
    for number in numbers.refused:
        code += [(_IF_EQUAL, 0, 1, number), (_RETURN, 0, 0, _REFUSE | errno.EPERM)]
    code += [
        (_IF_EQUAL, 0, 3, numbers.clone),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_IF_BITS, 0, 1, _NEW_USER),
        (_RETURN, 0, 0, _REFUSE | errno.EPERM),
        (_RETURN, 0, 0, _ALLOW),
    ]
    return b"".join(struct.pack("=HBBI", *step) for step in code)
