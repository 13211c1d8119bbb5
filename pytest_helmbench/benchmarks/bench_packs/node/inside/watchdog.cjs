"use strict";
// A thread that ends the process group when the host is gone, however busy the pack keeps the main thread.

const net = require("node:net");
const { workerData } = require("node:worker_threads");

const { fd, port, token } = workerData;
const lifeline =
  fd === undefined ? net.connect(port, "127.0.0.1") : new net.Socket({ fd, readable: true, writable: false });
if (token) lifeline.write(`${token} lifeline\n`);

function end() {
  process.kill(process.platform === "win32" ? process.pid : 0, "SIGKILL");
}

lifeline.resume();
lifeline.on("end", end);
lifeline.on("close", end);
lifeline.on("error", end);
