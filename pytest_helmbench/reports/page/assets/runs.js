"use strict";
// The list of runs, read anew when something has changed; those that are ticked open together, two are compared.
(() => {
const $ = (id) => document.getElementById(id), ticked = () => [...document.querySelectorAll("#runs input:checked")];
let last = "";
function picked() {
  const found = ticked().length;
  $("compare").disabled = found !== 2;
  $("open").disabled = !found || found > 20;
}
const asked = async (path) => {
  const reply = await fetch(path), text = await reply.text();
  if (!reply.ok) throw new Error(text);
  return text;
};
async function look() {
  if (!document.hidden) try {
    const state = await asked("/state");
    if (state !== last) {
      const page = new DOMParser().parseFromString(await asked("/"), "text/html"), at = document.activeElement?.value;
      for (const box of ticked()) page.querySelector(`#runs input[value="${box.value}"]`)?.setAttribute("checked", "");
      $("list").replaceWith(page.getElementById("list"));
      if (at) document.querySelector(`#runs input[value="${at}"]`)?.focus();
      picked();
    }
    last = state;
    $("live-state").textContent = "";
  } catch (fault) { $("live-state").textContent = fault instanceof TypeError ? "helmbench view has ended" : fault.message; }
  setTimeout(look, document.body.dataset.refresh);
}
addEventListener("change", picked);
const numbers = (between) => ticked().map((box) => +box.value).sort((a, b) => a - b).join(between);
$("compare").onclick = () => { location.href = `/c/${numbers("..")}`; };
$("open").onclick = () => { location.href = `/r/${numbers(",")}`; };
picked();
look();
document.documentElement.dataset.ready = performance.now().toFixed(1);
})();
