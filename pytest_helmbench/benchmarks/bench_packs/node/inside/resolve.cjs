"use strict";
// Lets ES packs find what the host brings and what `helmbench check --install` has installed, where normal resolution
// finds nothing. require() finds both by NODE_PATH.

const module_ = require("node:module");
const path = require("node:path");
const { pathToFileURL } = require("node:url");

const OURS = ["@benchlocal/sdk", "@benchlocal/core"];
const BARE = /^(?!node:)[^./#:][^:]*$/; // no path, no URL, no `#internal`
const place = (name) => pathToFileURL(path.join(__dirname, "modules", name, "index.mjs")).href;

/** Return what the fallback knows: our modules by name, and the module that installed packages are looked up from. */
const fallbacks = (packages) => ({
  ours: Object.fromEntries(OURS.map((name) => [name, place(name)])),
  parent: packages === null ? null : pathToFileURL(path.join(packages, "index.mjs")).href,
});

/** Register the fallback: in this thread where Node can, else in a thread of its own.
 *
 * packages: the folder with the installed packages, null for none.
 */
function registerFallback(packages) {
  const known = fallbacks(packages);
  if (typeof module_.registerHooks !== "function") {
    module_.register(pathToFileURL(path.join(__dirname, "resolve_hook.mjs")).href, { data: { ...known, bare: BARE } });
    return;
  }
  module_.registerHooks({
    resolve(specifier, context, nextResolve) {
      try {
        return nextResolve(specifier, context);
      } catch (error) {
        if (!context.conditions.includes("import")) throw error;
        if (Object.hasOwn(known.ours, specifier)) {
          return { url: known.ours[specifier], format: "module", shortCircuit: true };
        }
        if (known.parent === null || !BARE.test(specifier)) throw error;
        try {
          return nextResolve(specifier, { ...context, parentURL: known.parent });
        } catch {
          throw error; // it names the module of the pack that asked
        }
      }
    },
  });
}

module.exports = { registerFallback };
