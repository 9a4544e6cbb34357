import assert from "node:assert/strict";
import test from "node:test";

import { whyNone } from "../../src/stepscope/web/text/nosteps.js";

test("advises what the report advises for this recorder", () => {
  const missing = { code: "no-steps", fix: "Put an NVTX range around each step." };
  assert.equal(
    whyNone({ problems: [{ code: "one-step", fix: "Record more." }, missing] }),
    "Nothing marks the steps, and nothing repeats that could be taken for steps. Put an NVTX range around each step.",
  );
});

test("advises nothing for a file that cannot have steps", () => {
  assert.equal(whyNone({ problems: [] }), "This recording holds no work that could be divided into steps.");
});
