"use strict";
// What Node's permission model leaves open, closed before a pack is loaded.

const module_ = require("node:module");
const os = require("node:os");
const threads = require("node:worker_threads");
const v8 = require("node:v8");

/** Take from this thread what leads out of the permission model; our own threads have been started. */
function forbid() {
  // The handle of a thread leads to a constructor of threads with options, and so permissions, of their own.
  threads.Worker = refusing("new worker_threads.Worker");
  module_.register = refusing("module.register"); // module hooks run in such a thread
  forbidSignals();
  forbidFiles();
  forbidPaths();
  module_.syncBuiltinESMExports();
}

/** Signals reach every process of the user, pytest first of all. A pack may end itself. */
function forbidSignals() {
  const { _kill: kill, pid: own } = process;
  const refuse = refusing("process.kill");
  process._kill = (pid, signal) => (pid === own ? kill(own, signal) : refuse()); // what process.kill calls
  process._debugProcess = refusing("process._debugProcess");
  process._debugEnd = refusing("process._debugEnd");
  os.setPriority = refusing("os.setPriority");
}

/** Some reports are written wherever the pack says. */
function forbidFiles() {
  Object.defineProperty(process, "report", { value: undefined });
  v8.setHeapSnapshotNearHeapLimit = refusing("v8.setHeapSnapshotNearHeapLimit");
}

/** Sockets with a path lead to servers that trust whoever can open it. Our own stdout is a pipe, and of their class. */
function forbidPaths() {
  const { prototype } = process.stdout._handle.constructor;
  for (const name of ["bind", "bind2", "connect", "connect2"]) {
    if (name in prototype) prototype[name] = refusing("a socket with a path", "");
  }
}

function refusing(what, call = "()") {
  return function refused() {
    throw new Error(`${what}${call} is not available to a Bench Pack under the permission model`);
  };
}

module.exports = { forbid };
