"use strict";
// The list of runs: lines that change are replaced, new ones come on top; two that are ticked can be compared.
(() => {
const $ = (id) => document.getElementById(id), list = $("runs");
const ticked = () => [...list.querySelectorAll("input:checked")];
let source = null, busy = false, again = false, full = false;
function picked() {
  const found = ticked();
  $("compare").disabled = found.length !== 2;
  for (const box of list.querySelectorAll("input")) box.disabled = found.length >= 2 && !box.checked;
}
async function show() {
  if (busy) { again = true; return; }
  busy = true;
  try {
    const reply = await fetch(`/news?since=${list.dataset.version}`);
    if (!reply.ok) throw new Error(await reply.text());
    const news = await reply.json();
    if (news.reload) return location.reload();
    list.dataset.version = news.version;
    const rows = new DOMParser().parseFromString(`<table>${Object.values(news.lines).join("")}</table>`, "text/html");
    for (const line of [...rows.querySelectorAll("tr")].reverse()) {
      const old = $(line.id), box = line.querySelector("input"), had = old?.contains(document.activeElement) ? document.activeElement.tagName : null;
      if (old) { box.checked = old.querySelector("input").checked; old.replaceWith(line); }
      else list.prepend(line);
      if (had) line.querySelector(had.toLowerCase())?.focus();
    }
    if (list.rows.length) $("none")?.remove();
    picked();
  } catch (fault) { $("live-state").textContent = fault.message; }
  busy = false;
  if (again) { again = false; show(); }
}
function listen() {
  source = new EventSource("/events");
  source.onmessage = () => { $("live-state").textContent = ""; show(); };
  source.addEventListener("fault", (event) => { $("live-state").textContent = JSON.parse(event.data); });
  source.addEventListener("other", () => location.reload());
  source.addEventListener("full", (event) => { full = true; $("live-state").textContent = JSON.parse(event.data); });
  source.onerror = () => { if (!full) $("live-state").textContent = "helmbench view has ended"; full = false; };
}
const seen = () => { source?.close(); source = null; if (!document.hidden) listen(); };
list.addEventListener("change", picked);
addEventListener("visibilitychange", seen);
picked();
seen();
document.documentElement.dataset.ready = performance.now().toFixed(1);
})();
