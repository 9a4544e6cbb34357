// Every entry of the navigation has a module, and every module of a page has an entry.

import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";

import { ENTRIES, moduleOf } from "../../src/stepscope/web/shell/pages.js";
import { whyNone } from "../../src/stepscope/web/text/nosteps.js";

const SHELL = new URL("../../src/stepscope/web/shell/pages.js", import.meta.url);
const PAGES = new URL("../pages/", SHELL);

test("every entry leads to a module that exports its page", () => {
  for (const { name } of ENTRIES) {
    const path = new URL(moduleOf(name), SHELL);
    assert.ok(existsSync(path), `${name}: ${path}`);
    assert.match(readFileSync(path, "utf-8"), new RegExp(`export const page = \\{\\s*name: "${name}"`), name);
  }
});

test("every module of a page has an entry", () => {
  const found = readdirSync(PAGES).map((each) => each.replace(/\.js$/, ""));
  assert.deepEqual(found.sort(), ENTRIES.map((each) => each.name).sort());
});

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
