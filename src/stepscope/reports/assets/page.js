// Sorting, filtering, tips and the theme. Without this the page shows all the same.
"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("js");

  const theme = document.getElementById("theme");
  const isDark = () =>
    root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  theme.hidden = false;
  theme.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; });

  // Tips: the browser's own come late and small, so ours take their words from the same elements.
  const tip = document.getElementById("tip");
  const wordsOf = (mark) => {
    if (mark.dataset.tip === undefined) {
      const title = mark.querySelector(":scope > title");
      mark.dataset.tip = title ? title.textContent : mark.title;
      if (title) title.remove();
      mark.removeAttribute("title");
    }
    return mark.dataset.tip;
  };
  const place = (event) => {
    const { width, height } = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - width - 8))}px`;
    tip.style.top = `${event.clientY + 20 + height > innerHeight ? event.clientY - height - 12 : event.clientY + 20}px`;
  };
  document.addEventListener("pointermove", (event) => {
    const mark = event.target.closest("[data-tip], [title], svg.figure :has(> title)");
    const words = mark ? wordsOf(mark) : "";
    if (tip.textContent !== words) tip.textContent = words;
    tip.style.visibility = words ? "visible" : "hidden";
    if (words) place(event);
  });
  document.addEventListener("pointerleave", () => { tip.style.visibility = "hidden"; });

  // A part that is pointed at in a legend stands out in its figure.
  for (const entry of document.querySelectorAll(".legend li")) {
    const marks = () => entry.closest("figure").querySelectorAll("svg [class^='p-'], svg [class^='q-'], svg [class^='m-']");
    const dim = (on) => marks().forEach((mark) =>
      mark.classList.toggle("dimmed", on && !mark.classList.contains(entry.dataset.key)));
    entry.addEventListener("pointerenter", () => dim(true));
    entry.addEventListener("pointerleave", () => dim(false));
  }

  const compare = (a, b) => {
    const [left, right] = [a.dataset.v ?? a.textContent, b.dataset.v ?? b.textContent];
    if (left === "" || right === "") return (left === "") - (right === "") || 0;
    const numbers = [Number(left), Number(right)];
    return numbers.some(Number.isNaN) ? left.localeCompare(right) : numbers[0] - numbers[1];
  };
  const sort = (table, head) => {
    const column = head.cellIndex;
    const falls = head.ariaSort ? head.ariaSort === "ascending" : head.classList.contains("n");
    table.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
    head.ariaSort = falls ? "descending" : "ascending";
    const isEmpty = (row) => row.cells[column].dataset.v === "";
    const rows = [...table.tBodies[0].rows].sort((a, b) =>
      isEmpty(a) || isEmpty(b) ? isEmpty(a) - isEmpty(b) : (falls ? -1 : 1) * compare(a.cells[column], b.cells[column]));
    table.tBodies[0].append(...rows);
  };
  const filter = (table, words) => {
    const wanted = words.toLowerCase();
    for (const row of table.tBodies[0].rows) {
      const texts = [...row.cells].map((cell) => `${cell.textContent} ${cell.dataset.tip ?? cell.title}`);
      row.hidden = !texts.join(" ").toLowerCase().includes(wanted);
    }
  };
  for (const table of document.querySelectorAll("table")) {
    table.tHead.addEventListener("click", (event) => sort(table, event.target.closest("th")));
    table.tBodies[0].addEventListener("click", (event) => event.target.closest("td.name")?.classList.toggle("open"));
    const box = table.closest(".of");
    const unfold = box.querySelector(":scope > .unfold");
    const open = () => { box.classList.remove("folded"); unfold?.remove(); };
    if (unfold) {
      unfold.hidden = false;
      unfold.addEventListener("click", open);
    }
    const input = box.querySelector("input");
    if (input) input.addEventListener("input", () => { open(); filter(table, input.value); });
  }
})();
