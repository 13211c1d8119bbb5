"use strict";
// What a pack prints goes where it always went, and its end is kept with the item that printed it.

const { decode, slice, types } = require("./captured.cjs");

const KEPT = 16 * 1024 + 64; // as in work.cjs

/** Note what is written to stdout and stderr; `current` returns the item that runs, if it is known. */
function noteOutput(current) {
  const { stdout, stderr } = process;
  stdout.write = noting(stdout, stdout.write, current);
  stderr.write = noting(stderr, stderr.write, current);
}

const noting = (stream, write, current) =>
  function noted(chunk, ...rest) {
    const item = current();
    if (item !== undefined) {
      if (typeof chunk === "string") keep(item, chunk);
      else if (types.isUint8Array(chunk)) keep(item, decode(chunk));
    }
    return write.call(stream, chunk, ...rest);
  };

function keep(item, chunk) {
  item.output += chunk.length > KEPT ? slice(chunk, -KEPT) : chunk;
  if (item.output.length > 2 * KEPT) item.output = slice(item.output, -KEPT); // rarely, since it copies
}

module.exports = { noteOutput };
