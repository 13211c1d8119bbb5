import sdk from "./index.cjs";

export const {
  BENCHLOCAL_SCHEMA_VERSION,
  BENCHLOCAL_PROTOCOL_VERSION,
  createHostHelpers,
  defineBenchPack,
  defineBenchPackManifest,
  defineBenchPlugin,
  definePluginManifest,
  loadBenchPackManifest,
  requireScoredResults,
} = sdk;
export default sdk;
