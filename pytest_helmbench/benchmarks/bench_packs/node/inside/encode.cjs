"use strict";
// Built-ins as they are before a pack is loaded: what a pack does to prototypes afterwards does not reach them. Nothing in
// this folder calls a method of a pack's value, of an array or of a string in any other way.
// And any value a pack can make, as JSON text that is bounded and says where it was cut. Follows JSON.stringify where
// that has an answer; bigint, NaN and Infinity become texts, so that a reader who expects a number sees that it is none.

const fs = require("node:fs");
const { AsyncLocalStorage } = require("node:async_hooks");
const util = require("node:util");

const typedArray = Object.getPrototypeOf(Uint8Array.prototype);
const { bind, call } = Function.prototype;
const uncurried = bind.bind(call); // uncurried(f)(receiver, ...arguments)

const decoder = new TextDecoder();
const encoder = new TextEncoder();

const captured = {
  abort: uncurried(AbortController.prototype.abort),
  byteLengthOf: uncurried(Object.getOwnPropertyDescriptor(typedArray, "byteLength").get),
  charCodeAt: uncurried(String.prototype.charCodeAt),
  decode: decoder.decode.bind(decoder),
  defineProperty: Object.defineProperty,
  encodeUtf8: encoder.encode.bind(encoder),
  indexOf: uncurried(String.prototype.indexOf),
  isArray: Array.isArray,
  isFinite: Number.isFinite,
  keysOf: Object.keys,
  parse: JSON.parse,
  quote: JSON.stringify, // for strings only: it calls toJSON of anything else
  runWithin: uncurried(AsyncLocalStorage.prototype.run),
  slice: uncurried(String.prototype.slice),
  storeOf: uncurried(AsyncLocalStorage.prototype.getStore),
  text: String, // for numbers, bigints and symbols only
  types: { ...util.types },
  uncurried,
  writeSync: fs.writeSync,
};

const { charCodeAt, isArray, isFinite, keysOf, quote, slice, text, types } = captured;

const LIMITS = { text: 1024 * 1024, depth: 64, values: 100_000 };
const LONGEST_ESCAPE = 6;
const LONGEST_KEY = 1000;
const cutText = (what, room) => `"[cut: ${what} has room for ${room} and 100,000 values]"`;
/** What a text may take at most, in characters, and what it says where it was cut. */
const BOUNDS = {
  answer: { room: 8 * 1024 * 1024, cut: cutText("an answer", "8 MiB") },
  result: { room: 2 * 1024 * 1024, cut: cutText("a result", "2 MiB") },
  event: { room: 256 * 1024, cut: cutText("an event", "256 KiB") },
  thrown: { room: 1000, cut: cutText("what is thrown", "1,000 characters") },
};

/** Return the JSON text of a value; `bound` is one of BOUNDS. */
function encode(value, bound) {
  const state = { ...bound, values: LIMITS.values, above: { __proto__: null } };
  const written = any(value, state, 0);
  return written === undefined ? "null" : written;
}

/** Return the text of a value, or undefined for what JSON leaves out. */
function any(value, state, depth) {
  state.values -= 1;
  if (state.room <= 0 || state.values < 0) return state.cut;
  switch (typeof value) {
    case "string":
      return string(value, state);
    case "number":
      return spend(isFinite(value) ? text(value) : `"${text(value)}"`, state);
    case "boolean":
      return spend(value ? "true" : "false", state);
    case "bigint":
      return string(bigint(value), state);
    case "object":
      return value === null ? spend("null", state) : object(value, state, depth);
    default:
      return undefined; // undefined, functions, symbols
  }
}

const spend = (written, state) => {
  state.room -= written.length;
  return written;
};

function string(value, state) {
  let kept = value;
  if (value.length > LIMITS.text) kept = shortened(value, LIMITS.text);
  if (kept.length * LONGEST_ESCAPE + 2 > state.room) {
    const fits = (state.room / LONGEST_ESCAPE) | 0;
    if (kept.length > fits && quote(kept).length > state.room) kept = shortened(value, fits);
  }
  return spend(quote(kept), state);
}

function shortened(value, length) {
  const last = length > 0 ? charCodeAt(value, length - 1) : 0;
  const end = last >= 0xd800 && last <= 0xdbff ? length - 1 : length; // no half character at the cut
  return `${slice(value, 0, end)}… [cut: ${text(value.length - end)} more characters]`;
}

// Turning a bigint into digits takes time that grows with the square of its length: no pack needs these.
const LARGEST = 2n ** 4096n;
const bigint = (value) => (value > LARGEST || value < -LARGEST ? "[a huge bigint]" : text(value));

/** Return the text of an object, whatever its getters, its proxy or its toJSON do. */
function object(value, state, depth) {
  if (depth >= LIMITS.depth) return string("[cut: too deep]", state);
  for (let i = 0; i < depth; i += 1) if (state.above[i] === value) return string("[circular]", state);
  state.above[depth] = value;
  try {
    return kind(value, state, depth);
  } catch (thrown) {
    return string(`[threw: ${slice(brief(thrown), 0, 200)}]`, state);
  } finally {
    state.above[depth] = undefined;
  }
}

function kind(value, state, depth) {
  if (types.isProxy(value)) return isArray(value) ? list(value, state, depth) : record(value, state, depth);
  if (isArray(value)) return list(value, state, depth);
  if (types.isNativeError(value)) return string(brief(value), state);
  if (types.isArrayBufferView(value) || types.isAnyArrayBuffer(value)) return string("[binary data]", state);
  const plain = typeof value.toJSON === "function" ? value.toJSON() : value;
  if (plain === value) return record(value, state, depth);
  const written = any(plain, state, depth + 1);
  return written === undefined ? spend("null", state) : written;
}

function list(value, state, depth) {
  let written = "[";
  const { length } = value;
  for (let i = 0; i < length; i += 1) {
    if (full(state)) return `${written}${i ? "," : ""}${state.cut}]`;
    const one = any(part(value, i), state, depth + 1);
    written += (i ? "," : "") + (one === undefined ? spend("null", state) : one);
  }
  return `${written}]`;
}

function record(value, state, depth) {
  let written = "{";
  const keys = keysOf(value);
  for (let i = 0; i < keys.length; i += 1) {
    if (full(state)) return `${written}${written === "{" ? "" : ","}"[cut]":${state.cut}}`;
    written += member(written === "{", keys[i], part(value, keys[i]), state, depth);
  }
  return `${written}}`;
}

function member(first, key, value, state, depth) {
  const written = any(value, state, depth + 1);
  if (written === undefined) return "";
  const name = quote(key.length > LONGEST_KEY ? shortened(key, LONGEST_KEY) : key);
  return `${first ? "" : ","}${spend(name, state)}:${written}`;
}

const full = (state) => state.room <= 0 || state.values <= 0;

/** Return a part of a value; a getter that throws gives what it threw. */
function part(value, key) {
  try {
    return value[key];
  } catch (thrown) {
    return `[threw: ${slice(brief(thrown), 0, 200)}]`;
  }
}

/** Return what was thrown in a line: name and message, its cause, or the value that is not an error. */
function brief(thrown, depth = 0) {
  if ((typeof thrown !== "object" && typeof thrown !== "function") || thrown === null) {
    return typeof thrown === "symbol" || typeof thrown === "bigint" ? text(thrown) : `${thrown}`;
  }
  const name = stringOr(part(thrown, "name"), "");
  const message = stringOr(part(thrown, "message"), "");
  if (!name && !message) return `a value that is not an error: ${depth ? "" : slice(encode(thrown, BOUNDS.thrown), 0, 300)}`;
  const said = `${name && message ? `${name}: ${message}` : name || message}`;
  const cause = part(thrown, "cause");
  return cause === undefined || depth >= 3 ? said : `${said} (cause: ${brief(cause, depth + 1)})`;
}

/** Return where something was thrown, as Node says; empty for nothing. */
const stackOf = (thrown) =>
  typeof thrown === "object" && thrown !== null ? slice(stringOr(part(thrown, "stack"), ""), 0, 8000) : "";

const stringOr = (value, otherwise) => (typeof value === "string" ? slice(value, 0, 4000) : otherwise);

module.exports = { BOUNDS, brief, captured, encode, stackOf };
