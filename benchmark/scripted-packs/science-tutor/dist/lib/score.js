"use strict";

const { CATEGORIES, SCENARIOS } = require("./scenarios.js");

function mean(numbers) {
  return numbers.length === 0 ? 0 : numbers.reduce((sum, number) => sum + number, 0) / numbers.length;
}

/** Out of 100: the mean of each category, weighted. A category without a result weighs nothing. */
function scoreOf(results) {
  const categoryOf = new Map(SCENARIOS.map((scenario) => [scenario.id, scenario.category]));
  const judged = CATEGORIES.map((category) => ({
    ...category,
    scores: results.filter((result) => categoryOf.get(result.scenarioId) === category.id).map((result) => result.score),
  })).filter((category) => category.scores.length > 0);
  const categories = judged.map(({ id, label, weight, scores }) => ({ id, label, weight, score: mean(scores) }));
  const weights = categories.reduce((sum, category) => sum + category.weight, 0);
  const weighted = categories.reduce((sum, category) => sum + category.score * category.weight, 0);
  const totalScore = weights === 0 ? 0 : weighted / weights;
  return { totalScore, categories, summary: `${Math.round(totalScore)} of 100` };
}

module.exports = { scoreOf };
