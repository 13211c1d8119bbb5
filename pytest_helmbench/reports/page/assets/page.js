"use strict";
// The table of all cases and its drawer. Data stand in the page as gzip; nothing is fetched.
(() => {
const $ = (id) => document.getElementById(id);
const el = (tag, text, name) => { const made = document.createElement(tag); if (text != null) made.textContent = text; if (name) made.className = name; return made; };
const blocks = new Map();
const block = (id) => {
  if (!blocks.has(id)) {
    const at = $(id);
    blocks.set(id, at ? unpacked(at.textContent) : Promise.resolve(null));
  }
  return blocks.get(id);
};
const unpacked = (text) => {
  const bytes = Uint8Array.fromBase64 ? Uint8Array.fromBase64(text) : Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
};
const BLOCK = 256, HEIGHT = 28, MOST_PLAIN = 2000;
let meta, runs = [], total = 0, view = [], at = -1, sort = "", whole = false, opened = null, back = null;

// A run's cells. A case is a number on the page; `of` says which run it is of, and where there.
class Run {
  constructor(told, data) { Object.assign(this, told, { n: data.n, c: data.c }); }
  get(name, i) { const c = this.c[name]; return c === undefined ? null : "s" in c ? c.s : c.d ? c.d[c.i[i]] : c.v[i]; }
  code(i) { return this.get("code", i) ?? [this.get("scenario", i), this.get("condition", i), this.get("context", i), this.get("perturbation", i)].filter(Boolean).join("-"); }
  labels(name) { const c = this.c[name]; return c === undefined ? [null] : "s" in c ? [c.s] : c.d; }
  place(name) { const c = this.c[name]; return c && c.i ? (i) => c.i[i] : () => 0; }
}
const of = (k) => { for (const run of runs) { if (k < run.from + run.n) return [run, k - run.from]; } return null; };

// Filter
const NUMBERS = { severity: "severity", sev: "severity", difficulty: "difficulty", ms: "ms", usd: "usd", cost: "usd", tokens: "tokens_out", tokens_in: "tokens_in", tokens_out: "tokens_out", rep: "rep", score: "score", neutral: "neutral" };
const LABELS = ["outcome", "reason", "behaviour", "scenario", "condition", "context", "perturbation", "rule", "parse", "expected", "observed", "flip", "before", "flaky"];
const SAME = { user_context: "context", "user-context": "context" };
const COMPARE = { ">": (a, b) => a > b, "<": (a, b) => a < b, ">=": (a, b) => a >= b, "<=": (a, b) => a <= b, "=": (a, b) => a === b, ":": (a, b) => a === b };
const words = (text) => [...text.matchAll(/(-?)(?:(\w[\w-]*?)(>=|<=|>|<|=|:))?("[^"]*"|\S+)/g)].map(([, not, key, sign, value]) => ({ not: not === "-", key, sign, value: value.replace(/^"(.*)"$/, "$1") }));
const byLabel = (run, name, fits) => { const good = run.labels(name).map((one) => fits(one ?? "")), where = run.place(name); return (i) => good[where(i)]; };
const any = (tests) => (i) => tests.some((test) => test(i));
async function test(run, { key, sign, value }) {
  const low = value.toLowerCase();
  const number = key && NUMBERS[key];
  if (number && value !== "" && !isNaN(value)) return (i) => { const cell = run.get(number, i); return cell !== null && COMPARE[sign](cell, +value); };
  if (key === "run") { const own = run.run === +value; return () => own; }
  if (key === "model" || key === "benchmark") { const own = run[key].toLowerCase().includes(low); return () => own; }
  if (key === "pillar") return byLabel(run, "behaviour", (one) => one.split("-")[0] === value);
  if (key === "group") return byLabel(run, "group", (one) => one.split("\n").includes(value));
  if (key === "code") return (i) => run.code(i) === value;
  if (key === "text") { const hits = await search(run, low); return (i) => hits.has(i); }
  const label = SAME[key] ?? key;
  if (label && LABELS.includes(label)) return byLabel(run, label, label === "expected" || label === "observed" ? (one) => one.toLowerCase().includes(low) : (one) => one.toLowerCase() === low);
  const word = key ? `${key}${sign}${value}`.toLowerCase() : low;
  if (["passed", "failed", "error", "skipped"].includes(word)) return byLabel(run, "outcome", (one) => one === word);
  if (word === "errors") return byLabel(run, "outcome", (one) => one === "error");
  if (["worse", "better", "same"].includes(word)) return byLabel(run, "flip", (one) => one === word);
  if (word === "flaky") return byLabel(run, "flaky", (one) => one === word);
  // A code, or a part of one, is not the start of another: P1-B2 is not P1-B20.
  if (/^[a-z]+\d+[a-z]?(-[a-z]+\d+[a-z]?)*$/.test(word)) {
    const parts = (text) => `-${text.toLowerCase()}-`.includes(`-${word}-`);
    return any([(i) => parts(run.code(i)), ...["expected", "observed", "reason"].map((name) => byLabel(run, name, (one) => one.toLowerCase() === word))]);
  }
  const within = (one) => one.toLowerCase().includes(word);
  return any([(i) => within(run.code(i)), ...["outcome", "reason", "rule", "group", "expected", "observed"].map((name) => byLabel(run, name, within))]);
}
async function search(run, low) {
  const hits = new Set();
  for (let b = 0; b * BLOCK < run.n; b++) {
    const texts = await block(`t${run.name}-${b}`);
    for (const [i, found] of Object.entries(texts ?? {})) if (JSON.stringify(found).toLowerCase().includes(low)) hits.add(b * BLOCK + +i);
  }
  return hits;
}
async function filter() {
  const asked = words($("q").value), found = [];
  for (const run of runs) {
    const tests = await Promise.all(asked.map(async (one) => { const fits = await test(run, one); return one.not ? (i) => !fits(i) : fits; }));
    for (let i = 0; i < run.n; i++) if (tests.every((fits) => fits(i))) found.push(run.from + i);
  }
  view = sorted(found);
  at = opened === null ? -1 : view.indexOf(opened);
  $("count").textContent = `${view.length.toLocaleString("en")} of ${total.toLocaleString("en")}`;
  $("grid").setAttribute("aria-rowcount", view.length + 1);
  $("plain").disabled = view.length > MOST_PLAIN && !whole;
  if (view.length > MOST_PLAIN) whole = false;
  $("scroll").scrollTop = 0;
  draw();
}
function sorted(found) {
  const name = sort.replace(/^-/, ""), column = COLUMNS.find((one) => one.name === name);
  if (!column) return found;
  const sign = sort.startsWith("-") ? -1 : 1, keys = new Map(found.map((k) => [k, column.of(...of(k))]));
  const compare = (x, y) => x === null ? (y === null ? 0 : 1) : y === null ? -1 : sign * (typeof x === "string" ? x.localeCompare(y, "en", { numeric: true }) : x - y);
  return found.sort((a, b) => compare(keys.get(a), keys.get(b)) || a - b);
}

// Table
const cell = (name) => (run, i) => run.get(name, i);
const COLUMNS = [
  { name: "case", kind: "wide", of: (run, i) => run.code(i) + (run.get("rep", i) > 1 ? ` (${run.get("rep", i)})` : "") },
  { name: "run", kind: "n", of: (run) => run.run, when: () => runs.length > 1 },
  { name: "model", kind: "text", of: (run) => run.model, when: () => runs.length > 1 },
  { name: "outcome", of: cell("outcome"), coloured: true },
  { name: "before", of: cell("before"), when: () => runs.some((run) => run.base) },
  { name: "flip", of: cell("flip"), coloured: true, when: () => runs.some((run) => run.base) },
  { name: "severity", kind: "n", of: cell("severity") },
  { name: "difficulty", kind: "n", of: cell("difficulty"), off: true },
  { name: "expected", kind: "text", of: cell("expected") },
  { name: "observed", kind: "text", of: (run, i) => run.get("observed", i) ?? run.get("reason", i) },
  { name: "reason", of: cell("reason"), off: true },
  { name: "rule", of: cell("rule"), off: true },
  { name: "score", kind: "n", of: cell("score"), off: true },
  { name: "ms", kind: "n", of: cell("ms") },
  { name: "tokens_in", kind: "n", of: cell("tokens_in"), off: true },
  { name: "tokens_out", kind: "n", of: cell("tokens_out"), off: true },
  { name: "usd", kind: "n", of: cell("usd") },
];
let shown = [];
const address = (run, i) => {
  const rest = new URLSearchParams();
  if (run.get("rep", i) > 1) rest.set("rep", run.get("rep", i));
  if (runs.length > 1) rest.set("run", run.run);
  return `#/case/${encodeURIComponent(run.code(i))}${rest.size ? `?${rest}` : ""}`;
};
function row(k, place) {
  const [run, i] = of(k), made = el("div", null, k === opened || place === at ? "r sel" : "r");
  made.setAttribute("role", "row");
  made.setAttribute("aria-rowindex", place + 2);
  made.setAttribute("aria-selected", place === at);
  made.dataset.at = place;
  for (const column of shown) {
    const value = column.of(run, i), box = el("span", null, column.kind ?? "");
    box.setAttribute("role", "gridcell");
    if (column.name === "case") { const link = el("a", value); link.href = address(run, i); link.tabIndex = -1; box.append(link); }
    else { box.textContent = value ?? ""; if (column.coloured && /^\w+$/.test(value ?? "")) box.classList.add(value); }
    if (value !== null && String(value).length > 12) box.title = value;
    made.append(box);
  }
  return made;
}
function draw() {
  const scroll = $("scroll");
  $("grid").classList.toggle("all", whole);
  $("pad").style.height = `${view.length * HEIGHT}px`;
  const from = whole ? 0 : Math.max(0, Math.floor(scroll.scrollTop / HEIGHT) - 8);
  const to = whole ? view.length : Math.min(view.length, from + Math.ceil(scroll.clientHeight / HEIGHT) + 16);
  const made = document.createDocumentFragment();
  for (let place = from; place < to; place++) made.append(row(view[place], place));
  $("rows").replaceChildren(made);
  $("rows").style.transform = `translateY(${from * HEIGHT}px)`;
}
function head() {
  shown = COLUMNS.filter((column) => !column.off && (!column.when || column.when()));
  const made = el("div", null, "r");
  made.setAttribute("role", "row");
  for (const column of shown) {
    const box = el("span", null, column.kind ?? ""), press = el("button", column.name.replace("_", " "));
    box.setAttribute("role", "columnheader");
    box.setAttribute("aria-sort", sort === column.name ? "ascending" : sort === `-${column.name}` ? "descending" : "none");
    if (sort.replace(/^-/, "") === column.name) press.append(sort.startsWith("-") ? " ↓" : " ↑");
    press.type = "button";
    press.onclick = () => { sort = sort === column.name ? `-${column.name}` : sort === `-${column.name}` ? "" : column.name; head(); told(); filter(); };
    box.append(press);
    made.append(box);
  }
  $("thead").replaceChildren(made);
}
// Cells of runs change: the case that is open stays open, and the rows stay where they are.
function columns() {
  for (const column of COLUMNS) {
    if (column.when && !column.when()) continue;
    const label = el("label"), box = el("input");
    box.type = "checkbox";
    box.checked = !column.off;
    box.onchange = () => { column.off = !box.checked; head(); draw(); };
    label.append(box, ` ${column.name.replace("_", " ")}`);
    $("columns").append(label);
  }
}
function move(by, fits) {
  let place = at + by;
  if (fits) while (place < view.length && !fits(...of(view[place]))) place += by;
  if (place < 0 || place >= view.length) return;
  at = place;
  const scroll = $("scroll"), y = at * HEIGHT;
  if (y < scroll.scrollTop) scroll.scrollTop = y;
  if (y + HEIGHT > scroll.scrollTop + scroll.clientHeight) scroll.scrollTop = y + HEIGHT - scroll.clientHeight;
  if (opened !== null) history.replaceState(null, "", address(...of(view[at]))), open(view[at]);
  else draw();
}
function csv() {
  const quoted = (value) => { const text = value === null ? "" : typeof value === "number" ? String(value) : /^[=+\-@\t\r]/.test(value) ? `'${value}` : value; return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text; };
  const lines = [shown.map((one) => one.name), ...view.map((k) => shown.map((one) => quoted(one.of(...of(k)))))];
  const link = el("a");
  link.href = URL.createObjectURL(new Blob([lines.map((line) => line.join(",")).join("\n") + "\n"], { type: "text/csv" }));
  link.download = "cases.csv";
  link.click();
  URL.revokeObjectURL(link.href);
}

// Drawer
const table = (heads, rows) => {
  const made = el("table", null, "plain"), top = el("tr");
  for (const name of heads) { const box = el("th", name); box.scope = "col"; top.append(box); }
  const first = el("thead"), body = el("tbody");
  first.append(top);
  for (const cells of rows) { const line = el("tr"); for (const one of cells) line.append(one instanceof Node ? one : el("td", one ?? "")); body.append(line); }
  made.append(first, body);
  return made;
};
// The words of `second` that the longest common sequence with `first` leaves over are marked.
function marked(first, second) {
  const box = el("td", null, "value"), a = first.split(/\s+/), b = second.split(/\s+/);
  if (a.length * b.length > 40000) { box.textContent = second; return box; }
  const length = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--) for (let j = b.length - 1; j >= 0; j--) length[i][j] = a[i] === b[j] ? length[i + 1][j + 1] + 1 : Math.max(length[i + 1][j], length[i][j + 1]);
  for (let i = 0, j = 0; j < b.length;) {
    if (i < a.length && a[i] === b[j]) { box.append(b[j] + " "); i++; j++; }
    else if (i < a.length && length[i + 1][j] >= length[i][j + 1]) i++;
    else { box.append(el("mark", b[j]), " "); j++; }
  }
  return box;
}
const pre = (text) => { const made = el("pre", typeof text === "string" ? text : JSON.stringify(text, null, 1)); made.tabIndex = 0; return made; };
const about = async (run, i) => [(await block(`d${run.name}-${Math.floor(i / BLOCK)}`))?.[i % BLOCK] ?? {}, (await block(`t${run.name}-${Math.floor(i / BLOCK)}`))?.[i % BLOCK] ?? null];
async function side(run, i) {
  const [more, texts] = await about(run, i), box = el("div"), get = (name) => run.get(name, i);
  const verdict = el("p"), word = el("strong", get("outcome"), get("outcome"));
  verdict.append(`${run.model}, run ${run.run}: `, word, get("reason") ? ` (${get("reason")})` : "");
  const say = (name, value, unit = "") => value === null || value === undefined ? "" : ` · ${name} ${value}${unit}`;
  box.append(verdict, el("p", `${get("scenario") ? `severity ${get("severity")} · difficulty ${get("difficulty")}` : ""}${get("neutral") ? " · neutral, ignored by scores" : ""}${say("score", get("score"))}${say("time", get("ms"), " ms")}${say("tokens in", get("tokens_in"))}${say("out", get("tokens_out"))}${say("cost USD", get("usd") ?? "unknown")}`.replace(/^ · /, ""), "hint"));
  const verdicts = more.e ?? (get("rule") === null ? [] : [["", get("rule"), get("outcome") === "passed" ? 1 : 0, null, get("parse"), get("expected"), get("observed")]]);
  if (verdicts.length) box.append(el("h3", "Verdict"), table(["criterion", "verdict", "expected", "observed"], verdicts.map(([name, rule, passed, credit, parse, expected, observed, inside]) => [`${rule} ${name}`.trim() + (parse === "recovered" ? ", JSON recovered from other text" : "") + (inside ? ", could run beside its judge" : ""), (passed ? "passed" : "failed") + (credit === null || credit === 0 || credit === 1 ? "" : `, credit ${credit}`), el("td", expected, "value"), passed ? el("td", observed, "value") : marked(expected, observed)])));
  if (more.w) box.append(table(["said by the pack", ""], Object.entries(more.w)));
  if (more.c) box.append(el("h3", "Calls"), table(["call", "attempt", "status", "answer", "ms", "in", "out", "USD", "by"], more.c));
  if (more.s) box.append(el("h3", "Steps"), table(["step", "s", "what", "figures"], more.s));
  if (texts) {
    if (texts.m?.length) { box.append(el("h3", "Prompt")); for (const [role, text] of texts.m) box.append(el("p", role, "hint"), pre(text)); }
    if ("r" in texts) box.append(el("h3", "Reply"), pre(texts.r || "(empty)"));
    for (const [name, text] of texts.w ?? []) box.append(el("h3", name), pre(text));
  } else if (meta.texts === "none") box.append(el("p", "No prompt and no reply is in this file.", "hint"));
  return box;
}
const shell = (text) => `'${text.replaceAll("'", "'\\''")}'`;
async function copies(run, i) {
  const code = run.code(i), [more, texts] = await about(run, i);
  const cells = Object.fromEntries(Object.keys(run.c).map((name) => [name, run.get(name, i)]));
  const found = [
    ["link", () => location.href.split("#")[0] + address(run, i)],
    ["as JSON", () => JSON.stringify({ ...cells, code, model: run.model, run: run.run, ...more, ...texts }, null, 1)],
    ["helmbench show …", () => `helmbench show ${run.run} ${shell(code)}`],
  ];
  // The bracket ends the code, else PT1 would mean PT10 too; what `-k` cannot read gets no command.
  if (/^[\w:+\-.[\]\\/]+$/.test(code)) found.push(["pytest …", () => `pytest benchmark -k ${shell(`${code}[`)} --helmbench-model=${shell(run.model)}`]);
  if (texts?.m?.length) found.push(["as curl", () => `curl "$BASE_URL/chat/completions" -H "Authorization: Bearer $OPENAI_API_KEY" -H 'Content-Type: application/json' -d ${shell(JSON.stringify({ ...texts.q, messages: texts.m.map(([role, content]) => ({ role, content })) }))}`]);
  return found;
}
async function copied(text, press) {
  try { await navigator.clipboard.writeText(text); }
  catch { const box = el("textarea", text); document.body.append(box); box.select(); document.execCommand("copy"); box.remove(); }
  const name = press.textContent;
  press.textContent = "copied";
  setTimeout(() => { press.textContent = name; }, 900);
}
async function open(k) {
  const [run, i] = of(k), drawer = $("drawer"), buttons = el("p", null, "buttons");
  const first = opened === null;
  if (first) back = document.activeElement;
  opened = k;
  at = view.indexOf(k);
  const button = (name, act) => { const press = el("button", name); press.type = "button"; press.onclick = () => act(press); buttons.append(press); return press; };
  const leave = button("Close (Esc)", close);
  button("← k", () => move(-1));
  button("j →", () => move(1));
  button("n: next failure", () => move(1, failed));
  for (const [name, text] of await copies(run, i)) button(`Copy ${name}`, (press) => copied(text(), press));
  const title = el("h2", run.code(i) + (run.get("rep", i) > 1 ? ` (repetition ${run.get("rep", i)})` : ""));
  title.id = "drawer-head";
  const parts = [await side(run, i)], step = run.get("at", i);
  if (run.base && step !== null) parts.unshift(await side(run.base, i + step));
  const body = el("div", null, parts.length > 1 ? "sides" : "");
  body.append(...parts);
  if (opened !== k) return;
  drawer.replaceChildren(buttons, title, body);
  drawer.hidden = false;
  drawer.scrollTop = 0;
  if (first) leave.focus();
  draw();
}
const failed = (run, i) => run.get("outcome", i) === "failed";
function close() {
  if (opened === null) return;
  opened = null;
  $("drawer").hidden = true;
  told();
  (back?.isConnected && back !== document.body ? back : $("scroll")).focus({ preventScroll: true });
  draw();
}

// Addresses
function show(found) {
  for (let fold = found?.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  found?.scrollIntoView();
}
function told() {
  const asked = new URLSearchParams();
  if ($("q").value.trim()) asked.set("q", $("q").value.trim());
  if (sort) asked.set("sort", sort);
  history.replaceState(null, "", asked.size ? `#/cases?${asked}` : "#/cases");
}
async function route() {
  const hash = location.hash, decoded = (text) => { try { return decodeURIComponent(text); } catch { return text; } };
  const [path, rest] = [hash.split("?")[0], new URLSearchParams(hash.split("?").slice(1).join("?"))];
  if (path.startsWith("#/case/")) {
    const code = decoded(path.slice(7)), rep = +(rest.get("rep") ?? 1), asked = rest.get("run");
    for (const run of runs) {
      if (asked !== null && run.run !== +asked) continue;
      for (let i = 0; i < run.n; i++) if (run.code(i) === code && run.get("rep", i) === rep) {
        if (!view.includes(run.from + i)) { $("q").value = ""; await filter(); }
        return open(run.from + i);
      }
    }
    $("count").textContent = `no case ${code} in this file`;
  } else if (path === "#/cases") {
    const quoted = (text) => /\s/.test(text) ? `"${text}"` : text;
    sort = rest.get("sort") ?? "";
    if (runs.length < 2) rest.delete("run");
    $("q").value = [...rest].filter(([name]) => name !== "sort").map(([name, value]) => name === "q" ? value : `${name}=${quoted(value)}`).join(" ");
    if (opened !== null) { opened = null; $("drawer").hidden = true; }
    head();
    await filter();
    $("cases").scrollIntoView();
  } else {
    if (opened !== null) { opened = null; $("drawer").hidden = true; draw(); }
    if (path.startsWith("#/plot/")) show(document.querySelector(`[id^="plot-${CSS.escape(path.slice(7))}"]`));
    else if (/^#[\w-]+$/.test(path)) show($(path.slice(1)));
  }
}
function key(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
  if (typing && event.key === "Escape") return void $("scroll").focus();
  if (typing) return;
  const press = { "/": () => $("q").focus(), j: () => move(1), k: () => move(-1), n: () => move(1, failed), Escape: close };
  if (document.activeElement === $("scroll")) Object.assign(press, { ArrowDown: press.j, ArrowUp: press.k, Enter: () => { if (at >= 0) location.hash = address(...of(view[at])); } });
  if (!press[event.key]) return;
  event.preventDefault();
  press[event.key]();
}
(async () => {
  meta = await block("meta");
  for (const told of meta.runs) {
    const run = new Run(told, await block(`c${told.name}`));
    run.from = total;
    total += run.n;
    if (told.base) run.base = new Run(told.base, await block(`c${told.base.name}`));
    runs.push(run);
  }
  $("table").hidden = false;
  columns();
  head();
  let timer, busy = false;
  $("q").oninput = () => { clearTimeout(timer); timer = setTimeout(() => { told(); filter(); }, 80); };
  $("filter").onsubmit = (event) => { event.preventDefault(); told(); filter(); };
  for (const press of document.querySelectorAll("[data-q]")) press.onclick = () => { $("q").value = press.dataset.q; told(); filter(); };
  $("scroll").onscroll = () => { if (!busy) { busy = true; requestAnimationFrame(() => { busy = false; if (!whole) draw(); }); } };
  $("rows").onclick = (event) => { const line = event.target.closest(".r"); if (line && !event.target.closest("a")) location.hash = address(...of(view[+line.dataset.at])); };
  $("csv").onclick = csv;
  $("plain").onclick = () => { whole = !whole && view.length <= MOST_PLAIN; draw(); };
  addEventListener("keydown", key);
  addEventListener("hashchange", route);
  await filter();
  await route();
  document.documentElement.dataset.ready = performance.now().toFixed(1);
})().catch((fault) => {
  $("cases").append(el("p", `The table of all cases cannot be shown (${fault}). It needs a browser of 2023 or later, and the whole file.`));
});
})();
