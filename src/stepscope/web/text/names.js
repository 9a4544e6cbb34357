// Names for people: frames, built-ins and kernels as a colleague would call them, as `stepscope/names.py` does.

const FRAME = /^([^()\n]{1,4096})\((\d{1,9})\): (.+)$/;
const JAX_FRAME = /^\$([^\s:]+):(\d{1,9}) (.+)$/;
const JAX_BUILTIN = /^\$(\S+) (.+)$/;
const BUILTIN =
  /^<built-in (?:function (\S+)|method (\S*) of (\S+) object(?: at 0x[0-9a-fA-F]+)?)>$|^<method '(\w+)' of '(\S+)' objects>$/;
const LOADER = /^enumerate\(DataLoader\)#(\w+)\.__next__$/;
const NO_OWNERS = /^(type|module|PyCapsule|pybind11_\S*)$/;
const LAMBDA = /(::)?\{lambda\([^)]*\)#\d+\}(::operator\(\)\([^)]*\))?( const)?|::operator\(\)\([^)]*\)( const)?/g;
const C_FUNCTION = /^\w+\([^()]*[*&][^()]*\)$/;
const NAMESPACE = /\(anonymous namespace\)::|\b[a-z_]\w*::(?=[\w({~])/g;
// Entry points of kernel libraries that say nothing of what they run.
const ENTRIES = ["Kernel", "Kernel2", "kentry", "kernel_entry", "device_kernel"];
const LONGEST = 20_000;
const PATH_LENGTH = 40;
const NATIVE = "native code";

/** The name as a person would say it; one that is short already stays as it is. @param {string} name @returns {string} */
export function shortName(name) {
  if (name.length > LONGEST) return name;
  if (name.startsWith("_Z")) return demangle(name) || name;
  return nameBuiltin(name) ?? nameFrame(name) ?? nameLoader(name) ?? shortenKernel(name);
}

/** `step (train.py:12)`. @param {string} function_ @param {string} file @param {number} line */
export function namePlace(function_, file, line) {
  return `${function_} (${cutPath(file)}:${line})`;
}

/** The path with its first folder and as many of the last ones as fit. @param {string} path */
function cutPath(path, width = PATH_LENGTH) {
  if (path.length <= width) return path;
  const pieces = path.split("/");
  const first = pieces.slice(0, path.startsWith("/") ? 2 : 1).join("/");
  for (let kept = pieces.length - 2; kept > 0; kept -= 1) {
    const short = [first, "…", ...pieces.slice(pieces.length - kept)].join("/");
    if (short.length <= width) return short;
  }
  return clipped(pieces[pieces.length - 1], width);
}

/** @param {string} name */
function nameFrame(name) {
  const frame = FRAME.exec(name) ?? JAX_FRAME.exec(name);
  if (frame) return namePlace(shortName(frame[3]), frame[1], Number(frame[2]));
  const builtin = JAX_BUILTIN.exec(name);
  if (!builtin) return null;
  if (builtin[1] === "<unknown>") return builtin[2];
  return builtin[1].endsWith(".py") ? `${builtin[2]} (${builtin[1]})` : `${builtin[1]}.${builtin[2]}`;
}

/** `lock.acquire` for `<built-in method acquire of _thread.lock object at 0x7f…>`. @param {string} name */
function nameBuiltin(name) {
  const found = BUILTIN.exec(name);
  if (!found) return null;
  if (found[1]) return found[1];
  const method = found[2] || found[4] || NATIVE;
  const owner = found[3] || found[5];
  return method === NATIVE || NO_OWNERS.test(owner) ? method : `${owner.slice(owner.lastIndexOf(".") + 1)}.${method}`;
}

/** @param {string} name */
function nameLoader(name) {
  const loader = LOADER.exec(name);
  return loader && `DataLoader.__next__${loader[1].includes("MultiProcessing") ? " (with workers)" : ""}`;
}

/** A kernel's name without its return type, parameters, namespaces and lambdas, which hide what it is. @param {string} name */
function shortenKernel(name) {
  if (!name.includes("(") && !name.includes("::")) return name;
  if (C_FUNCTION.test(name)) return name.slice(0, name.indexOf("("));
  if (!name.startsWith("void ") && !name.includes("<")) return name;
  const bare = withoutParameters(name.replace(/^void /, "").replace(LAMBDA, ""));
  return bare.replace(NAMESPACE, "") || name;
}

/** The name up to the parenthesis that opens its last, outermost group. @param {string} name */
function withoutParameters(name) {
  if (!name.endsWith(")")) return name;
  let depth = 0;
  for (let place = name.length - 1; place >= 0; place -= 1) {
    depth += Number(name[place] === ")") - Number(name[place] === "(");
    if (depth === 0) return name.slice(0, place) || name;
  }
  return name;
}

/** The function of a mangled C++ name, and what it runs where it is only an entry point. @param {string} name */
function demangle(name) {
  const [found, at] = lastIdentifier(name, name.startsWith("_ZN") ? 3 : 2);
  if (!ENTRIES.includes(found)) return found;
  const inner = /^I(?:L[a-z]\d*E)*N?(?:S[0-9A-Z]*_)?/.exec(name.slice(at));
  const argument = inner ? lastIdentifier(name, at + inner[0].length)[0] : "";
  return argument ? `${found}<${argument}>` : found;
}

/** Of identifiers that follow one another, each behind its length; and where they end. @param {string} name @param {number} at @returns {[string, number]} */
function lastIdentifier(name, at) {
  let last = "";
  for (let length = /^\d{1,4}/.exec(name.slice(at)); length; length = /^\d{1,4}/.exec(name.slice(at))) {
    const start = at + length[0].length;
    at = start + Number(length[0]);
    last = name.slice(start, at);
  }
  return [last, at];
}

/** At most `most` characters, the middle left out. @param {string} name @param {number} most */
export function clipped(name, most) {
  if (name.length <= most) return name;
  const half = Math.floor((most - 1) / 2);
  return `${name.slice(0, most - 1 - half)}…${name.slice(name.length - half)}`;
}
