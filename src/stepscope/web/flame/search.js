// Names that are searched for: by a regular expression, or by the words themselves where they are none.

/** @typedef {{ test: (name: string) => boolean, isPattern: boolean }} Wanted */

const SPECIAL = /[.*+?^${}()|[\]\\]/g;

/** What the words mean; null where there are none. @param {string} words @returns {Wanted | null} */
export function wanted(words) {
  if (!words) return null;
  const [pattern, isPattern] = patternOf(words);
  /** @type {Map<string, boolean>} */
  const known = new Map();
  return {
    isPattern,
    test: (name) => {
      const found = known.get(name) ?? pattern.test(name);
      known.set(name, found);
      return found;
    },
  };
}

/** @param {string} words @returns {[RegExp, boolean]} */
function patternOf(words) {
  const between = /^\/(.+)\/$/.exec(words)?.[1] ?? words; // as the trace viewer has it
  try {
    return [new RegExp(between, "i"), true];
  } catch {
    return [new RegExp(words.replace(SPECIAL, "\\$&"), "i"), false];
  }
}

/** How much of all has a hit in its path, and how many names and boxes are hit; a hit inside a hit counts once. @param {import("./tree.js").Node} root @param {Wanted} find */
export function hitsOf(root, find) {
  let cost = 0;
  let boxes = 0;
  const names = new Set();
  /** @type {[import("./tree.js").Node, boolean][]} */
  const open = root.inside.map((node) => [node, false]);
  for (let at = open.pop(); at; at = open.pop()) {
    const [node, isInside] = at;
    const isHit = find.test(node.name);
    if (isHit) {
      boxes += 1;
      names.add(node.name);
      if (!isInside) cost += node.total;
    }
    for (const each of node.inside) open.push([each, isInside || isHit]);
  }
  return { share: root.total ? cost / root.total : 0, names: names.size, boxes };
}

/** The same of boxes on an axis: the share of the axis at which some box is hit. @param {import("./layout.js").Box[]} all @param {Wanted} find */
export function hitsAcross(all, find) {
  const hits = all.filter((box) => find.test(box.node.name)).sort((a, b) => a.x0 - b.x0);
  let [share, end] = [0, 0];
  for (const { x0, x1 } of hits) {
    share += Math.max(0, x1 - Math.max(x0, end));
    end = Math.max(end, x1);
  }
  return { share, names: new Set(hits.map((box) => box.node.name)).size, boxes: hits.length };
}
