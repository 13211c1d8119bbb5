"use strict";

// What a host of Bench Packs calls: list the scenarios, run one, score a model.

const { createHostHelpers, defineBenchPack, loadBenchPackManifest, requireScoredResults } = require("@benchlocal/sdk");

const { Conversation } = require("../lib/conversation.js");
const { SCENARIOS } = require("../lib/scenarios.js");
const { scoreOf } = require("../lib/score.js");

const STATUSES = ["fail", "partial", "pass"];

function metaOf(scenario) {
  return {
    id: scenario.id,
    title: scenario.title,
    category: scenario.category,
    description: scenario.description,
    promptText: scenario.turns[0],
    detailCards: [
      { title: "What this tests", content: scenario.description },
      { title: "Success case", content: scenario.success },
      { title: "Failure case", content: scenario.failure },
    ],
  };
}

async function talk(scenario, conversation, progress) {
  const replies = [];
  for (const [index, turn] of scenario.turns.entries()) {
    await progress(`turn ${index + 1} of ${scenario.turns.length}`);
    replies.push(await conversation.say(turn));
  }
  return replies;
}

async function runScenario(helpers, input, emit) {
  const scenario = helpers.getScenarioById(SCENARIOS, input.scenario.id);
  const provider = helpers.getRequiredProvider(input.model.provider, { enabledOnly: true });
  const conversation = new Conversation(
    {
      baseUrl: provider.baseUrl,
      apiKey: helpers.getSecretValue(input.model.provider),
      model: input.model.model,
    },
    helpers.resolveGenerationRequest(input.generation),
    input.abortSignal,
  );
  const startedAt = new Date();
  const replies = await talk(scenario, conversation, (message) =>
    emit({ type: "model_progress", modelId: input.model.id, scenarioId: scenario.id, message }),
  );
  const completedAt = new Date();
  const { points, summary } = scenario.judge(replies);
  return {
    scenarioId: scenario.id,
    status: STATUSES[points],
    points,
    score: points * 50,
    summary,
    rawLog: conversation.transcript(),
    output: { finalAnswer: replies.at(-1), assistantMessages: replies },
    timings: {
      startedAt: startedAt.toISOString(),
      completedAt: completedAt.toISOString(),
      durationMs: completedAt - startedAt,
    },
  };
}

module.exports = defineBenchPack({
  manifest: loadBenchPackManifest(__dirname),

  async listScenarios() {
    return SCENARIOS.map(metaOf);
  },

  async prepare(context) {
    const helpers = createHostHelpers(context);
    return {
      runScenario: (input, emit) => runScenario(helpers, input, emit),
      async dispose() {},
    };
  },

  scoreModelResults(results) {
    return scoreOf(requireScoredResults(results));
  },
});
