"use strict";
// The table of all cases and its drawer. Nothing is fetched.
(() => {
const $ = (id) => document.getElementById(id);
const el = (tag, text, name, role) => { const made = document.createElement(tag); if (text != null) made.textContent = text; if (name) made.className = name; if (role) made.role = role; return made; };
const put = (made, ...inside) => { made.append(...inside); return made; };
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
const BLOCK = 256, MOST_PLAIN = 2000, MOST_PAIRS = 4e6, HIDDEN = "(text of the reply)";
const WORST = "-points_lost", FEW = 6;
const narrow = matchMedia("(max-width:640px)"), height = () => !narrow.matches ? 28 : shown.some((one) => one.name === "message") ? 78 : 56;
let meta, runs = [], total = 0, view = [], at = -1, sort = "", whole = false, opened = null, back = null;

// A run's cells. A case is a row of the table: `cell` says where a run has it (-1: nowhere), `row` the other way.
class Run {
  constructor(meta, data) { Object.assign(this, meta, { n: data.n, c: data.c }); }
  get(name, i) { const c = this.c[name]; return c === undefined ? null : "s" in c ? c.s : c.d ? c.d[c.i[i]] : c.v[i]; }
  code(i) { return this.get("code", i) ?? [this.get("scenario", i), this.get("condition", i), this.get("context", i), this.get("perturbation", i)].filter(Boolean).join("-"); }
  labels(name) { const c = this.c[name]; return c === undefined ? [null] : "s" in c ? [c.s] : c.d; }
  place(name) { const c = this.c[name]; return c && c.i ? (i) => c.i[i] : () => 0; }
}
const of = (k) => { const run = runs.find((one) => one.cell[k] >= 0); return [run, run.cell[k]]; };
const within = (k) => runs.filter((run) => run.cell[k] >= 0).map((run) => [run, run.cell[k]]);
function gather() {
  const rows = new Map();
  for (const run of runs) {
    run.row = Int32Array.from({ length: run.n }, (_, i) => {
      if (runs.length === 1) return i;
      const key = [run.benchmark, run.code(i), run.get("rep", i)].join("\n");
      if (!rows.has(key)) rows.set(key, rows.size);
      return rows.get(key);
    });
  }
  total = runs.length === 1 ? runs[0].n : rows.size;
  for (const run of runs) {
    run.cell = new Int32Array(total).fill(-1);
    run.row.forEach((k, i) => { run.cell[k] = i; });
  }
}
const differing = [];
// Whether two runs come to different verdicts.
function differs(k) {
  const found = new Set();
  for (const [run, i] of within(k)) found.add(run.get("outcome", i)).add(run.get("before", i));
  return found.has("passed") && found.has("failed");
}

// Filter
const NUMBERS = ["severity", "difficulty", "ms", "usd", "tokens_in", "tokens_out", "rep", "score", "points_lost", "neutral"];
const LABELS = ["outcome", "reason", "behaviour", "scenario", "condition", "context", "perturbation", "rule", "parse", "expected", "observed", "flip", "before", "flaky"];
const SAME = { user_context: "context", "user-context": "context", sev: "severity", cost: "usd", tokens: "tokens_out" };
const keyed = (names, key) => names.find((one) => one === (SAME[key] ?? key));
const same = (a, b) => a === b;
const COMPARE = { ">": (a, b) => a > b, "<": (a, b) => a < b, ">=": (a, b) => a >= b, "<=": (a, b) => a <= b, "=": same, ":": same };
const BARE = { outcome: ["passed", "failed", "error", "skipped"], flip: ["worse", "better", "same"], flaky: ["flaky"] };
// The conditions of a filter, each with its alternatives; one without a key has that of the one before it.
const words = (text) => [...text.matchAll(/(-?)((?:"[^"]*"|\S)+)/g)].map(([written, not, rest]) => {
  let key, sign;
  const either = rest.match(/(?:"[^"]*"|[^,])+/g) ?? [];
  return { written, not: not === "-", either: either.map((one) => {
    if (one.startsWith('"')) [key, sign] = [];
    const found = one.match(/^(\w[\w-]*?)(>=|<=|>|<|=|:)(.*)$/s);
    if (found) [, key, sign] = found;
    return { key, sign, value: (found ? found[3] : one).replace(/^"(.*)"$/s, "$1"), quoted: one.startsWith('"') };
  }) };
});
function fault({ key, sign, value }) {
  if (!key) return "";
  if (keyed(NUMBERS, key) || key === "run") return value === "" || isNaN(value) ? `${key} takes a number` : "";
  if (keyed(LABELS, key) || ["model", "benchmark", "pillar", "group", "code", "text"].includes(key)) return ":=".includes(sign) ? "" : `${key} takes =, not ${sign}`;
  const word = `${key}${sign}${value}`.toLowerCase(), names = ["code", "group", ...LABELS];
  const known = runs.some((run) => names.some((name) => run.labels(name).some((one) => one?.toLowerCase().includes(word))));
  return known ? "" : `unknown key ${key}`;
}
const byLabel = (run, name, fits) => { const good = run.labels(name).map((one) => fits(one ?? "")), where = run.place(name); return (i) => good[where(i)]; };
const any = (tests) => (i) => tests.some((test) => test(i));
function test(run, { key, sign, value, quoted }) {
  const low = value.toLowerCase();
  const number = keyed(NUMBERS, key), label = keyed(LABELS, key);
  if (number) return (i) => { const cell = run.get(number, i); return cell !== null && COMPARE[sign](cell, +value); };
  if (key === "run") return () => run.run === +value;
  if (key === "model" || key === "benchmark") { const own = run[key].toLowerCase().includes(low); return () => own; }
  if (key === "pillar") return byLabel(run, "behaviour", (one) => one.split("-")[0] === value);
  if (key === "group") return byLabel(run, "group", (one) => one.split("\n").includes(value));
  if (key === "code") return (i) => run.code(i) === value;
  if (key === "text") return inTexts(run, low, "whole");
  if (label) return byLabel(run, label, label === "expected" || label === "observed" ? (one) => one.toLowerCase().includes(low) : (one) => one.toLowerCase() === low);
  const word = key ? `${key}${sign}${value}`.toLowerCase() : low;
  if (!quoted) {
    const state = low === "errors" ? "error" : word, bare = Object.keys(BARE).find((name) => BARE[name].includes(state));
    if (word === "differ") return (i) => differing[run.row[i]] ??= differs(run.row[i]);
    if (bare) return byLabel(run, bare, (one) => one === state);
    // A code, or a part of one, is not the start of another: P1-B2 is not P1-B20.
    const has = (other, i) => `-${other.code(i).toLowerCase()}-`.includes(`-${word}-`);
    if (/^[a-z]+\d+[a-z]?(-[a-z]+\d+[a-z]?)*$/.test(word) && runs.some((other) => other.row.some((_, i) => has(other, i)))) return any([(i) => has(run, i), ...["expected", "observed", "reason"].map((name) => byLabel(run, name, (one) => one.toLowerCase() === word))]);
  }
  const holds = (one) => one.toLowerCase().includes(word);
  return any([(i) => holds(run.code(i)), ...["outcome", "reason", "rule", "group", "expected", "observed"].map((name) => byLabel(run, name, holds)), inTexts(run, word)]);
}
// Words that wait for the texts of a run: their cases are found block by block.
let late = [], asking = 0;
function inTexts(run, word, whole = "") {
  const hits = new Set();
  if (meta.texts !== "none") late.push({ run, word, whole, hits });
  return (i) => hits.has(i);
}
// The texts of a block in lower case, which are kept: message, reply and turns, or the whole of them.
const lowered = new Map();
const heard = ({ a, r, v = [] }) => [a, r, ...v.map(([, text]) => text)].join("\n");
function texts(run, b, whole) {
  const id = `t${run.name}-${b}`, kept = id + whole;
  if (!lowered.has(kept)) lowered.set(kept, (blocks.get(id) ?? ($(id) ? unpacked($(id).textContent) : Promise.resolve({}))).then((all) =>
    Object.entries(all ?? {}).map(([i, one]) => [b * BLOCK + +i, (whole ? JSON.stringify(one) : heard(one)).toLowerCase()])));
  return lowered.get(kept);
}
async function searched(mine, say) {
  const all = late.flatMap((one) => Array.from({ length: Math.ceil(one.run.n / BLOCK) }, (_, b) => [b, one])).sort(([a], [b]) => a - b);
  let told = performance.now();
  for (const [place, [b, { run, word, whole, hits }]] of all.entries()) {
    for (const [i, text] of await texts(run, b, whole)) if (text.includes(word)) hits.add(i);
    if (mine !== asking) return;
    if (performance.now() - told < 150) continue;
    say(`, ${Math.round(100 * place / all.length)} % of the texts searched`);
    told = performance.now();
  }
  say("");
}
// A row fits where one of its runs fits all conditions; a condition that says nothing is red and left out.
async function filter() {
  const asked = words($("q").value), mine = ++asking;
  late = [];
  for (const one of asked) one.fault = one.either.map(fault).find(Boolean);
  const good = asked.filter((one) => !one.fault), bad = asked.length - good.length;
  const tests = runs.map((run) => good.map((one) => {
    const fits = any(one.either.map((each) => test(run, each)));
    return one.not ? (i) => !fits(i) : fits;
  }));
  const say = (more) => {
    const found = new Uint8Array(total);
    runs.forEach((run, r) => { for (let i = 0; i < run.n; i++) if (tests[r].every((fits) => fits(i))) found[run.row[i]] = 1; });
    view = [];
    found.forEach((fits, k) => { if (fits) view.push(k); });
    sorted(view);
    at = opened === null ? -1 : view.indexOf(opened);
    $("count").textContent = `${view.length.toLocaleString("en")} of ${total.toLocaleString("en")}${bad ? `, ${bad} not understood` : ""}${more}`;
    $("none").hidden = more || view.length > 0;
    $("grid").ariaRowCount = view.length + 1;
    $("plain").disabled = view.length > MOST_PLAIN && !whole;
    if (view.length > MOST_PLAIN) whole = false;
    draw();
  };
  chips(asked);
  $("q").ariaInvalid = bad > 0;
  $("scroll").scrollTop = 0;
  say(late.length ? ", searching texts" : "");
  if (late.length) await searched(mine, say);
}
function ask(text) {
  $("q").value = text;
  keep();
  return filter();
}
function chips(asked) {
  $("chips").replaceChildren(...asked.map((one) => {
    const text = one.fault ? `${one.written}: ${one.fault}` : one.written;
    const press = button(`${text} ×`, () => { ask(asked.filter((other) => other !== one).map((other) => other.written).join(" ")); $("q").focus(); });
    press.className = one.fault ? "chip bad" : "chip";
    press.ariaLabel = `Remove ${text}`;
    return press;
  }));
}
function sorted(found) {
  const by = sort || WORST, column = COLUMNS.find((one) => one.name === by.replace(/^-/, ""));
  if (!column) return found;
  const sign = by.startsWith("-") ? -1 : 1, keys = new Map(found.map((k) => [k, column.of(k)]));
  const compare = (x, y) => x === null ? (y === null ? 0 : 1) : y === null ? -1 : sign * (typeof x === "string" ? x.localeCompare(y, "en", { numeric: true }) : x - y);
  return found.sort((a, b) => compare(keys.get(a), keys.get(b)) || a - b);
}

// Table
const cell = (name) => (k) => { const [run, i] = of(k); return run.get(name, i); };
const columnOf = (name, more) => ({ name, of: cell(name), ...more });
const MARKS = { passed: "✓", failed: "✗", error: "!", skipped: "–" };
// The cell of a matrix: its outcome, and what came instead of the right thing.
const verdictOf = (alike) => (k) => {
  const run = alike.find((one) => one.cell[k] >= 0);
  if (!run) return null;
  const get = (name) => run.get(name, run.cell[k]), outcome = get("outcome");
  const more = outcome === "passed" ? null : outcome === "failed" ? get("observed") : get("reason");
  return more === null ? outcome : `${outcome}: ${more}`;
};
// Runs of one model over different benchmarks share a column.
function alikes() {
  const found = [];
  for (const run of runs) {
    const place = found.find((alike) => alike.every((one) => one.model === run.model && one.benchmark !== run.benchmark));
    if (place) place.push(run);
    else found.push([run]);
  }
  return found;
}
// What a case lost on average over the runs of its benchmark.
const lostBy = (k) => {
  const found = within(k), like = runs.filter((run) => run.benchmark === found[0][0].benchmark);
  return +(found.reduce((sum, [run, i]) => sum + (run.get("points_lost", i) ?? 0), 0) / like.length).toPrecision(4);
};
let COLUMNS = [];
function everyColumn() {
  const many = runs.length > 1, compared = !many && runs[0].base, costs = runs.some(({ c }) => (c.usd.v ?? [c.usd.s]).some((usd) => usd > 0));
  const title = (k) => { const [run, i] = of(k), rep = run.get("rep", i); return run.code(i) + (rep > 1 ? ` (${rep})` : ""); };
  return [
    { name: "case", kind: "wide", of: title },
    runs.some((one) => one.c.message) && { name: "message", kind: "message", of: (k) => within(k).map(([run, i]) => run.get("message", i)).find(Boolean) ?? null },
    !many && columnOf("outcome", { coloured: true }),
    compared && columnOf("before", { off: narrow.matches }),
    compared && columnOf("flip", { coloured: true }),
    { name: "points_lost", kind: "n", of: lostBy, digits: 2 },
    columnOf("severity", { kind: "n", off: narrow.matches || alikes().length >= FEW || runs.every((run) => run.get("severity", 0) === 0 && run.c.severity.s === 0) }),
    columnOf("difficulty", { kind: "n", off: true }),
    columnOf("expected", { kind: "text", off: narrow.matches && many }),
    ...many ? alikes().map((alike) => ({ name: `run ${alike.map((run) => run.run).join(", ")}`, kind: "run", coloured: true, model: alike[0].model, of: verdictOf(alike) })) : [],
    !many && { name: "observed", kind: "text", of: (k) => cell("observed")(k) ?? cell("reason")(k) },
    !many && columnOf("reason", { off: true }),
    columnOf("rule", { off: true }),
    ...many ? [] : ["score", "ms", "tokens_in", "tokens_out", "usd"].map((name) => columnOf(name, { kind: "n", off: narrow.matches || (name === "usd" ? !costs : name !== "ms") })),
  ].filter(Boolean);
}
let shown = [];
const address = (k) => {
  const rest = new URLSearchParams(), [run, i] = of(k);
  if (run.get("rep", i) > 1) rest.set("rep", run.get("rep", i));
  if (runs.length > 1) rest.set("run", run.run);
  return `#/case/${encodeURIComponent(run.code(i))}${rest.size ? `?${rest}` : ""}`;
};
// Of many runs a cell has the mark alone, and its title the rest.
const dense = () => shown.filter((one) => one.model).length >= FEW;
const said = (column, value) => value === null ? "" : column.digits ? value.toFixed(column.digits) : !column.model ? value : value.replace(dense() ? /^(\w+).*/s : /^(\w+):?/, (_, outcome) => MARKS[outcome]);
// Columns are as wide as what is in them: numbers at least so, and texts share what is left.
function widths() {
  const step = Math.ceil(total / 300), most = { message: 70, text: 28, run: 22 };
  return shown.map((column) => {
    if (column.model && dense()) return "minmax(24px,3fr)";
    let wide = Math.ceil(0.9 * column.name.length) + 1;
    for (let k = 0; k < total; k += step) wide = Math.max(wide, Math.min(most[column.kind] ?? 40, String(said(column, column.of(k))).length));
    return column.kind === "n" ? `${wide + 1}ch` : `minmax(${Math.min(wide, column.kind === "wide" ? 18 : 13)}ch,${wide}fr)`;
  }).join(" ");
}
function row(k, place) {
  const made = el("div", null, k === opened || place === at ? "r sel" : "r", "row");
  made.ariaRowIndex = place + 2;
  made.ariaSelected = place === at;
  made.dataset.at = place;
  for (const column of shown) {
    const value = column.of(k), box = el("span", null, column.kind, "gridcell");
    if (column.name === "case") { const link = el("a", value); link.href = address(k); link.tabIndex = -1; box.append(link); }
    else box.textContent = said(column, value);
    if (column.coloured && value !== null) box.classList.add(/^\w*/.exec(value)[0] || "none");
    if (value !== null && (column.model || String(value).length > 12)) box.title = column.model ? `${column.model}: ${value}` : value;
    if (column.model && value !== null) box.ariaLabel = box.title;
    made.append(box);
  }
  return made;
}
function draw() {
  const scroll = $("scroll");
  $("grid").classList.toggle("all", whole);
  $("pad").style.height = `${view.length * height()}px`;
  const from = whole ? 0 : Math.max(0, Math.floor(scroll.scrollTop / height()) - 8);
  const to = whole ? view.length : Math.min(view.length, from + Math.ceil(scroll.clientHeight / height()) + 16);
  const made = document.createDocumentFragment();
  for (let place = from; place < to; place++) made.append(row(view[place], place));
  $("rows").replaceChildren(made);
  $("rows").style.transform = `translateY(${from * height()}px)`;
}
function head() {
  shown = COLUMNS.filter((column) => !column.off);
  const grid = $("grid"), by = sort || WORST;
  grid.classList.toggle("dense", dense());
  grid.style.setProperty("--cols", widths());
  grid.style.setProperty("--row", `${height()}px`);
  const made = el("div", null, "r", "row");
  for (const column of shown) {
    const box = el("span", null, column.kind, "columnheader"), press = el("button", column.name.replace("_", " "));
    if (column.model) { press[dense() ? "append" : "prepend"](el("span", column.model.split("/").pop(), "long")); press.title = column.model; }
    const ways = [column.name, `-${column.name}`];
    if (column.kind === "n") ways.reverse();
    box.ariaSort = !ways.includes(by) ? "none" : by[0] === "-" ? "descending" : "ascending";
    if (ways.includes(by)) press.append(by[0] === "-" ? " ↓" : " ↑");
    press.type = "button";
    press.onclick = () => { sort = [...ways, ""][ways.indexOf(by) + 1]; head(); keep(); filter(); };
    made.append(put(box, press));
  }
  $("thead").replaceChildren(made);
}
// Cells of runs change: the case that is open stays open, and the rows stay where they are.
function columns() {
  for (const column of COLUMNS) {
    const box = el("input");
    box.type = "checkbox";
    box.checked = !column.off;
    box.onchange = () => { column.off = !box.checked; head(); draw(); };
    $("columns").append(put(el("label"), box, ` ${column.name.replace("_", " ")}`));
  }
}
function move(by, fits) {
  let place = at + by;
  if (fits) while (place < view.length && !fits(view[place])) place += by;
  if (place < 0 || place >= view.length) return;
  at = place;
  const scroll = $("scroll"), y = at * height();
  scroll.scrollTop = Math.max(y + height() - scroll.clientHeight, Math.min(y, scroll.scrollTop));
  if (opened !== null) return void (history.replaceState(null, "", address(view[at])), open(view[at]));
  draw();
  $("rows").querySelector(".sel")?.scrollIntoView({ block: "nearest" });
}
function enter() {
  if (at < 0) move(1);
  if (at >= 0) location.hash = address(view[at]);
}
function csv() {
  const quoted = (value) => { const text = value === null ? "" : typeof value === "number" ? String(value) : /^[=+\-@\t\r]/.test(value) ? `'${value}` : value; return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text; };
  const lines = [shown.map((one) => one.name), ...view.map((k) => shown.map((one) => quoted(one.of(k))))];
  const link = el("a");
  link.href = URL.createObjectURL(new Blob([lines.map((line) => line.join(",")).join("\n") + "\n"], { type: "text/csv" }));
  link.download = "cases.csv";
  link.click();
  URL.revokeObjectURL(link.href);
}

// Drawer
const headOf = (text, scope) => Object.assign(el("th", text), { scope });
const table = (heads, rows) => put(el("table", null, "plain"),
  put(el("thead"), put(el("tr"), ...heads.map((name) => headOf(name, "col")))),
  put(el("tbody"), ...rows.map((cells) => put(el("tr"), ...cells.map((one) => el("td", one))))));
const pieces = (text) => text.match(/[\p{L}\p{N}_]+|[^\p{L}\p{N}_]+/gu) ?? [];
const isWord = (one) => /^[\p{L}\p{N}_]/u.test(one);
// The observed text, with the words marked that make it wrong; all of it where none does.
function marked(expected, observed, passed) {
  if (passed || observed === HIDDEN || expected === "<redacted>") return [observed];
  const [, not, ban, words] = expected.match(/^(not: )?(contains none of )?(.*)/s), known = new Set(pieces(words)), found = pieces(observed);
  const differ = found.map((one) => known.has(one) === (!not !== !ban) && isWord(one)), none = !differ.includes(true);
  return found.map((one, j) => none || differ[j] ? el("mark", one) : one);
}
// A text with the words marked that are not in the longest sequence which it shares with another, the same from
// both sides; of long texts all between the ends that they share.
function difference(text, other) {
  const numbers = new Map(), number = (one) => numbers.get(one) ?? numbers.set(one, numbers.size).size - 1;
  const found = pieces(text), places = [...found.keys()].filter((j) => isWord(found[j])), a = places.map((j) => number(found[j])), b = pieces(other).filter(isWord).map(number);
  let from = 0, to = a.length, end = b.length;
  while (from < Math.min(to, end) && a[from] === b[from]) from++;
  while (from < Math.min(to, end) && a[to - 1] === b[end - 1]) { to--; end--; }
  const wide = end - from + 1, size = (to - from + 1) * wide, differ = new Set(places.slice(from, to));
  if (size <= MOST_PAIRS) {
    // How long a sequence the rests of both from a pair of places on share.
    const shared = new Uint16Array(size);
    for (let i = to - 1; i >= from; i--) for (let j = end - 1, at = (i - from + 1) * wide - 2; j >= from; j--, at--) shared[at] = a[i] === b[j] ? shared[at + wide + 1] + 1 : Math.max(shared[at + wide], shared[at + 1]);
    for (let i = from, j = from, at = 0; i < to && j < end;) {
      if (a[i] === b[j]) { differ.delete(places[i++]); j++; at += wide + 1; }
      else if (shared[at + wide] + (text < other) > shared[at + 1]) { i++; at += wide; }
      else { j++; at++; }
    }
  }
  return found.map((one, j) => differ.has(j) ? el("mark", one) : one);
}
const plain = (value) => typeof value === "string" ? value : JSON.stringify(value, null, 1);
const pre = (text) => { const made = el("pre", plain(text)); made.tabIndex = 0; return made; };
const fold = (name, ...inside) => put(el("details"), el("summary", name), ...inside);
const wide = (inside) => { const made = put(el("div", null, "scroll"), inside); made.tabIndex = 0; return made; };
const blockOf = (kind, run, i) => block(`${kind}${run.name}-${Math.floor(i / BLOCK)}`);
async function about(run, i) {
  const more = (await blockOf("d", run, i))?.[i % BLOCK] ?? {}, get = (name) => run.get(name, i);
  more.e ??= get("rule") === null ? [] : [["", get("rule"), get("outcome") === "passed", null, get("parse"), get("expected"), get("observed")]];
  return [more, (await blockOf("t", run, i))?.[i % BLOCK] ?? null];
}

const titled = (rows = [], tag = "h4") => rows.flatMap(([name, text]) => [el(tag, name), pre(text)]);

// Replies are shown as they are, as Markdown, or by their difference from another reply.
const SHAPES = ["Text", "Markdown", "Difference"];
let shape = SHAPES[0];
const inline = (text) => [...text.matchAll(/`([^`]+)`|\*\*([^*]+)\*\*|\*([^*\s][^*]*)\*|\[([^\][]*)\]\(([^()\s]*)\)|[^`*[]+|./gs)].map(([all, code, bold, soft, link, to]) =>
  code ? el("code", code) : bold ? el("strong", bold) : soft ? el("em", soft) : link ? `${link} (${to})` : all);
// Markdown as elements that hold text alone: links lead nowhere, images are not loaded.
function markdown(text) {
  const made = el("div", null, "md");
  let box, fenced;
  const into = (tag, ...inside) => { if (box?.localName !== tag) made.append(box = el(tag)); box.append(...inside); };
  for (const line of text.split("\n")) {
    const [, blank, mark = "", said] = line.match(/^(\s*)(#{1,6}(?= )|[-*+](?= )|\d{1,9}[.)](?= )|>|\||```)?\s*(.*)$/s);
    if (mark === "```") { fenced = !fenced; box = null; }
    else if (fenced) into("pre", line, "\n");
    else if (!line.trim()) box = null;
    else if (mark === "|") { if (/[^|\s:-]/.test(said)) into("table", put(el("tr"), ...said.replace(/\|\s*$/, "").split("|").map((one) => put(el("td"), ...inline(one.trim()))))); }
    else if (mark === ">") into("blockquote", ...inline(said), "\n");
    else if (mark[0] === "#") { box = null; into("p", el("strong", said)); box = null; }
    else if (mark) {
      const item = put(el("li"), ...inline(said));
      item.style.marginLeft = `${Math.min(blank.length, 9) / 2}em`;
      if (mark[1]) item.value = parseInt(mark);
      into(mark[1] ? "ol" : "ul", item);
    } else into("p", ...inline(line), "\n");
  }
  return made;
}
const shaped = (text, other) => shape === SHAPES[1] ? [markdown(text)] : shape === SHAPES[2] && typeof other === "string" ? difference(text, other) : [text];
// A text before its JSON, the fields of that, and the text behind; of any other text itself alone.
function split(text) {
  const from = text.indexOf("{"), to = text.lastIndexOf("}") + 1;
  try { return [text.slice(0, from), new Map(Object.entries(JSON.parse(from < 0 ? "" : text.slice(from, to)))), text.slice(to)]; } catch { return [text]; }
}
// JSON field by field, those marked that were observed; any other text as it is.
function laid(text, verdicts, other) {
  const [before, fields, after] = split(text), theirs = other ? split(other) : [], made = el("dl", null, "json"), bare = (one) => one?.replace(/\s/g, "");
  const around = (part, place) => part.trim() ? [put(pre(""), ...shaped(part.trim(), fields && theirs[1] ? theirs[place] : other))] : [];
  if (!fields) return text ? around(text) : [pre("(empty)")];
  for (const [name, value] of fields) {
    const judged = verdicts.find((one) => one[6] === value || bare(one[6]) === bare(JSON.stringify(value)));
    made.append(el("dt", judged ? `${name} (judged)` : name), put(el("dd"), ...judged ? [el("mark", plain(value), judged[2] ? "right" : "")] : shaped(plain(value), theirs[1] ? plain(theirs[1].get(name) ?? "") : other)));
  }
  return [...around(before, 0), made, ...around(after, 2)];
}
const judgedBy = ([name, rule, passed]) => el("strong", `${passed ? "✓" : "✗"} ${rule} ${name}`, passed ? "passed" : "failed");
// A rule with what it expected and what was observed, unless that was `seen`; the parts of a combined rule follow it.
function check(one, seen) {
  const [, , passed, credit, parse, expected, observed, inside, depth] = one, made = put(el("li"), judgedBy(one)), both = passed && expected === observed;
  const value = (title, ...inside) => made.append(put(el("p", null, "value"), el("span", `${title} `, "muted"), ...inside));
  if (depth) made.style.marginLeft = `${depth}em`;
  made.append(credit > 0 && credit < 1 ? `, credit ${credit}` : "", parse === "recovered" ? ", JSON recovered from other text" : "", inside ? `, ${inside}` : "");
  if (expected != null) value(both ? "expected and observed" : "expected", expected);
  const known = seen.some((one) => one === observed || /…$/.test(observed) && one.startsWith(observed.slice(0, -1)));
  if (observed != null && !both && !(known && (passed || !/^not: |^contains none/.test(expected)))) value("observed", ...marked(expected ?? "", observed, passed));
  seen.push(observed ?? "");
  return made;
}
const turnOf = (title) => title.match(/^turn (\d+)\b/)?.[1], isInput = ([title]) => /(: user|scripted\))$/.test(title);
// The turns of conversations in rows: one that all share, or for each what it has until the next input.
function* turns(talks) {
  for (const at = talks.map(() => 0);;) {
    const left = talks.map((talk, j) => talk.slice(at[j])), [first, ...more] = left.filter((one) => one.length);
    if (!first) return;
    if (!/reply$/.test(first[0][0]) && more.every(([one]) => `${one}` === `${first[0]}`)) { at.forEach((_, j) => at[j]++); yield first[0]; }
    else yield left.map((one, j) => { const to = one.findIndex((each, n) => n && isInput(each)), made = one.slice(0, to < 0 ? one.length : to); at[j] += made.length; return made; });
  }
}
// Rows of cells, one for each run: how it came out, what was said, and what else is known.
function sides(found, data, first, copies) {
  const body = el("div", null, "sides"), talks = data.map(([, texts]) => [...texts?.v ?? [], ...texts?.r == null ? [] : [[texts.v ? `turn ${turnOf(texts.v.at(-1)[0])}: reply` : "reply", texts.r]]]), replies = data.map(([, texts]) => texts?.r), row = (make) => body.append(put(el("div", null, "cells"), ...found.map((_, j) => { const cell = put(el("div"), ...make(j, ...data[j])); cell.style.order = j; return cell; })));
  const said = ([title, text], j, speaker) => {
    const turn = turnOf(title), own = /(assistant|reply)$/.test(title), last = /reply$/.test(title);
    if (!own && !isInput([title])) return fold(title, pre(text));
    const mine = own ? data[j][0].e.filter(([name]) => !turn || (turnOf(name) ?? (last ? turn : "")) === turn) : [];
    const made = put(el("div", null, own ? "bubble own" : "bubble"), el("p", own && found[1] ? `${speaker} · ${title}` : title, "hint"), ...own ? laid(text, mine, last && replies.find((one, n) => n !== j && one)) : [pre(text)]);
    if (turn && mine[0]) {
      made.append(put(el("p"), "judged: ", ...mine.filter((one) => !one[8]).map(judgedBy)));
      made.classList.add(mine.every((one) => one[2] || one[8]) ? "held" : "broke");
    }
    return made;
  };
  if (!talks.some((one) => one[1])) body.classList.add("flat");
  row((j, more, texts) => {
    const [run, i] = found[j], get = (name) => run.get(name, i), seen = [`${texts?.r}`.replace(/\s+/g, " ").trim()];
    return [put(el("p", `${run.model}, run ${run.run}: `), el("strong", get("outcome"), get("outcome")), get("reason") ? ` (${get("reason")})` : ""),
      el("p", ["score", "ms", "tokens_in", "tokens_out", "usd"].filter((name) => get(name) != null).map((name) => `${name.replace("_", " ")} ${get(name)}`).join(" · "), "hint"),
      put(el("ul", null, "judged"), ...more.e.map((one) => check(one, seen)))];
  });
  for (const made of turns(talks)) {
    if (Array.isArray(made[0])) row((j) => made[j].map((one) => said(one, j, found[j][0].model.split("/").pop())));
    else body.append(said(made, talks.findIndex((one) => one[0]), "all"));
  }
  row((j, more, texts) => {
    const lay = (name, heads, rows) => rows ? [fold(name, wide(table(heads, rows)))] : [];
    return [...titled(texts?.w, "h3"),
      !texts && meta.texts === "failures" ? el("p", "The texts of this case are not in this file: it was written with --with-text=failures.", "hint") : "",
      more.w ? table(["said by the pack", ""], Object.entries(more.w)) : "",
      texts?.m?.length && JSON.stringify(texts.m) !== first ? fold("Prompt of this run", ...titled(texts.m)) : "",
      ...lay("Calls", ["call", "attempt", "status", "answer", "ms", "in", "out", "USD", "by"], more.c), ...lay("Steps", ["step", "s", "what", "figures"], more.s), copies[j]];
  });
  return body;
}
const shell = (text) => `'${text.replaceAll("'", "'\\''")}'`;
function copies(run, i, [more, texts]) {
  const code = run.code(i);
  const cells = Object.fromEntries(Object.keys(run.c).map((name) => [name, run.get(name, i)]));
  const found = [
    ["link", () => location.href.split("#")[0] + address(opened)],
    ["as JSON", () => JSON.stringify({ ...cells, code, model: run.model, run: run.run, ...more, ...texts }, null, 1)],
    ["helmbench show …", () => `helmbench show ${run.run} ${shell(code)}`],
  ];
  // The bracket ends the code, else PT1 would mean PT10 too; what `-k` cannot read gets no command.
  if (/^[\w:+\-.[\]\\/]+$/.test(code)) found.push(["pytest …", () => `pytest benchmark -k ${shell(`${code}[`)} --helmbench-model=${shell(run.model)}`]);
  if (texts?.m?.length) found.push(["as curl", () => `curl "$BASE_URL/chat/completions" -H "Authorization: Bearer $OPENAI_API_KEY" -H 'Content-Type: application/json' -d ${shell(JSON.stringify({ messages: texts.m.map(([role, content]) => ({ role, content })), ...texts.q }))}`]);
  return found;
}
async function copied(text, press) {
  await navigator.clipboard.writeText(text);
  const name = press.textContent;
  press.textContent = "copied";
  setTimeout(() => { press.textContent = name; }, 900);
}
const button = (name, act) => { const press = el("button", name); press.type = "button"; press.onclick = () => act(press); return press; };
async function open(k) {
  const drawer = $("drawer"), buttons = el("p", null, "buttons"), first = opened === null, again = opened === k, [one, at0] = of(k);
  if (first) back = document.activeElement;
  opened = k;
  at = view.indexOf(k);
  // A run that is compared stands behind its baseline.
  const found = within(k).flatMap(([run, i]) => { const step = run.get("at", i); return run.base && step !== null ? [[run.base, i + step], [run, i]] : [[run, i]]; });
  const data = await Promise.all(found.map(([run, i]) => about(run, i))), spoken = data.findIndex(([, texts]) => texts?.m?.length);
  const prompt = spoken < 0 ? null : data[spoken][1], top = [];
  if (prompt) {
    const message = prompt.a ?? prompt.m.at(-1)[1], said = pre(message);
    said.className = "said";
    top.push(el("h3", prompt.v ? "Conversation" : "Message"));
    if (prompt.m.length > 1 || message !== prompt.m[0][1]) top.push(fold("Task: the whole prompt", ...titled(prompt.m)));
    top.push(said);
  } else if (meta.texts === "none") top.push(el("p", "No prompt and no reply is in this file.", "hint"));
  const copy = found.map(([run, i], j) => {
    const press = put(el("p", null, "buttons"), ...copies(run, i, data[j]).map(([name, text]) => button(`Copy ${name}`, (own) => copied(text(), own))));
    return found.length > 1 ? fold(`Copy run ${run.run}`, press) : press;
  });
  const body = sides(found, data, JSON.stringify(prompt?.m), copy), leave = button("Close (Esc)", close);
  buttons.append(leave, button("← k", () => move(-1)), button("j →", () => move(1)), button("n: next failure", () => move(1, failed)));
  const replies = data.filter(([, texts]) => texts?.r != null).length;
  if (replies) buttons.append(el("span", "Replies:", "muted"), ...SHAPES.slice(0, replies > 1 ? 3 : 2).map((name) => Object.assign(button(name, () => { shape = name; open(k); }), { ariaPressed: shape === name })));
  body.tabIndex = 0;
  const title = el("h2", COLUMNS[0].of(k));
  title.id = "drawer-head";
  const get = (name) => one.get(name, at0), neutral = get("neutral") ? " · neutral, ignored by scores" : "";
  if (get("scenario")) top.unshift(el("p", `severity ${get("severity")} · difficulty ${get("difficulty")}${neutral}`, "hint"));
  if (opened !== k) return;
  drawer.style.width = `min(${Math.max(760, 320 * found.length + 40)}px, 100vw)`;
  drawer.replaceChildren(buttons, title, ...top, body);
  drawer.hidden = false;
  if (first) leave.focus();
  if (again) buttons.querySelector("[aria-pressed=true]")?.focus();
  else {
    drawer.scrollTop = 0;
    (body.querySelector(".broke") ?? body.querySelector(".held"))?.scrollIntoView({ block: "nearest" });
  }
  draw();
}
const failed = (k) => within(k).some(([run, i]) => run.get("outcome", i) === "failed");
function hide() {
  if (opened === null) return false;
  opened = null;
  $("drawer").hidden = true;
  draw();
  return true;
}
function close() {
  if (!hide()) return;
  keep();
  (back?.isConnected && back !== document.body ? back : $("scroll")).focus({ preventScroll: true });
}

// With several runs, each is parsed when its fold is opened.
const unfold = (fold) => { const kept = fold.querySelector(":scope > noscript"); if (kept) { kept.remove(); fold.insertAdjacentHTML("beforeend", kept.textContent); } };
const folds = document.querySelectorAll(".run > details");

// Addresses
function show(found) {
  for (let fold = found?.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  found?.scrollIntoView();
}
function keep() {
  const asked = new URLSearchParams();
  if ($("q").value.trim()) asked.set("q", $("q").value.trim());
  if (sort) asked.set("sort", sort);
  history.replaceState(null, "", asked.size ? `#/cases?${asked}` : "#/cases");
}
async function route() {
  $("lost")?.remove();
  const hash = location.hash, decoded = (text) => { try { return decodeURIComponent(text); } catch { return text; } };
  const cut = `${hash}?`.indexOf("?"), path = hash.slice(0, cut), rest = new URLSearchParams(hash.slice(cut));
  if (path.startsWith("#/case/")) {
    const code = decoded(path.slice(7)), rep = +(rest.get("rep") ?? 1), asked = rest.get("run");
    for (const run of runs) {
      if (asked !== null && run.run !== +asked) continue;
      for (let i = 0; i < run.n; i++) if (run.code(i) === code && run.get("rep", i) === rep) {
        if (!view.includes(run.row[i])) { $("q").value = ""; await filter(); }
        return open(run.row[i]);
      }
    }
    hide();
    const box = el("p", `This file has no case ${code}${rep > 1 ? ` (repetition ${rep})` : ""}${asked === null ? "" : ` of run ${asked}`}. `, "lost bad", "alert"), all = el("a", "All cases");
    all.href = "#/cases";
    box.id = "lost";
    document.querySelector("main").prepend(put(box, all));
    scrollTo(0, 0);
  } else if (path === "#/cases") {
    const quoted = (text) => /[\s,]/.test(text) ? `"${text}"` : text;
    sort = rest.get("sort") ?? "";
    if (runs.length < 2) rest.delete("run");
    $("q").value = [...rest].filter(([name]) => name !== "sort").map(([name, value]) => name === "q" ? value : `${name}=${quoted(value)}`).join(" ");
    hide();
    head();
    await filter();
    $("cases").scrollIntoView();
  } else {
    hide();
    if (path.startsWith("#/plot/")) {
      if (folds[0]) unfold(folds[0]);
      show(document.querySelector(`[id^="plot-${CSS.escape(path.slice(7))}"]`));
    } else if (/^#[\w-]+$/.test(path)) show($(path.slice(1)));
  }
}
function key(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
  if (typing) return void (event.key === "Escape" && $("scroll").focus());
  const press = { "/": () => { close(); $("q").focus(); }, j: () => move(1), k: () => move(-1), n: () => move(1, failed), Escape: close };
  if (!event.target.closest("a,button,summary")) press.Enter = enter;
  if (document.activeElement === $("scroll")) Object.assign(press, { ArrowDown: press.j, ArrowUp: press.k });
  if (!press[event.key]) return;
  event.preventDefault();
  ready.then(press[event.key]);
}
addEventListener("keydown", key);
const ready = (async () => {
  meta = await block("meta");
  for (const one of meta.runs) {
    const run = new Run(one, await block(`c${one.name}`));
    if (one.base) run.base = new Run(one.base, await block(`c${one.base.name}`));
    runs.push(run);
  }
  gather();
  COLUMNS = everyColumn();
  $("table").hidden = false;
  columns();
  head();
  for (const fold of folds) fold.ontoggle = () => unfold(fold);
  let timer;
  const asked = () => ask($("q").value);
  $("q").oninput = () => { clearTimeout(timer); timer = setTimeout(asked, 80); };
  $("filter").onsubmit = (event) => { event.preventDefault(); asked(); };
  for (const press of document.querySelectorAll("[data-q]")) press.onclick = () => ask(press.dataset.q);
  $("scroll").onscroll = () => { if (!whole) draw(); };
  $("rows").onclick = (event) => { const line = event.target.closest(".r"); if (line && !event.target.closest("a")) location.hash = address(view[+line.dataset.at]); };
  $("csv").onclick = csv;
  $("plain").onclick = () => { whole = !whole && view.length <= MOST_PLAIN; draw(); };
  narrow.onchange = () => { head(); draw(); };
  addEventListener("hashchange", route);
  await filter();
  await route();
  document.documentElement.dataset.ready = performance.now().toFixed(1);
})().catch((fault) => {
  $("cases").append(el("p", `The table of all cases cannot be shown (${fault}). It needs a browser of 2023 or later, and the whole file.`));
});
})();
