// Uses the page as a person would, and leaves what it saw in the title. Run by test_browser.py.
const seen = {};
const table = document.querySelector("#steps table");
const heads = [...table.tHead.rows[0].cells];
const column = (name) => heads.findIndex((head) => head.textContent === name);
const values = (name) => [...table.tBodies[0].rows].map((row) => row.cells[column(name)].textContent);
const move = (mark) => mark.dispatchEvent(new PointerEvent("pointermove", { bubbles: true, clientX: 9, clientY: 9 }));
const tip = document.getElementById("tip");

heads[column("duration")].click();
seen.falling = values("duration");
heads[column("duration")].click();
seen.rising = values("duration");
heads[column("note")].click();
seen.empty_last = values("note").slice(-1);

move(document.querySelector("#breakdown svg rect"));
seen.tip = tip.textContent;
seen.tip_is_shown = tip.style.visibility;
move(document.querySelector("#kernels td.name"));
seen.full_name = tip.textContent;

document.getElementById("theme").click();
const first = document.documentElement.dataset.theme;
document.getElementById("theme").click();
seen.themes = [first, document.documentElement.dataset.theme].sort();

document.querySelector(".legend li").dispatchEvent(new PointerEvent("pointerenter"));
seen.dimmed = document.querySelectorAll(".dimmed").length > 0;

const filter = document.querySelector("#ops input");
filter.value = "ROW 7";
filter.dispatchEvent(new Event("input"));
seen.filtered = [...document.querySelectorAll("#ops tbody tr")].filter((row) => !row.hidden).length;
document.title = JSON.stringify(seen);
