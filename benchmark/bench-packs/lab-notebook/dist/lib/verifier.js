// The service in verification/, which works out every answer itself.

import { z } from "zod";

const Verdict = z.object({
  verdict: z.enum(["right", "close", "wrong"]),
  expected: z.string(),
  reason: z.string(),
});

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
  return Verdict.parse(await response.json());
}
