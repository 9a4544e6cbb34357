// Handles in words: what the events behind a figure are of, and which page has a row for it.

import { shortName } from "../../text/names.js";
import { part } from "../../text/parts.js";

/** What a handle is about in words, and the page that has a row for it. @type {Record<string, [string, string]>} */
const KINDS = {
  finding: ["finding", "overview"],
  account: ["account", "overview"],
  op: ["op", "ops"],
  kernel: ["kernel", "kernels"],
  phase: ["phase", "steps"],
  step: ["step", "steps"],
  collective: ["collective", "collectives"],
  copy: ["copy", "device"],
  idle: ["idle device", "device"],
  stage: ["input stage", "input"],
  compute: ["compute", "kernels"],
  roofline: ["class", "kernels"],
  memory: ["live memory", "memory"],
  event: ["event", "sql"],
  frame: ["calls of", "flame"],
  scope: ["calls in", "flame"],
  problem: ["problem", "doctor"],
};

const SCOPES = 3; // of a path, the innermost

/** What the events are of, in a few words. @param {string} kind @param {string} name @param {Record<string, any>} facts */
export function titleOf(kind, name, facts) {
  if (kind === "account") return `${part(name).title}${facts.name ? `: ${shortName(facts.name)}` : ""}`;
  if (kind === "step") return `step ${name}${facts.part ? `, ${part(facts.part).title}` : ""}`;
  if (kind === "idle") return name ? `idle time of device ${name}` : "idle time";
  if (kind === "roofline" && facts.op) return `${name}: ${facts.op}`;
  if (kind === "scope") return `calls in ${name.split("/").slice(-SCOPES).join("/")}`;
  if (kind === "memory") return [name, facts.op, facts.scope, facts.device].filter(Boolean).join(", ") || "live memory";
  return `${KINDS[kind]?.[0] ?? kind} ${shortName(name)}`.trim();
}

/** The page that has rows of this kind. @param {string} of a handle */
export function homeOf(of) {
  return KINDS[of.slice(0, of.indexOf(":"))]?.[1] ?? "overview";
}

/** @param {string} text @returns {Record<string, any>} */
export function factsOf(text) {
  try {
    return text ? JSON.parse(text) : {};
  } catch {
    return {};
  }
}
