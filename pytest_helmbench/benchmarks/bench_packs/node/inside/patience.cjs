"use strict";
// Node's fetch gives a request up that has no headers after 300 s, and one of ours may wait longer for its turn.
// Time limits are the host's.

const KEY = Symbol.for("undici.globalDispatcher.1");
const DATA = "data:,"; // answered inside of fetch, which makes its dispatcher first

/** Let fetch wait without end, unless the pack has already chosen how it is to work. */
async function letFetchWait() {
  if (globalThis[KEY] !== undefined || typeof fetch !== "function") return;
  await fetch(DATA);
  const Agent = globalThis[KEY]?.constructor;
  if (Agent !== undefined) globalThis[KEY] = new Agent({ headersTimeout: 0, bodyTimeout: 0 });
}

module.exports = { letFetchWait };
