"use strict";

// One conversation with the model under test, over any OpenAI-compatible server.

// A setting that the host leaves out must not be sent.
const SAMPLING = [
  "temperature",
  "top_p",
  "top_k",
  "min_p",
  "repetition_penalty",
  "presence_penalty",
  "frequency_penalty",
  "max_tokens",
  "seed",
  "stop",
];

class Conversation {
  /**
   * @param {object} server `baseUrl`, `model`, and `apiKey` where one is needed.
   * @param {object} generation Settings of the host.
   * @param {AbortSignal} [signal] Ends a request that is under way.
   */
  constructor(server, generation, signal) {
    this.server = server;
    this.sampling = Object.fromEntries(Object.entries(generation).filter(([key]) => SAMPLING.includes(key)));
    this.signal = signal;
    this.messages = [{ role: "system", content: "You are a science tutor for pupils of about twelve." }];
  }

  /** Say something; returns the reply, which may be empty. A fault of the server throws. */
  async say(text) {
    this.messages.push({ role: "user", content: text });
    const { baseUrl, model, apiKey } = this.server;
    // No time limit and no second attempt of our own: both are the host's, which ends this by the signal.
    const response = await fetch(`${baseUrl.replace(/\/+$/, "")}/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json", ...(apiKey ? { authorization: `Bearer ${apiKey}` } : {}) },
      body: JSON.stringify({ ...this.sampling, model, messages: this.messages }),
      signal: this.signal,
    });
    if (!response.ok) {
      throw new Error(`The model's server answered ${response.status}: ${(await response.text()).slice(0, 300)}`);
    }
    const reply = (await response.json()).choices?.[0]?.message?.content ?? "";
    this.messages.push({ role: "assistant", content: reply });
    return reply;
  }

  /** What was said, for people. */
  transcript() {
    return this.messages.map(({ role, content }) => `${role}: ${content}`).join("\n\n");
  }
}

module.exports = { Conversation };
