"use strict";
// The parts of @benchlocal/core that Bench Packs import: mostly types, which are gone by now, and these constants.

const DEFAULT_BENCHLOCAL_REQUEST_TIMEOUT_SECONDS = 300;

module.exports = {
  ...require("../sdk/index.cjs"),
  DEFAULT_BENCHLOCAL_REQUEST_TIMEOUT_SECONDS,
  DEFAULT_BENCHLOCAL_GENERATION: { request_timeout_seconds: DEFAULT_BENCHLOCAL_REQUEST_TIMEOUT_SECONDS },
};
