"use strict";
// The work under way in this process: each piece of work has one answer, and later answers are discarded.
// Uncaught errors and calls of process.exit are those of the work in whose context they happen. The output of a pack
// goes where it always went, and its end is kept with the work that printed it.

const { AsyncLocalStorage } = require("node:async_hooks");
const { syncBuiltinESMExports } = require("node:module");
const { BOUNDS, brief, captured, encode, stackOf } = require("./encode.cjs");

const { abort, decode, quote, runWithin, slice, storeOf, text, types } = captured;

const KEPT = 16 * 1024 + 64; // the host cuts the rest off, once it has looked for tokens

/** Keep account of the work. `send` takes the text of a JSON object. */
function openWork(send) {
  const storage = new AsyncLocalStorage();
  const works = { __proto__: null };
  const ended = new Error("process.exit() ends this scenario"); // thrown, so that the code behind it does not run
  let active = 0;
  let loaded = false;

  function answer(work, json) {
    if (work.settled) return;
    work.settled = true;
    send(`{"id":${work.id},${json}}`);
  }

  function fail(work, reason, said, thrown) {
    const output = quote(slice(work.output, -KEPT));
    answer(work, `"failed":{${fault(reason, said, thrown)},"output":${output}}`);
  }

  const fault = (reason, said, thrown) => `"reason":"${reason}","said":${quote(said)},"stack":${quote(stackOf(thrown))}`;

  /** Something happened outside of any call of ours. */
  function blame(reason, said, thrown) {
    const work = storeOf(storage);
    if (work !== undefined) fail(work, reason, said, thrown);
    else if (!loaded) send(`{"unloadable":{${fault(reason, said, thrown)}}}`);
    else if (active > 0) send(`{"lost":{${fault(reason, said, thrown)}}}`); // it cannot be said whose it is
  }

  function watchProcess() {
    process.on("uncaughtException", (thrown) => {
      if (thrown !== ended) blame("unhandled", `an error was never caught: ${brief(thrown)}`, thrown);
    });
    process.on("unhandledRejection", (thrown) => {
      if (thrown !== ended) blame("unhandled", `a rejected promise was never handled: ${brief(thrown)}`, thrown);
    });
    process.exit = process.reallyExit = function exit(code = process.exitCode) {
      const given = typeof code === "number" ? text(code) : "";
      blame("exited", `it called process.exit(${given})`, new Error("process.exit"));
      throw ended;
    };
    syncBuiltinESMExports();
  }

  /** Do a piece of work and send its one answer: the value that `act` promises, or why there is none. */
  function begin(id, act) {
    const work = { id, settled: false, output: "", controller: new AbortController(), where: "", malformed: "" };
    work.bound = BOUNDS.answer;
    works[id] = work;
    active += 1;
    runWithin(storage, work, async () => {
      try {
        const value = await act(work);
        if (work.malformed) fail(work, "malformed", work.malformed);
        else answer(work, `"value":${encode(value, work.bound)}`);
      } catch (thrown) {
        if (thrown !== ended) fail(work, "threw", `${work.where} threw ${brief(thrown)}`, thrown);
      }
      delete works[id];
      active -= 1;
    });
  }

  /** Ask a piece of work to stop, with the default reason. */
  function stop(id) {
    const work = works[id];
    if (work !== undefined) runWithin(storage, work, () => abort(work.controller));
  }

  return {
    begin,
    busy: () => active > 0,
    current: () => storeOf(storage),
    stop,
    unattributed: (act) => runWithin(storage, undefined, act),
    wasLoaded: () => { loaded = true; },
    watchProcess,
  };
}

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

module.exports = { noteOutput, openWork };
