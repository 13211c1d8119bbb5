"""A Python that is forked by the server instead of started: `client.py SOCKET [-u] -c PROGRAM | -m MODULE …`.

It hands over its files, folder, environment, process group and words, and ends as the forked process does, which
gets its signals and is killed with it. It imports next to nothing, for that is its point.
"""

import _signal  # type: ignore[import-not-found]  # `signal` brings enum
import _socket
import array
import marshal
import os
import sys

path, *words = sys.argv[1:]
server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
server.connect(path)
ended_by = (_signal.SIGTERM, _signal.SIGHUP)
ignored = [int(number) for number in ended_by if _signal.getsignal(number) == _signal.SIG_IGN]
order = marshal.dumps((os.getcwd(), dict(os.environ), os.getpgrp(), ignored, words))  # noqa: PTH109
files = array.array("i", (0, 1, 2))
server.sendmsg([b"%16d" % len(order)], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, files)])
while order:
    order = order[server.send(order) :]
for file in files:
    os.close(file)
pid = int(server.recv(16, _socket.MSG_WAITALL))
for number in ended_by:
    _signal.signal(number, lambda number, _frame: os.kill(pid, number))
_signal.signal(_signal.SIGINT, _signal.SIG_IGN)  # who is in its group is told as well
code = int(server.recv(16, _socket.MSG_WAITALL) or b"1")
if code < 0:
    _signal.signal(-code, _signal.SIG_DFL) if -code != _signal.SIGKILL else None
    os.kill(os.getpid(), -code)
os._exit(code)
