// The service in verification/, which works out every answer itself.

import { object, oneOf, text } from "./check.js";

const verdict = object({ verdict: oneOf(["right", "close", "wrong"]), expected: text, reason: text });

/** Returns the verdict on an answer; a fault of the service throws. */
export async function check(url, task, answer, signal) {
  const response = await fetch(`${url.replace(/\/+$/, "")}/check`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ task, answer }),
    signal,
  });
  if (!response.ok) {
    throw new Error(`The verifier answered ${response.status}: ${(await response.text()).slice(0, 300)}`);
  }
  return verdict(await response.json(), "the verifier's answer");
}
