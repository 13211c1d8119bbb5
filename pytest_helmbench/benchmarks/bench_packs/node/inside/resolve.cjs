"use strict";
// Lets ES packs find the modules that we bring along, where normal resolution finds nothing.

const module_ = require("node:module");
const path = require("node:path");
const { pathToFileURL } = require("node:url");

const OURS = ["@benchlocal/sdk", "@benchlocal/core", "zod", "smol-toml"];
const place = (name) => pathToFileURL(path.join(__dirname, "modules", name, "index.mjs")).href;
const ourModules = Object.fromEntries(OURS.map((name) => [name, place(name)]));

/** Register the fallback: in this thread where Node can, else in a thread of its own. */
function registerFallback() {
  if (typeof module_.registerHooks !== "function") {
    module_.register(pathToFileURL(path.join(__dirname, "resolve_hook.mjs")).href, { data: ourModules });
    return;
  }
  module_.registerHooks({
    resolve(specifier, context, nextResolve) {
      try {
        return nextResolve(specifier, context);
      } catch (error) {
        // require() finds ours by NODE_PATH
        if (!Object.hasOwn(ourModules, specifier) || !context.conditions.includes("import")) throw error;
        return { url: ourModules[specifier], format: "module", shortCircuit: true };
      }
    },
  });
}

module.exports = { registerFallback };
