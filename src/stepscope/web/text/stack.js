// A call stack in words: which of its frames is the user's own code.

export const BETWEEN = " ← ";

const FRAMEWORKS =
  "torch|torch_xla|torchvision|torchaudio|functorch|jax|jaxlib|flax|optax|haiku|equinox|tensorflow|keras|tf_keras|lightning|lightning_fabric|pytorch_lightning|accelerate|transformers|deepspeed|triton|numpy|scipy|pandas|PIL|stepscope";
const STANDARD =
  "abc|asyncio|codecs|collections|concurrent|contextlib|copy|ctypes|dataclasses|encodings|enum|functools|importlib|inspect|io|json|logging|multiprocessing|os|pathlib|pickle|posixpath|queue|random|re|runpy|selectors|socket|subprocess|tempfile|threading|traceback|typing|warnings|weakref|_collections_abc|_weakrefset";
const FOREIGN = new RegExp(
  [
    "^<", // built-ins, frozen modules, compiled code
    "^nn\\.Module: ",
    "(site|dist)-packages/",
    `^(${FRAMEWORKS})[/\\\\]`,
    `(^|lib/python3\\.\\d+/)(${STANDARD})(/[\\w/]*)?(\\.py)?\\(\\d+\\)`,
    "lib/python3\\.\\d+/",
  ].join("|"),
);

// PyTorch writes `train.py(12): step`, JAX `$train.py:12 step`.
const PLACE = /^(?:\$([^\s:]+\.py):(\d{1,9}) |(.+?)\((\d{1,9})\): )(.+)$/;

/** The place that the name of a Python frame gives; null for a built-in, an annotation or an op. @param {string} name @returns {import("../types").Place | null} */
export function placeOf(name) {
  const found = PLACE.exec(name);
  return found && { file: found[1] ?? found[3], line: Number(found[2] ?? found[4]), function: found[5] };
}

/** Where in the program: the innermost frame of the user's own code, else the innermost of all. @param {string[]} names outermost first */
export function innermostPlace(names) {
  const frames = names.filter((name) => placeOf(name) !== null);
  const own = frames.filter((name) => !FOREIGN.test(name));
  const frame = (own.length ? own : frames).at(-1);
  return frame === undefined ? null : placeOf(frame);
}

/** The innermost frame that is neither a framework's nor Python's own. @param {string} stack innermost frame first */
export function ownFrame(stack) {
  return stack.split(BETWEEN).find((frame) => frame && !FOREIGN.test(frame)) ?? null;
}
