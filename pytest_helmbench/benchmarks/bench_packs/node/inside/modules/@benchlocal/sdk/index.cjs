"use strict";
// The parts of @benchlocal/sdk that Bench Packs import. Written from the protocol: the original is not on the npm registry.

const fs = require("node:fs");
const path = require("node:path");
const { fileURLToPath } = require("node:url");

const BENCHLOCAL_SCHEMA_VERSION = 1;
const BENCHLOCAL_PROTOCOL_VERSION = 1;
const MANIFEST = "benchlocal.pack.json";

const defineBenchPack = (pack) => pack;

const defineBenchPackManifest = (manifest) => ({
  schemaVersion: BENCHLOCAL_SCHEMA_VERSION,
  protocolVersion: BENCHLOCAL_PROTOCOL_VERSION,
  ...manifest,
});

/** Read the manifest of the pack whose compiled module lies in a folder, usually `<pack>/dist/benchlocal`. */
function loadBenchPackManifest(moduleDir) {
  const start = String(moduleDir).startsWith("file:") ? fileURLToPath(moduleDir) : String(moduleDir);
  let folder = path.resolve(start);
  while (!fs.existsSync(path.join(folder, MANIFEST)) && folder !== path.dirname(folder)) folder = path.dirname(folder);
  return JSON.parse(fs.readFileSync(path.join(folder, MANIFEST), "utf8"));
}

/** Give every result a score: packs add them up. */
const requireScoredResults = (results) => results.map((result) => ({ ...result, score: result.score ?? 0 }));

function lookup(kind, entries, keyOf) {
  const byKey = new Map((entries ?? []).map((entry) => [keyOf(entry), entry]));
  const get = (id) => byKey.get(id);
  const need = (id, fits = () => true, lack = "") => {
    const entry = byKey.get(id);
    if (entry === undefined) throw new Error(`${kind} "${id}" was not found.`);
    if (!fits(entry)) throw new Error(`${kind} "${id}" ${lack}`);
    return entry;
  };
  /** The lookup with options: `required` throws where others give undefined. */
  const choose = (id, required, fits, lack) => {
    if (required) return need(id, fits, lack);
    const entry = byKey.get(id);
    return entry !== undefined && fits(entry) ? entry : undefined;
  };
  return { get, need, choose };
}

function createHostHelpers(context) {
  const providers = lookup("Provider", context.providers, (entry) => entry.id);
  const secrets = lookup("Secret", context.secrets, (entry) => entry.providerId);
  const models = lookup("Model", context.models, (entry) => entry.id);
  const endpoints = lookup("Inference endpoint", context.inferenceEndpoints, (entry) => entry.modelId);
  const verifiers = lookup("Verifier", context.verifiers ?? context.sidecars, (entry) => entry.id);

  const getProvider = (id, options = {}) =>
    providers.choose(id, options.required, (one) => !options.enabledOnly || one.enabled, "is disabled.");
  const getVerifier = (id, options = {}) =>
    verifiers.choose(id, options.required, (one) => !options.runningOnly || one.status === "running", "is not running.");
  const getRequiredVerifier = (id, options) => getVerifier(id, { ...options, required: true });

  return {
    getProvider,
    getRequiredProvider: (id, options) => getProvider(id, { ...options, required: true }),
    getSecret: secrets.get,
    getSecretValue: (id) => secrets.get(id)?.value,
    getRequiredSecretValue: (id) => secrets.need(id, (one) => Boolean(one.value), "has no value.").value,
    getRegisteredModel: models.get,
    getRequiredModel: (id) => models.need(id),
    getInferenceEndpoint: endpoints.get,
    getRequiredInferenceEndpoint: (id) => endpoints.need(id, (one) => one.status === "running", "is not running."),
    getVerifier,
    getRequiredVerifier,
    getSidecar: getVerifier,
    getRequiredSidecar: getRequiredVerifier,
    resolveGenerationRequest: (request) =>
      Object.fromEntries(Object.entries(request ?? {}).filter(([, value]) => value !== undefined)),
    getScenarioById(scenarios, id) {
      const scenario = scenarios.find((candidate) => candidate.id === id);
      if (scenario === undefined) throw new Error(`Scenario "${id}" was not found.`);
      return scenario;
    },
  };
}

exports.BENCHLOCAL_SCHEMA_VERSION = BENCHLOCAL_SCHEMA_VERSION;
exports.BENCHLOCAL_PROTOCOL_VERSION = BENCHLOCAL_PROTOCOL_VERSION;
exports.defineBenchPack = defineBenchPack;
exports.defineBenchPackManifest = defineBenchPackManifest;
exports.defineBenchPlugin = defineBenchPack; // older packs say plugin
exports.definePluginManifest = defineBenchPackManifest;
exports.loadBenchPackManifest = loadBenchPackManifest;
exports.requireScoredResults = requireScoredResults;
exports.createHostHelpers = createHostHelpers;
