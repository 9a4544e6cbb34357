// Which frame of a stack is the user's own.

import assert from "node:assert/strict";
import { test } from "node:test";

import { ownFrame } from "../../src/stepscope/web/text/stack.js";

test("the innermost frame of the user's own code", () => {
  const inner = "<built-in function linear> ← torch/nn/modules/linear.py(130): forward ← nn.Module: Linear_0";
  assert.equal(ownFrame(`${inner} ← gpuddp.py(60): step ← gpuddp.py(21): <module>`), "gpuddp.py(60): step");
  assert.equal(ownFrame(`${inner} ← torch/utils/_contextlib.py(120): decorate ← contextlib.py(81): inner ← /home/me/torch_jobs/train.py(3): run`), "/home/me/torch_jobs/train.py(3): run");
  assert.equal(ownFrame("/venv/lib/python3.11/site-packages/mine/x.py(3): f ← /usr/lib/python3.11/threading.py(9): run"), null);
  assert.equal(ownFrame("train.py(1): step"), "train.py(1): step");
});
