// The same as in resolve.cjs, for a Node that resolves in a thread of its own.

let ourModules = {};

export function initialize(modules) {
  ourModules = modules;
}

export async function resolve(specifier, context, nextResolve) {
  try {
    return await nextResolve(specifier, context);
  } catch (error) {
    if (!Object.hasOwn(ourModules, specifier)) throw error;
    return { url: ourModules[specifier], format: "module", shortCircuit: true };
  }
}
