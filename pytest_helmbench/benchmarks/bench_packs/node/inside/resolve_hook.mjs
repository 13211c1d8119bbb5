// Lets ES packs find the modules that the host brings, where normal resolution finds nothing.
// require() finds them by NODE_PATH.

const OURS = ["@benchlocal/sdk", "@benchlocal/core"];

export async function resolve(specifier, context, nextResolve) {
  try {
    return await nextResolve(specifier, context);
  } catch (error) {
    if (!OURS.includes(specifier)) throw error;
    const url = new URL(`./modules/${specifier}/index.mjs`, import.meta.url).href;
    return { url, format: "module", shortCircuit: true };
  }
}
