// One request to the model under test.

const INSTRUCTION = "End your reply with one line that begins with ANSWER: and holds the answer alone.";

/** Returns the reply; a fault of the server throws. */
export async function ask(endpoint, generation, question, signal) {
  const { temperature, top_p, max_tokens, seed } = generation;
  const response = await fetch(`${endpoint.baseUrl}/chat/completions`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(endpoint.authMode === "bearer" ? { authorization: `Bearer ${endpoint.apiKey}` } : {}),
    },
    // What is undefined is left out of the JSON.
    body: JSON.stringify({
      model: endpoint.exposedModel,
      messages: [{ role: "user", content: `${question}\n\n${INSTRUCTION}` }],
      temperature,
      top_p,
      max_tokens,
      seed,
    }),
    signal,
  });
  if (!response.ok) {
    throw new Error(`The model's server answered ${response.status}`);
  }
  return (await response.json()).choices?.[0]?.message?.content ?? "";
}

/** The last answer of a reply; null when it gives none. */
export function answerIn(reply) {
  const answers = [...reply.matchAll(/^[*#> \t]*ANSWER:[*`\s]*(\S.*)$/gim)];
  return answers.length === 0 ? null : answers.at(-1)[1].replace(/[*`.\s]+$/, "").trim();
}
