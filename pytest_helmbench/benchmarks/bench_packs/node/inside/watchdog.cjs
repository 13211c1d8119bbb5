"use strict";
// A thread that ends the process group when the host is gone, however busy the pack keeps the main thread.

const net = require("node:net");
const { workerData } = require("node:worker_threads");

const lifeline = new net.Socket({ fd: workerData, readable: true, writable: false });
const end = () => process.kill(0, "SIGKILL");

lifeline.resume();
lifeline.on("end", end);
lifeline.on("close", end);
lifeline.on("error", end);
