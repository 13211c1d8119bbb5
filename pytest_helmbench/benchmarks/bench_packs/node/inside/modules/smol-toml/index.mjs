// The same module for ES packs: one copy, so that instanceof holds between the two kinds.
import loaded from "./index.cjs";

export const {
  TomlDate,
  TomlError,
  parse,
  stringify,
} = loaded;
export default loaded.default;
