"use strict";
// The program in the Node process of a Bench Pack, and its lines to the host: never on stdout, which belongs to the pack
// and its children. Argument: `IN,OUT,LIFELINE`, three descriptors. Each line of ours begins with a secret that came in
// before the pack was loaded and is known to this module alone.

const { register } = require("node:module");
const net = require("node:net");
const path = require("node:path");
const { pathToFileURL } = require("node:url");
const { Worker } = require("node:worker_threads");
const { brief, captured, stackOf } = require("./encode.cjs");
const { hostPack, packOf } = require("./hosting.cjs");
const { noteOutput, openWork } = require("./work.cjs");

const { byteLengthOf, defineProperty, encodeUtf8, indexOf, parse, quote, slice, writeSync } = captured;
const endProcess = process.exit.bind(process);
const [input, output, lifeline] = process.argv[2].split(",").map(Number);

let secret = "";
let rest = "";
let hosted;
const work = openWork(send);

const socket = new net.Socket({ fd: input, readable: true, writable: false });
socket.setEncoding("utf8");
socket.on("data", (chunk) => {
  let start = 0;
  rest += chunk;
  for (let end = indexOf(rest, "\n"); end >= 0; end = indexOf(rest, "\n", start)) {
    const message = parse(slice(rest, start, end));
    start = end + 1;
    received(message);
  }
  if (start) rest = slice(rest, start);
});
for (const event of ["error", "end", "close"]) socket.on(event, () => endProcess(1));

/** Send the text of a JSON object. The line before ours may be a pack's that has no end: begin a new one.
 *
 * It is written at once and completely, so that nothing is lost when the process dies right after.
 */
function send(json) {
  const bytes = encodeUtf8(`\n${secret}${json}\n`);
  const length = byteLengthOf(bytes);
  // Node asks the bytes for it, and would hand them to a getter that a pack has put into their prototype.
  defineProperty(bytes, "byteLength", { __proto__: null, value: length });
  for (let done = 0; done < length; ) done += writeSync(output, bytes, done, length - done);
}

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

async function load(message) {
  secret = message.secret;
  register(pathToFileURL(path.join(__dirname, "resolve_hook.mjs")).href);
  if (message.watch) await watchdog();
  work.watchProcess();
  noteOutput(work.current);
  setInterval(() => { if (work.busy()) send('{"beat":1}'); }, message.heartbeatMs).unref();
  try {
    const { pack, missing } = packOf(await import(pathToFileURL(message.entry).href));
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
  const thread = new Worker(path.join(__dirname, "watchdog.cjs"), { workerData: lifeline });
  thread.unref();
  return new Promise((resolve) => thread.once("online", resolve));
}
