"use strict";
// The program in the Node process of a Bench Pack. Argument: `fds:IN,OUT,LIFELINE`, or `port:N` of a loopback server.

const path = require("node:path");
const { pathToFileURL } = require("node:url");
const { Worker } = require("node:worker_threads");
const { quote } = require("./captured.cjs");
const { openChannel } = require("./channel.cjs");
const { brief, stackOf } = require("./encode.cjs");
const { hostPack, packOf } = require("./hosting.cjs");
const { noteOutput } = require("./output.cjs");
const { registerFallback } = require("./resolve.cjs");
const { openWork } = require("./work.cjs");

const TOKEN = "HELMBENCH_BRIDGE_TOKEN";

const endProcess = process.exit.bind(process);
const [kind, value] = process.argv[2].split(":");
const [input, output, lifeline] = kind === "fds" ? value.split(",").map(Number) : [];
const token = process.env[TOKEN];
delete process.env[TOKEN];
const wire = kind === "fds" ? { fds: [input, output] } : { port: Number(value), token };

let hosted;
const send = openChannel(wire, received, () => endProcess(1));
const work = openWork(send);

function received(message) {
  switch (message.op) {
    case "load":
      load(message);
      break;
    case "list":
      hosted.list(message.id);
      break;
    case "run":
      hosted.run(message);
      break;
    case "abort":
      work.stop(message.id);
      break;
    case "score":
      hosted.score(message.id, message.results);
      break;
    case "dispose":
      hosted.disposeAll(message.id);
      break;
  }
}

async function load({ entry, heartbeatMs, packages, watch }) {
  registerFallback(packages);
  if (watch) await watchdog();
  work.watchProcess();
  noteOutput(work.current);
  setInterval(() => { if (work.busy()) send('{"beat":1}'); }, heartbeatMs).unref();
  try {
    const { pack, missing } = packOf(await import(pathToFileURL(entry).href));
    if (missing) {
      send(`{"unloadable":{"reason":"not_loadable","said":${quote(missing)},"stack":""}}`);
      return;
    }
    hosted = hostPack(pack, send, work);
    work.wasLoaded();
    send('{"loaded":1}');
  } catch (thrown) {
    send(`{"unloadable":{"reason":"not_loadable","said":${quote(brief(thrown))},"stack":${quote(stackOf(thrown))}}}`);
  }
}

/** Start the thread that outlives a busy pack, and wait until it watches. */
function watchdog() {
  const workerData = kind === "fds" ? { fd: lifeline } : { port: Number(value), token };
  const thread = new Worker(path.join(__dirname, "watchdog.cjs"), { workerData });
  thread.unref();
  return new Promise((resolve) => thread.once("online", resolve));
}
