import core from "./index.cjs";

export * from "../sdk/index.mjs";
export const { DEFAULT_BENCHLOCAL_GENERATION, DEFAULT_BENCHLOCAL_REQUEST_TIMEOUT_SECONDS } = core;
export default core;
