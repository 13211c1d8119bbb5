"use strict";
// What a page does that a server keeps up to date: counts as they come, the rest when it is asked for.
const helmbenchLive = () => {
  const $ = (id) => document.getElementById(id), here = location.pathname;
  const asked = async (path, values = {}) => {
    const reply = await fetch(`${path}?${new URLSearchParams(values)}`);
    if (!reply.ok) throw new Error((await reply.text()).split("\n")[0]);
    return reply.json();
  };
  let page, version, known, latest = null, busy = false, stuck = false, source = null, ended = false, full = false;
  const last = {};
  const number = (count) => count.toLocaleString("en");

  // Cells
  const packed = (values) => {
    if (values.every((one) => one === values[0])) return { s: values[0] ?? null };
    if (!values.some((one) => typeof one === "string")) return { v: values };
    const places = new Map(), i = values.map((one) => { if (!places.has(one)) places.set(one, places.size); return places.get(one); });
    return { d: [...places.keys()], i };
  };
  // New rows take the places that the server names; the others keep their order around them.
  function merge(run, news) {
    const fresh = new page.Run({}, { n: news.places.length, c: news.c }), key = (one, i) => `${one.get("rep", i)} ${one.code(i)}`;
    const changed = new Set(news.places.map((_, i) => key(fresh, i))), order = Array(news.n).fill(null);
    news.places.forEach((place, i) => { order[place] = [fresh, i]; });
    let place = 0;
    for (let i = 0; i < run.n; i++) {
      if (changed.has(key(run, i))) continue;
      while (place < news.n && order[place]) place++;
      order[place++] = [run, i];
    }
    if (order.length !== news.n || order.includes(null)) return location.reload();
    const cells = {};
    for (const name of new Set([...Object.keys(run.c), ...Object.keys(fresh.c)])) cells[name] = packed(order.map(([one, i]) => one.get(name, i)));
    Object.assign(run, { n: news.n, c: cells });
  }

  // Parts above the table
  const stops = (box) => [...box.querySelectorAll("a, button, summary, [tabindex]")];
  function replaced(id, html) {
    const old = $(id), made = new DOMParser().parseFromString(html, "text/html").getElementById(id);
    const folds = [...old.querySelectorAll("details")].map((one) => one.open), at = stops(old).indexOf(document.activeElement);
    made.querySelectorAll("details").forEach((one, i) => { one.open = folds[i] ?? false; });
    old.replaceWith(made);
    if (at >= 0) stops(made)[at]?.focus({ preventScroll: true });
  }
  async function show(follows) {
    if (busy) return;
    busy = true;
    bar();
    try {
      const news = await asked(`${here}/news`, { since: version, ...(follows ? { follows: 1 } : {}) });
      if (news.reload) return location.reload();
      await page.grown(() => {
        for (const run of page.runs) for (const one of [run, run.base]) if (one && news.cells[one.name]) merge(one, news.cells[one.name]);
      });
      for (const [id, html] of Object.entries(news.parts)) replaced(id, html);
      [version, known] = [news.version, news.known];
      document.documentElement.dataset.version = version;
    } catch (fault) {
      stuck = true; // until the server tells something new
      $("live-state").textContent = ended ? "helmbench view has ended" : fault.message;
    } finally {
      busy = false;
      bar();
    }
  }

  // The bar
  const differing = () => Object.entries(latest ?? {}).filter(([id, run]) => run.stamp !== known[id]?.[1]);
  function bar() {
    const found = differing(), press = $("live-show");
    const fresh = found.reduce((sum, [id, run]) => sum + Math.max(0, run.done - (known[id]?.[0] ?? 0)), 0);
    press.hidden = !busy && !found.length;
    press.disabled = busy;
    press.textContent = busy ? "reading…" : fresh ? `${number(fresh)} new result${fresh > 1 ? "s" : ""}: show` : "results have changed: show";
    press.classList.toggle("floats", scrollY > 300);
    if (!busy && !stuck && found.length && $("live-follow").checked) show(true);
  }
  function told(runs) {
    [latest, stuck] = [runs, false];
    const all = Object.entries(runs), name = (id) => all.length > 1 ? `run ${id}: ` : "";
    $("live-counts").textContent = all.map(([id, run]) => `${name(id)}${number(run.done)} of ${number(run.planned)} · ${number(run.passed)} passed · ${number(run.failed)} failed · ${number(run.error)} errors${run.skipped ? ` · ${number(run.skipped)} skipped` : ""}`).join(" — ");
    const state = all.map(([id, run]) => name(id) + run.status).join(", ");
    if ($("live-state").textContent !== state) $("live-state").textContent = state;
    bar();
  }
  function listen() {
    source = new EventSource(`/events?${new URLSearchParams({ runs: Object.keys(known).join(",") })}`);
    source.onmessage = (event) => { ended = false; told(JSON.parse(event.data).runs); };
    source.addEventListener("fault", (event) => { $("live-state").textContent = JSON.parse(event.data); });
    source.addEventListener("other", () => location.reload());
    source.addEventListener("full", (event) => { full = true; $("live-state").textContent = JSON.parse(event.data); });
    source.onerror = () => { if (!full) { ended = true; $("live-state").textContent = "helmbench view has ended"; } full = false; };
  }
  return {
    about: async (run, i) => {
      const asks = { run: run.run, code: run.code(i), rep: run.get("rep", i) }, key = `${version} ${JSON.stringify(asks)}`;
      if (last.key !== key) Object.assign(last, { key, found: asked("/case", asks) });  // the drawer asks twice
      const found = await last.found;
      return [found.d, found.t ?? null];
    },
    search: async (run, low) => {
      const hits = new Set((await asked("/search", { run: run.run, text: low })).hits.map(([code, rep]) => `${rep} ${code}`)), found = new Set();
      for (let i = 0; i < run.n; i++) if (hits.has(`${run.get("rep", i)} ${run.code(i)}`)) found.add(i);
      return found;
    },
    start: (given) => {
      page = given;
      ({ version, known } = page.meta.live);
      document.documentElement.dataset.version = version;
      $("live-show").onclick = () => show(false);
      $("live-follow").onchange = bar;
      addEventListener("scroll", () => $("live-show").classList.toggle("floats", scrollY > 300), { passive: true });
      // A browser has six connections for all its tabs: those that nobody sees need none.
      const seen = () => { source?.close(); source = null; if (!document.hidden) listen(); };
      addEventListener("visibilitychange", seen);
      seen();
    },
  };
};
