"""A Python that is forked by the server instead of started: `client.py SOCKET -u -c PROGRAM`.

It hands over its files, folder, environment and program, and ends when the forked process does. It imports next to
nothing, for that is its point.
"""

import _socket
import array
import marshal
import os
import sys

path, *_options, program = sys.argv[1:]
server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
server.connect(path)
order = marshal.dumps((os.getcwd(), dict(os.environ), program))  # noqa: PTH109
files = array.array("i", (0, 1, 2))
server.sendmsg([b"%16d" % len(order)], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, files)])
while order:
    order = order[server.send(order) :]
for file in files:
    os.close(file)
server.recv(1)
