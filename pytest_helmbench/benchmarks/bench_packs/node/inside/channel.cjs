"use strict";
// The lines between us and the host: never stdout, which belongs to the pack and its children.
// Each line of ours begins with a secret that came in before the pack was loaded and is known to this closure alone.

const net = require("node:net");
const { byteLengthOf, defineProperty, encodeUtf8, indexOf, parse, slice, uncurried, writeSync } = require("./captured.cjs");

const write = uncurried(net.Socket.prototype.write);

/** Open the channel.
 *
 * wire: `{ fds: [in, out] }` as inherited, or `{ port, token }` of a loopback server where nothing can be inherited.
 * received: called with each message of the host. The first one holds the secret.
 * lost: called when the host is gone.
 */
function openChannel(wire, received, lost) {
  let secret = "";
  const socket = wire.fds
    ? new net.Socket({ fd: wire.fds[0], readable: true, writable: false })
    : net.connect(wire.port, "127.0.0.1");
  if (wire.token) write(socket, `${wire.token} wire\n`);

  let rest = "";
  socket.setEncoding("utf8");
  socket.on("data", (chunk) => {
    let start = 0;
    rest += chunk;
    for (let end = indexOf(rest, "\n"); end >= 0; end = indexOf(rest, "\n", start)) {
      const message = parse(slice(rest, start, end));
      start = end + 1;
      secret = secret || message.secret;
      received(message);
    }
    if (start) rest = slice(rest, start);
  });
  socket.on("error", lost);
  socket.on("end", lost);
  socket.on("close", lost);

  /** Send the text of a JSON object. The line before ours may be a pack's that has no end: begin a new one. */
  return function send(json) {
    const line = `\n${secret}${json}\n`;
    if (wire.fds) writeAll(wire.fds[1], encodeUtf8(line));
    else write(socket, line);
  };
}

/** Write at once and completely, so that nothing is lost when the process dies right after. */
function writeAll(fd, bytes) {
  const length = byteLengthOf(bytes);
  // Node asks the bytes for it, and would hand them to a getter that a pack has put into their prototype.
  defineProperty(bytes, "byteLength", { __proto__: null, value: length });
  for (let done = 0; done < length; ) done += writeSync(fd, bytes, done, length - done);
}

module.exports = { openChannel };
