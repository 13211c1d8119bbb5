"""The filter of system calls in sandboxes, an allow list: as a program for bubblewrap, as a profile for containers."""

from __future__ import annotations

import errno
import platform
import socket
import struct
from collections.abc import Iterator, Sequence

from pytest_helmbench.core.json_types import JsonObject, JsonValue

# Name, number on x86_64, number on aarch64; `-` where it does not exist. The table has the calls that
# programs make to read, write, compute, wait and talk to each other. Everything else is closed, also calls that later
# kernels add.
_TABLE = """
read 0 63; write 1 64; open 2 -; close 3 57; stat 4 -; fstat 5 80; lstat 6 -; newfstatat 262 79; statx 332
291; poll 7 -; ppoll 271 73; lseek 8 62; mmap 9 222; mprotect 10 226; munmap 11 215; brk 12 214; mremap 25
216; msync 26 227; mincore 27 232; madvise 28 233; mlock 149 228; mlock2 325 284; munlock 150 229; mlockall
151 230; munlockall 152 231;
rt_sigaction 13 134; rt_sigprocmask 14 135; rt_sigreturn 15 139; rt_sigpending 127 136; rt_sigtimedwait 128
137; rt_sigqueueinfo 129 138; rt_tgsigqueueinfo 297 240; rt_sigsuspend 130 133; sigaltstack 131 132;
restart_syscall 219 128;
pread64 17 67; pwrite64 18 68; readv 19 65; writev 20 66; preadv 295 69; pwritev 296 70; preadv2 327 286;
pwritev2 328 287; access 21 -; faccessat 269 48; faccessat2 439 439; pipe 22 -; pipe2 293 59; select 23 -;
pselect6 270 72; dup 32 23; dup2 33 -; dup3 292 24; fcntl 72 25; flock 73 32; fsync 74 82; fdatasync 75 83;
sync 162 81; syncfs 306 267; sync_file_range 277 84; truncate 76 45; ftruncate 77 46; fallocate 285 47;
fadvise64 221 223; readahead 187 213;
sched_yield 24 124; sched_getaffinity 204 123; sched_setaffinity 203 122; sched_getparam 143 121;
sched_setparam 142 118; sched_getscheduler 145 120; sched_setscheduler 144 119; sched_getattr 315 275;
sched_setattr 314 274; sched_get_priority_max 146 125; sched_get_priority_min 147 126; sched_rr_get_interval
148 127; getpriority 140 141; setpriority 141 140; ioprio_get 252 31; ioprio_set 251 30; getcpu 309 168;
get_mempolicy 239 236;
pause 34 -; alarm 37 -; nanosleep 35 101; clock_nanosleep 230 115; getitimer 36 102; setitimer 38 103; time
201 -; gettimeofday 96 169; clock_gettime 228 113; clock_getres 229 114; times 100 153; timer_create 222
107; timer_settime 223 110; timer_gettime 224 108; timer_getoverrun 225 109; timer_delete 226 111;
timerfd_create 283 85; timerfd_settime 286 86; timerfd_gettime 287 87;
sendfile 40 71; splice 275 76; tee 276 77; vmsplice 278 75; copy_file_range 326 285;
connect 42 203; accept 43 202; accept4 288 242; sendto 44 206; recvfrom 45 207; sendmsg 46 211; recvmsg 47
212; sendmmsg 307 269; recvmmsg 299 243; shutdown 48 210; bind 49 200; listen 50 201; getsockname 51 204;
getpeername 52 205; socketpair 53 199; setsockopt 54 208; getsockopt 55 209;
fork 57 -; vfork 58 -; execve 59 221; execveat 322 281; exit 60 93; exit_group 231 94; wait4 61 260; waitid
247 95; kill 62 129; tkill 200 130; tgkill 234 131; pidfd_open 434 434; pidfd_send_signal 424 424;
uname 63 160; getcwd 79 17; chdir 80 49; fchdir 81 50; rename 82 -; renameat 264 38; renameat2 316 276;
mkdir 83 -; mkdirat 258 34; rmdir 84 -; creat 85 -; link 86 -; linkat 265 37; unlink 87 -; unlinkat 263 35;
symlink 88 -; symlinkat 266 36; readlink 89 -; readlinkat 267 78; chmod 90 -; fchmod 91 52; fchmodat 268 53;
fchmodat2 452 452; chown 92 -; fchown 93 55; lchown 94 -; fchownat 260 54; umask 95 166; mknod 133 -;
mknodat 259 33; openat 257 56; openat2 437 437; close_range 436 436; getdents 78 -; getdents64 217 61; utime
132 -; utimes 235 -; utimensat 280 88; futimesat 261 -; statfs 137 43; fstatfs 138 44; chroot 161 51;
getpid 39 172; getppid 110 173; gettid 186 178; getuid 102 174; getgid 104 176; geteuid 107 175; getegid 108
177; setuid 105 146; setgid 106 144; getpgid 121 155; setpgid 109 154; getpgrp 111 -; setsid 112 157; getsid
124 156; setreuid 113 145; setregid 114 143; getgroups 115 158; setgroups 116 159; setresuid 117 147;
getresuid 118 148; setresgid 119 149; getresgid 120 150; setfsuid 122 151; setfsgid 123 152; capget 125 90;
capset 126 91;
getrlimit 97 163; setrlimit 160 164; prlimit64 302 261; getrusage 98 165; sysinfo 99 179; prctl 157 167;
arch_prctl 158 -; seccomp 317 277; landlock_create_ruleset 444 444; landlock_add_rule 445 445;
landlock_restrict_self 446 446;
setxattr 188 5; lsetxattr 189 6; fsetxattr 190 7; getxattr 191 8; lgetxattr 192 9; fgetxattr 193 10;
listxattr 194 11; llistxattr 195 12; flistxattr 196 13; removexattr 197 14; lremovexattr 198 15;
fremovexattr 199 16;
futex 202 98; futex_waitv 449 449; futex_wake 454 454; futex_wait 455 455; futex_requeue 456 456;
set_robust_list 273 99; get_robust_list 274 100; set_tid_address 218 96; set_thread_area 205 -;
get_thread_area 211 -; rseq 334 293; membarrier 324 283; pkey_alloc 330 289; pkey_free 331 290;
pkey_mprotect 329 288; map_shadow_stack 453 453; mseal 462 462; cachestat 451 451;
epoll_create 213 -; epoll_create1 291 20; epoll_ctl 233 21; epoll_ctl_old 214 -; epoll_wait 232 -;
epoll_wait_old 215 -; epoll_pwait 281 22; epoll_pwait2 441 441; eventfd 284 -; eventfd2 290 19; signalfd 282
-; signalfd4 289 74; inotify_init 253 -; inotify_init1 294 26; inotify_add_watch 254 27; inotify_rm_watch
255 28;
getrandom 318 278;
clone 56 220; ioctl 16 29; personality 135 92; socket 41 198;
"""

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
    rows = [row.split() for row in _TABLE.replace("\n", " ").split(";") if row.strip()]
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
