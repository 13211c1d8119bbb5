"use strict";
// Built-ins as they are before a pack is loaded: what a pack does to prototypes afterwards does not reach them.
// Nothing in this folder calls a method of a pack's value, of an array or of a string in any other way.

const fs = require("node:fs");
const { AsyncLocalStorage } = require("node:async_hooks");
const { types } = require("node:util");

const typedArray = Object.getPrototypeOf(Uint8Array.prototype);
const { bind, call } = Function.prototype;
const uncurried = bind.bind(call); // uncurried(f)(receiver, ...arguments)

const decoder = new TextDecoder();
const encoder = new TextEncoder();

module.exports = {
  abort: uncurried(AbortController.prototype.abort),
  byteLengthOf: uncurried(Object.getOwnPropertyDescriptor(typedArray, "byteLength").get),
  charCodeAt: uncurried(String.prototype.charCodeAt),
  dateText: uncurried(Date.prototype.toISOString),
  decode: decoder.decode.bind(decoder),
  defineProperty: Object.defineProperty,
  encodeUtf8: encoder.encode.bind(encoder),
  indexOf: uncurried(String.prototype.indexOf),
  isArray: Array.isArray,
  isFinite: Number.isFinite,
  keysOf: Object.keys,
  mapForEach: uncurried(Map.prototype.forEach),
  parse: JSON.parse,
  primitiveOf: {
    Number: uncurried(Number.prototype.valueOf),
    String: uncurried(String.prototype.valueOf),
    Boolean: uncurried(Boolean.prototype.valueOf),
  },
  quote: JSON.stringify, // for strings only: it calls toJSON of anything else
  regExpText: uncurried(RegExp.prototype.toString),
  runWithin: uncurried(AsyncLocalStorage.prototype.run),
  setForEach: uncurried(Set.prototype.forEach),
  slice: uncurried(String.prototype.slice),
  storeOf: uncurried(AsyncLocalStorage.prototype.getStore),
  text: String, // for numbers, bigints and symbols only
  types: { ...types },
  uncurried,
  writeSync: fs.writeSync,
};
