// What is asked: data/tasks.json, checked when the pack is loaded: a slip in it is found before any model is asked.

import { readFile } from "node:fs/promises";

import { list, object, oneOf, text } from "./check.js";

export const CATEGORIES = [
  { id: "units", label: "Converts units" },
  { id: "readings", label: "Orders readings" },
];

const TASKS = {
  convert: { value: text, unit: text },
  order: { values: list(text, 2) },
  median: { values: list(text, 1), unit: text },
};

function task(value, where) {
  const fields = TASKS[object({ kind: oneOf(Object.keys(TASKS)) })(value, where).kind];
  object(fields)(value, where);
  return value;
}

const scenarios = list(
  object({
    id: text,
    title: text,
    category: oneOf(CATEGORIES.map(({ id }) => id)),
    question: text,
    task,
  }),
);

const file = new URL("../../data/tasks.json", import.meta.url);

export const SCENARIOS = scenarios(JSON.parse(await readFile(file, "utf8")), "tasks.json");
