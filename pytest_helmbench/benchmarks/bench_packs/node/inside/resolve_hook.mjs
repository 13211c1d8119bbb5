// Lets ES packs find what the host brings and what the user has installed, where normal resolution finds nothing.
// require() finds both by NODE_PATH.

const OURS = ["@benchlocal/sdk", "@benchlocal/core"];
const BARE = /^(?!node:)[^./#:][^:]*$/; // no path, no URL, no `#internal`

let parent = null;

/** parent: URL of a module that installed packages are looked up from; null for none. */
export function initialize(data) {
  parent = data.parent;
}

export async function resolve(specifier, context, nextResolve) {
  try {
    return await nextResolve(specifier, context);
  } catch (error) {
    if (OURS.includes(specifier)) {
      const url = new URL(`./modules/${specifier}/index.mjs`, import.meta.url).href;
      return { url, format: "module", shortCircuit: true };
    }
    if (parent === null || !BARE.test(specifier)) throw error;
    try {
      return await nextResolve(specifier, { ...context, parentURL: parent });
    } catch {
      throw error; // it names the module of the pack that asked
    }
  }
}
