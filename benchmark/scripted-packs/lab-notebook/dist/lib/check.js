// What a value from outside must look like: each check returns the value, or throws where it is wrong and how.

function wrong(where, wanted, value) {
  throw new TypeError(`${where} is ${JSON.stringify(value) ?? "missing"}, not ${wanted}`);
}

export function text(value, where) {
  return typeof value === "string" ? value : wrong(where, "a text", value);
}

export function oneOf(known) {
  return (value, where) => (known.includes(value) ? value : wrong(where, `one of ${known.join(", ")}`, value));
}

export function list(check, least = 0) {
  return (value, where) => {
    if (!Array.isArray(value) || value.length < least) wrong(where, `a list of at least ${least}`, value);
    value.forEach((entry, index) => check(entry, `${where}[${index}]`));
    return value;
  };
}

/** Every field is there and right; others may be there too. */
export function object(fields) {
  return (value, where) => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) wrong(where, "an object", value);
    for (const [name, check] of Object.entries(fields)) check(value[name], `${where}.${name}`);
    return value;
  };
}
