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

/** The innermost frame that is neither a framework's nor Python's own. @param {string} stack innermost frame first */
export function ownFrame(stack) {
  return stack.split(BETWEEN).find((frame) => frame && !FOREIGN.test(frame)) ?? null;
}
