"use strict";
// Loaded into every thread before anything else where the permission model is on: Node makes a thread that is given
// arguments or an environment of its own with fresh options, and so without permissions to ask for.

const module_ = require("node:module");
const threads = require("node:worker_threads");

const { construct } = Reflect;
const { Worker, isMainThread } = threads;
const HARMLESS = [
  "argv", "eval", "name", "resourceLimits", "stderr", "stdin", "stdout", "trackUnmanagedFds", "transferList", "workerData",
];

const guarded = new Proxy(Worker, {
  construct(target, given, newTarget) {
    const options = { __proto__: null };
    for (let i = 0; i < HARMLESS.length; i += 1) {
      const value = given[1]?.[HARMLESS[i]];
      if (value !== undefined) options[HARMLESS[i]] = value;
    }
    return construct(target, [given[0], options], newTarget);
  },
});

threads.Worker = guarded;
Object.defineProperty(Worker.prototype, "constructor", { value: guarded });
if (!isMainThread) forbidHooks(); // in the main thread once ours are in place

/** Module hooks run in a thread that has not been through here. */
function forbidHooks() {
  module_.register = () => {
    throw new Error("module.register() is not available to a Bench Pack under the permission model");
  };
  module_.syncBuiltinESMExports();
}

module_.syncBuiltinESMExports();

module.exports = { forbidHooks };
