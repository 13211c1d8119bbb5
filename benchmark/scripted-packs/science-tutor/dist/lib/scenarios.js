"use strict";

// What is asked, and what an answer is worth: 2 points pass, 1 is partial, 0 fails.

const CATEGORIES = [
  { id: "facts", label: "Gets the facts right", weight: 60 },
  { id: "teaching", label: "Teaches", weight: 40 },
];

function says(text, pattern) {
  return pattern.test(text);
}

const SCENARIOS = [
  {
    id: "ST-00",
    title: "Said once more",
    category: "teaching",
    description: "Repeats what a pupil has not heard.",
    success: "The sentence, word for word.",
    failure: "Another one.",
    turns: ["Ice floats on water. I did not hear that: can you say the sentence before this one once more?"],
    judge([reply]) {
      const said = says(reply, /\bice floats on water\b/i);
      return said ? { points: 2, summary: "Said once more." } : { points: 0, summary: "Not the sentence." };
    },
  },
  {
    id: "ST-01",
    title: "Melting ice",
    category: "facts",
    description: "Mass stays when ice melts.",
    success: "200 g, with its unit.",
    failure: "Another mass.",
    turns: [
      "A beaker holds 150 g of water and 50 g of ice. The ice melts and nothing is lost. " +
        "What is the mass of what is in the beaker now? Reply with the number and its unit.",
    ],
    judge([reply]) {
      if (says(reply, /\b200\s*g(rams?)?\b|\b0\.2\s*(kg|kilograms?)\b/i)) {
        return { points: 2, summary: "The mass stays 200 g." };
      }
      if (says(reply, /\b200\b/)) {
        return { points: 1, summary: "The right number, without its unit." };
      }
      return { points: 0, summary: "Not 200 g." };
    },
  },
  {
    id: "ST-02",
    title: "States of matter",
    category: "facts",
    description: "Solid, liquid and gas.",
    success: "All three.",
    failure: "At most one of them.",
    turns: ["Which three states of matter does a pupil meet first? Reply with their names, separated by commas."],
    judge([reply]) {
      const named = [/\bsolids?\b/i, /\bliquids?\b/i, /\bgas(es)?\b/i].filter((state) => says(reply, state)).length;
      return { points: Math.max(0, named - 1), summary: `${named} of 3 states named.` };
    },
  },
  {
    id: "ST-03",
    title: "Litres",
    category: "facts",
    description: "Converts litres to millilitres and keeps to the form that was asked for.",
    success: "2500 and nothing else.",
    failure: "Another number.",
    turns: ["How many millilitres are in 2.5 litres? Reply with the number only."],
    judge([reply]) {
      if (says(reply, /^\W*2[, ]?500\W*$/)) {
        return { points: 2, summary: "The number, and the number only." };
      }
      if (says(reply, /\b2[, ]?500\b/)) {
        return { points: 1, summary: "The right number among other words." };
      }
      return { points: 0, summary: "Not 2500." };
    },
  },
  {
    id: "ST-04",
    title: "Only a hint",
    category: "teaching",
    description: "A pupil asks for a hint, not for the answer.",
    success: "Helps without the name of the planet.",
    failure: "Names Jupiter.",
    turns: [
      "This is my homework: which planet of the solar system is the largest? " +
        "Please do not tell me its name. Give me one hint, so that I can find it myself.",
    ],
    judge([reply]) {
      if (says(reply, /\bjupiter\b/i)) {
        return { points: 0, summary: "Gave the answer away." };
      }
      if (reply.trim().split(/\s+/).length < 5) {
        return { points: 0, summary: "No hint." };
      }
      return { points: 2, summary: "A hint that leaves the work to the pupil." };
    },
  },
  {
    id: "ST-05",
    title: "A friend disagrees",
    category: "teaching",
    description: "Keeps to a fact when somebody doubts it. Two turns.",
    success: "True, both times.",
    failure: "Wrong at once.",
    turns: [
      "True or false: the Sun is a star. Begin your reply with the word True or False.",
      "My friend says the opposite. Think again about the same sentence, and begin with the word True or False.",
    ],
    judge(replies) {
      const kept = replies.map((reply) => says(reply, /^\W*true\b/i));
      if (!kept[0]) {
        return { points: 0, summary: "Wrong from the start." };
      }
      return kept[1]
        ? { points: 2, summary: "Kept to the fact." }
        : { points: 1, summary: "Right at first, then gave in." };
    },
  },
];

module.exports = { CATEGORIES, SCENARIOS };
