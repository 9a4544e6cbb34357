import assert from "node:assert/strict";
import test from "node:test";

import { anchor, blocks, linked, spans } from "../../src/stepscope/web/ui/markdown.js";

test("headings, paragraphs, code, lists and tables", () => {
  const found = blocks(
    "# One\n\ntwo\nlines\n\n```\na < b\n```\n- x\n  more\n- y\n\n| a | b |\n|---|---|\n| 1 | `2` |\n",
  );
  assert.deepEqual(
    found.map((block) => block.kind),
    ["heading", "paragraph", "code", "list", "table"],
  );
  assert.equal(found[2].text, "a < b");
  assert.equal(found[3].items.length, 2);
  assert.deepEqual(found[4].rows[0][1], [{ kind: "code", text: "2" }]);
});

test("markup is text", () => {
  assert.deepEqual(spans("<b>x</b>"), [{ kind: "text", text: "<b>x</b>" }]);
});

test("links, code and emphasis inside a line", () => {
  assert.deepEqual(
    spans("see [ops](ops.md#by) and **this** `x`").map((span) => span.kind),
    ["text", "link", "text", "strong", "text", "code"],
  );
});

test("links stay inside the documentation", () => {
  assert.deepEqual(linked("report/ops.md", "kernels.md#top"), { page: "report/kernels", heading: "top" });
  assert.deepEqual(linked("report/ops.md", "../tables.md"), { page: "tables", heading: "" });
  assert.deepEqual(linked("report/ops.md", "#here"), { page: "report/ops", heading: "here" });
  assert.equal(linked("report/ops.md", "javascript:alert(1)"), null);
  assert.equal(linked("report/ops.md", "//elsewhere/x.md"), null);
  assert.equal(linked("index.md", "../../secret.md"), null);
  assert.equal(linked("report/index.md", "schema.json"), null);
});

test("anchors as GitHub makes them", () => {
  assert.equal(anchor(spans("What the `words` mean, (all)")), "what-the-words-mean-all");
});

test("text without an end is read to its end", () => {
  assert.equal(blocks("```\nopen").length, 1);
  assert.equal(blocks("| not a table").length, 1);
});
