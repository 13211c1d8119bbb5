// The same as in resolve.cjs, for a Node that resolves in a thread of its own.

let known = { ours: {}, parent: null, bare: /^$/ };

export function initialize(fallbacks) {
  known = fallbacks;
}

export async function resolve(specifier, context, nextResolve) {
  try {
    return await nextResolve(specifier, context);
  } catch (error) {
    if (Object.hasOwn(known.ours, specifier)) {
      return { url: known.ours[specifier], format: "module", shortCircuit: true };
    }
    if (known.parent === null || !known.bare.test(specifier)) throw error;
    try {
      return await nextResolve(specifier, { ...context, parentURL: known.parent });
    } catch {
      throw error; // it names the module of the pack that asked
    }
  }
}
