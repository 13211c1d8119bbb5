"use strict";
// The pack as the protocol has it: found in its module, asked for scenarios, prepared, run, scored, disposed of.

const { BOUNDS, brief, captured, encode } = require("./encode.cjs");

const { text } = captured;

const DEEPEST_DEFAULT = 4;
const MOST_EVENTS = 10_000; // of an item
const MOST_EVENT_TEXT = 8 * 1024 * 1024;
const LEAST_EVENT_TEXT = 64 * 1024; // with less room left, events are no longer worth their while
const CUT = '{"type":"log","level":"warn","message":"[cut: this item emits too much]"}';
const LEVELS = ["debug", "info", "warn", "error"];

/** Return the pack of an imported module, however its default export is wrapped; or say what is missing. */
function packOf(imported) {
  let found = imported;
  for (let depth = 0; depth <= DEEPEST_DEFAULT; depth += 1) {
    if (missingFrom(found) === undefined) return { pack: found };
    const next = found.default;
    if ((typeof next !== "object" && typeof next !== "function") || next === null) break;
    found = next;
  }
  if (found === imported) return { missing: "it has no default export" };
  return { missing: `its default export has no function ${missingFrom(found)}()` };
}

function missingFrom(candidate) {
  for (const name of ["listScenarios", "prepare", "scoreModelResults"]) if (!is(candidate, name)) return name;
  return undefined;
}

const is = (value, name) => typeof value?.[name] === "function";

/** Answer what the host asks of a pack. */
function hostPack(pack, send, { begin, current, unattributed }) {
  const shared = { __proto__: null };
  const disposals = new Set();
  let patient;

  function list(id) {
    begin(id, (work) => {
      work.where = "listScenarios()";
      return pack.listScenarios();
    });
  }

  function score(id, results) {
    begin(id, (work) => {
      work.where = "scoreModelResults()";
      return pack.scoreModelResults(results);
    });
  }

  function run({ id, key, context, input }) {
    begin(id, async (work) => {
      work.bound = BOUNDS.result;
      await (patient ??= letFetchWait());
      work.where = "prepare()";
      const emit = emitter(work);
      work.emit = emit;
      const prepared = key === null ? await prepare(context, emit) : await prepareOnce(key, context);
      if (!is(prepared, "runScenario")) {
        work.malformed = "prepare() gave nothing with a function runScenario()";
        return undefined;
      }
      work.where = "runScenario()";
      try {
        return await prepared.runScenario({ ...input, abortSignal: work.controller.signal }, async (event) => emit(event));
      } finally {
        if (key === null) dispose(prepared);
      }
    });
  }

  const prepare = (context, log) => pack.prepare({ ...context, logger: loggerOf(log) });

  /** Prepare for several items: none of them is to blame for what happens in the background. */
  function prepareOnce(key, context) {
    const log = (event) => current()?.emit?.(event);
    shared[key] ??= unattributed(async () => prepare(context, log));
    shared[key].catch(() => { delete shared[key]; }); // the next item tries again
    return shared[key];
  }

  /** Dispose of what is prepared, behind the back of everybody: the result is there already. */
  function dispose(prepared) {
    if (!is(prepared, "dispose")) return;
    const disposal = (async () => prepared.dispose())().catch(() => {});
    disposals.add(disposal);
    disposal.then(() => disposals.delete(disposal));
  }

  /** Dispose of everything and answer when that is done. */
  function disposeAll(id) {
    begin(id, async (work) => {
      work.where = "dispose()";
      for (const key of Object.keys(shared)) {
        const prepared = await shared[key].catch(() => undefined);
        dispose(prepared);
      }
      await Promise.allSettled([...disposals]);
    });
  }

  /** Return what hands an item's events on until it has its result, within bounds. */
  function emitter(work) {
    let events = 0;
    let room = MOST_EVENT_TEXT;
    return (event) => {
      if (work.settled || room === 0) return;
      const written = encode(event, room < BOUNDS.event.room ? { ...BOUNDS.event, room } : BOUNDS.event);
      events += 1;
      room -= written.length;
      if (events >= MOST_EVENTS || room < LEAST_EVENT_TEXT) room = 0;
      send(`{"id":${text(work.id)},"event":${written}}`);
      if (room === 0) send(`{"id":${text(work.id)},"event":${CUT}}`);
    };
  }

  return { disposeAll, list, run, score };
}

/** The host's logger: its lines are events of their own. */
function loggerOf(log) {
  const logger = {};
  for (const level of LEVELS) {
    logger[level] = (message, meta) =>
      log({ type: "log", level, message: typeof message === "string" ? message : brief(message), meta });
  }
  return logger;
}

// Node's fetch gives a request up that has no headers after 300 s, and one of ours may wait longer for its turn.
// Time limits are the host's.
const DISPATCHER = Symbol.for("undici.globalDispatcher.1");

/** Let fetch wait without end, unless the pack has already chosen how it is to work. */
async function letFetchWait() {
  if (globalThis[DISPATCHER] !== undefined || typeof fetch !== "function") return;
  await fetch("data:,"); // answered inside of fetch, which makes its dispatcher first
  const Agent = globalThis[DISPATCHER]?.constructor;
  if (Agent !== undefined) globalThis[DISPATCHER] = new Agent({ headersTimeout: 0, bodyTimeout: 0 });
}

module.exports = { hostPack, packOf };
