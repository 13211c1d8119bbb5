// What is asked: data/tasks.json, checked when the pack is loaded: a slip in it is found before any model is asked.

import { readFile } from "node:fs/promises";

import { z } from "zod";

const Task = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("convert"), value: z.string(), unit: z.string() }),
  z.object({ kind: z.literal("order"), values: z.array(z.string()).min(2) }),
  z.object({ kind: z.literal("median"), values: z.array(z.string()).min(1), unit: z.string() }),
]);

const Scenarios = z.array(
  z.object({
    id: z.string(),
    title: z.string(),
    category: z.enum(["units", "readings"]),
    question: z.string(),
    task: Task,
  }),
);

export const CATEGORIES = [
  { id: "units", label: "Converts units" },
  { id: "readings", label: "Orders readings" },
];

export const SCENARIOS = Scenarios.parse(
  JSON.parse(await readFile(new URL("../../data/tasks.json", import.meta.url), "utf8")),
);
