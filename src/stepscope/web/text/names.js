// Names of kernels, shortened as the report shortens them.

const LAMBDA = /(::)?\{lambda\([^)]*\)#\d+\}(::operator\(\)\([^)]*\))?( const)?|::operator\(\)\([^)]*\)( const)?/g;
const NAMESPACE = /\(anonymous namespace\)::|\b[a-z_]\w*::(?=[\w({~])/g;

/** A kernel's name without its return type, parameters, namespaces and lambdas, which hide what it is. @param {string} name */
export function shortName(name) {
  if (!name.includes("(") && !name.includes("::")) return name;
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

/** At most so many characters, the middle left out. @param {string} name @param {number} most */
export function clipped(name, most) {
  if (name.length <= most) return name;
  const half = Math.floor((most - 1) / 2);
  return `${name.slice(0, most - 1 - half)}…${name.slice(name.length - half)}`;
}
