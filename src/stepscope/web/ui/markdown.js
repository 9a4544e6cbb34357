// Documentation pages as elements. A small part of Markdown: what the pages use, and never HTML.

/**
 * @typedef {{ kind: "text" | "code" | "strong" | "link" | "image", text: string, target?: string }} Span
 * @typedef {{ kind: "heading", level: number, spans: Span[] } | { kind: "paragraph", spans: Span[] } | { kind: "code", text: string }
 *   | { kind: "list", ordered: boolean, items: Span[][] } | { kind: "table", head: Span[][], rows: Span[][][] }} Block
 */

const INLINE = /`([^`]+)`|!\[([^\]]*)\]\(([^)\s]+)\)|\[([^\]]+)\]\(([^)\s]+)\)|\*\*([^*]+)\*\*|\*([^*\s][^*]*)\*/g;

/** @param {string} text @returns {Span[]} */
export function spans(text) {
  /** @type {Span[]} */
  const found = [];
  let at = 0;
  for (const match of text.matchAll(INLINE)) {
    if (match.index > at) found.push({ kind: "text", text: text.slice(at, match.index) });
    const [, code, image, imageTarget, link, target, strong, emphasis] = match;
    if (code !== undefined) found.push({ kind: "code", text: code });
    else if (imageTarget !== undefined) found.push({ kind: "image", text: image, target: imageTarget });
    else if (target !== undefined) found.push({ kind: "link", text: link.replaceAll("`", ""), target });
    else found.push({ kind: "strong", text: strong ?? emphasis });
    at = match.index + match[0].length;
  }
  if (at < text.length) found.push({ kind: "text", text: text.slice(at) });
  return found;
}

/** @param {string} line */
function cells(line) {
  const inner = line.trim().replace(/^\||\|$/g, "");
  return inner.split(/(?<!\\)\|/).map((cell) => spans(cell.trim().replaceAll("\\|", "|")));
}

/** @param {string} source @returns {Block[]} */
export function blocks(source) {
  const lines = source.replaceAll("\r", "").split("\n");
  /** @type {Block[]} */
  const found = [];
  let at = 0;
  /** Lines from here on for which the test holds. @param {(line: string) => boolean} holds */
  const take = (holds) => {
    const from = at;
    while (at < lines.length && holds(lines[at])) at += 1;
    return lines.slice(from, at);
  };
  while (at < lines.length) {
    const line = lines[at];
    const heading = /^(#{1,6}) (.*)$/.exec(line);
    if (!line.trim()) at += 1;
    else if (heading) {
      found.push({ kind: "heading", level: heading[1].length, spans: spans(heading[2]) });
      at += 1;
    } else if (line.startsWith("```")) {
      at += 1;
      found.push({ kind: "code", text: take((each) => !each.startsWith("```")).join("\n") });
      at += 1;
    } else if (line.startsWith("|") && /^\|[\s|:-]+$/.test(lines[at + 1] ?? "")) {
      const head = cells(line);
      at += 2;
      found.push({ kind: "table", head, rows: take((each) => each.startsWith("|")).map(cells) });
    } else if (/^([-*]|\d+\.) /.test(line)) {
      const ordered = /^\d/.test(line);
      found.push({ kind: "list", ordered, items: items(take((each) => /^([-*]|\d+\.) |^ {2,}\S/.test(each))) });
    } else {
      const text = take((each) => each.trim() !== "" && !/^(#{1,6} |```|\||([-*]|\d+\.) )/.test(each));
      if (!text.length) {
        text.push(line);
        at += 1;
      }
      found.push({ kind: "paragraph", spans: spans(text.map((each) => each.trim()).join(" ")) });
    }
  }
  return found;
}

/** @param {string[]} lines */
function items(lines) {
  /** @type {string[]} */
  const texts = [];
  for (const line of lines) {
    if (/^([-*]|\d+\.) /.test(line)) texts.push(line.replace(/^([-*]|\d+\.) /, ""));
    else texts[texts.length - 1] += ` ${line.trim()}`;
  }
  return texts.map(spans);
}

/** The name that a heading can be linked by. @param {Span[]} heading */
export function anchor(heading) {
  return heading
    .map((span) => span.text)
    .join("")
    .toLowerCase()
    .replace(/[^\p{L}\p{N}_ -]/gu, "")
    .replaceAll(" ", "-");
}

/** The page that a relative link leads to, without its ending; null where it leads out of the documentation. @param {string} page @param {string} target */
export function linked(page, target) {
  if (/^[a-z][a-z0-9+.-]*:/i.test(target) || target.startsWith("//")) return null;
  const [path, heading = ""] = target.split("#");
  const parts = path ? page.split("/").slice(0, -1) : page.split("/");
  for (const piece of path ? path.split("/") : []) {
    if (piece === "..") {
      if (parts.pop() === undefined) return null;
    } else if (piece !== ".") parts.push(piece);
  }
  const name = parts.join("/");
  if (path && !name.endsWith(".md")) return null;
  return { page: name.replace(/\.md$/, ""), heading };
}
