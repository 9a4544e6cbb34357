import assert from "node:assert/strict";
import test from "node:test";

import { csvText, safeCell } from "../../src/stepscope/web/text/csv.js";

test("what a spreadsheet would run begins with an apostrophe", () => {
  for (const start of ["=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠"]) {
    assert.equal(safeCell(`${start}cmd|' /C calc'!A0`), `'${start}cmd|' /C calc'!A0`);
  }
  for (const text of ["", "aten::mm", "a=b", " =1", "'=1", "<=", "(-1)"]) assert.equal(safeCell(text), text);
});

test("names are made harmless, numbers are not touched", () => {
  const columns = [{ name: "name" }, { name: "=1+1" }, { name: "total_ns", numeric: true }];
  const rows = [
    ["=HYPERLINK(\"http://x\")", "a,b", -5],
    [null, "@SUM(1)", "-9223372036854775808"],
    ["two\nlines", true, -0.5],
  ];
  assert.equal(
    csvText(columns, rows),
    "name,'=1+1,total_ns\n" +
      "\"'=HYPERLINK(\"\"http://x\"\")\",\"a,b\",-5\n" +
      ",'@SUM(1),-9223372036854775808\n" +
      "\"two\nlines\",true,-0.5\n",
  );
});

test("values of columns that are no text are JSON", () => {
  assert.equal(csvText([{ name: "grid" }], [[[1, 2]]]), 'grid\n"[1,2]"\n');
});
