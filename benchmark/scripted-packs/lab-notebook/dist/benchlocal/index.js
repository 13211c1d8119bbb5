// What a host of Bench Packs calls: list the scenarios, run one, score a model.

import { fileURLToPath } from "node:url";

import { createHostHelpers, defineBenchPack, loadBenchPackManifest, requireScoredResults } from "@benchlocal/sdk";

import { answerIn, ask } from "../lib/model.js";
import { CATEGORIES, SCENARIOS } from "../lib/tasks.js";
import { check } from "../lib/verifier.js";

const STATUS_OF = { right: "pass", close: "partial", wrong: "fail" };
const POINTS_OF = { right: 1, close: 0.5, wrong: 0 };

const labels = new Map(CATEGORIES.map(({ id, label }) => [id, label]));
const categoryOf = new Map(SCENARIOS.map(({ id, category }) => [id, category]));

function metaOf({ id, title, category, question }) {
  return {
    id,
    title,
    category: labels.get(category),
    promptText: question,
    detailCards: [
      { title: "What this tests", content: labels.get(category) },
      { title: "Success case", content: "The answer equals the one that the verifier works out." },
      { title: "Failure case", content: "It does not, or there is no line with ANSWER." },
    ],
  };
}

async function verdictOn(reply, scenario, verifier, signal) {
  const answer = answerIn(reply);
  if (answer === null) {
    return { verdict: "wrong", expected: "", reason: "no line with ANSWER" };
  }
  return check(verifier.url, scenario.task, answer, signal);
}

async function runScenario(helpers, verifier, input, emit) {
  const scenario = helpers.getScenarioById(SCENARIOS, input.scenario.id);
  const progress = (message) =>
    emit({ type: "model_progress", modelId: input.model.id, scenarioId: scenario.id, message });

  await progress("asking");
  const endpoint = helpers.getRequiredInferenceEndpoint(input.model.id);
  const generation = helpers.resolveGenerationRequest(input.generation);
  const reply = await ask(endpoint, generation, scenario.question, input.abortSignal);

  await progress("checking");
  const found = await verdictOn(reply, scenario, verifier, input.abortSignal);
  return {
    scenarioId: scenario.id,
    status: STATUS_OF[found.verdict],
    score: POINTS_OF[found.verdict],
    summary: found.reason,
    note: found.expected ? `worked out: ${found.expected}` : undefined,
    rawLog: `question: ${scenario.question}\n\nreply: ${reply}`,
    output: { finalAnswer: reply },
    verifier: { status: found.verdict, summary: found.reason, details: { expected: found.expected } },
  };
}

export default defineBenchPack({
  manifest: loadBenchPackManifest(fileURLToPath(new URL(".", import.meta.url))),

  async listScenarios() {
    return SCENARIOS.map(metaOf);
  },

  async prepare(context) {
    const helpers = createHostHelpers(context);
    const verifier = helpers.getRequiredVerifier("exact", { runningOnly: true });
    return {
      runScenario: (input, emit) => runScenario(helpers, verifier, input, emit),
      async dispose() {},
    };
  },

  scoreModelResults(results) {
    const points = (of) => of.reduce((sum, result) => sum + result.score, 0);
    const scored = requireScoredResults(results);
    return {
      totalScore: points(scored),
      unit: "points",
      categories: CATEGORIES.map(({ id, label }) => ({
        id,
        label,
        score: points(scored.filter((result) => categoryOf.get(result.scenarioId) === id)),
      })),
      summary: `${points(scored)} of ${scored.length} points`,
    };
  },
});
