// What the first view asks for, asked while the script that shows it is loaded: that takes as long as the answers.

const BY_REPORT = new Set(["overview", "steps", "input", "ops", "flame", "kernels", "device", "memory", "collectives"]);
const KEPT_MS = 10_000; // after that, an answer is out of date

/** @type {Map<string, Promise<Response>>} */
const answers = new Map();

/** What the page asks for at its start. @param {string} hash */
export function asksOf(hash) {
  const [page, query] = hash.replace(/^#\/?/, "").split("?");
  const params = new URLSearchParams(query);
  const run = params.get("run") ?? "";
  const asks = ["api/state", "api/runs"];
  if (!/^\w+$/.test(run) || params.has("rank")) return asks;
  if (BY_REPORT.has(page)) asks.push(`api/runs/${run}/report`);
  if (page === "trace") asks.push(`api/runs/${run}/timeline/layout`);
  return asks;
}

/** The answer to a request that was begun ahead; each is given once. @param {string} url */
export function takeAhead(url) {
  const answer = answers.get(url);
  answers.delete(url);
  return answer;
}

/** @param {string} hash */
function begin(hash) {
  for (const url of asksOf(hash)) {
    const answer = fetch(url, { credentials: "same-origin" });
    answer.catch(() => {}); // the caller that takes it sees the error
    answers.set(url, answer);
  }
  setTimeout(() => answers.clear(), KEPT_MS);
}

if (globalThis.document) begin(location.hash);
