// A page over a file that is being written shows counts as they come, and the rest when the reader asks.
(() => {
const $ = (id) => document.getElementById(id), seen = JSON.parse($("live").dataset.seen), show = $("live-show");
const number = (count) => count.toLocaleString("en"), ids = Object.keys(seen.runs), name = (id) => ids.length > 1 ? `run ${id}: ` : "";
const say = (text) => { if ($("live-state").textContent !== text) $("live-state").textContent = text; };
function tell(runs) {
  const all = Object.entries(runs), fresh = all.reduce((sum, [id, run]) => sum + Math.max(0, run.done - seen.runs[id].done), 0);
  $("live-counts").textContent = all.map(([id, run]) => `${name(id)}${number(run.done)} of ${number(run.planned)} · ${number(run.passed)} passed · ${number(run.failed)} failed · ${number(run.error)} errors${run.skipped ? ` · ${number(run.skipped)} skipped` : ""}`).join(" — ");
  say(all.map(([id, run]) => name(id) + run.status).join(", "));
  show.hidden = all.every(([id, run]) => run.stamp === seen.runs[id].stamp);
  show.textContent = fresh ? `${number(fresh)} new result${fresh > 1 ? "s" : ""}: show` : "results have changed: show";
}
async function look() {
  if (!document.hidden) try {
    const reply = await fetch(`/state?runs=${ids}`), text = await reply.text();
    if (!reply.ok) say(text.trim());
    else if (JSON.parse(text).file !== seen.file) location.reload();
    else tell(JSON.parse(text).runs);
  } catch { say("helmbench view has ended"); }
  setTimeout(look, seen.refresh_ms);
}
// The address keeps filter, order and the open case.
show.onclick = () => location.reload();
addEventListener("scroll", () => show.classList.toggle("floats", scrollY > 300), { passive: true });
tell(seen.runs);
look();
})();
