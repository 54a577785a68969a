// The API of the server: its models, and answers as they are written.
// SPDX-License-Identifier: Apache-2.0

/** A request that the server refused, or an answer that it broke off. */
export class ServerError extends Error {
    constructor(message, status = 0, code = null) {
        super(message);
        this.status = status; // of HTTP; 0 without a response
        this.code = code;
    }
}

function headers(key) {
    return key ? { Authorization: `Bearer ${key}` } : {};
}

/** The error that a response holds. Its body is not JSON where something between refuses. */
async function refusal(response) {
    const { error } = await response.json().catch(() => ({}));
    const message = error?.message ?? `The server answers ${response.status} ${response.statusText}`.trimEnd();
    return new ServerError(message, response.status, error?.code);
}

async function request(path, options) {
    let response;
    try {
        response = await fetch(path, options);
    } catch (failure) {
        if (failure.name === "AbortError") throw failure;
        throw new ServerError("The server cannot be reached.");
    }
    if (!response.ok) throw await refusal(response);
    return response;
}

/** The models of the server, as it describes them. */
export async function listModels(key) {
    const response = await request("v1/models", { headers: headers(key) });
    return (await response.json()).data;
}

/** The data of each server-sent event; all have one line. */
async function* eventData(body) {
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
        const { value, done } = await reader.read();
        if (done) return;
        const lines = (rest + value).split(/\r?\n/);
        rest = lines.pop();
        for (const line of lines) {
            if (line.startsWith("data:")) yield line.slice(5).trim();
        }
    }
}

/** The events of a stream up to its end mark, without which the answer is incomplete. */
async function* events(body) {
    try {
        for await (const data of eventData(body)) {
            if (data === "[DONE]") return;
            const event = JSON.parse(data);
            if (event.error) throw new ServerError(event.error.message, 0, event.error.code);
            yield event;
        }
    } catch (failure) {
        if (failure.name === "AbortError" || failure instanceof ServerError) throw failure;
    }
    throw new ServerError("The connection broke, so the answer is incomplete.");
}

/** Streams what an endpoint writes: objects with text, finish_reason and usage, all optional. */
async function* stream(path, parameters, key, signal) {
    const response = await request(path, {
        method: "POST",
        headers: { "Content-Type": "application/json", ...headers(key) },
        body: JSON.stringify({ ...parameters, stream: true, stream_options: { include_usage: true } }),
        signal,
    });
    for await (const event of events(response.body)) {
        const choice = event.choices[0];
        yield {
            text: choice?.delta?.content ?? choice?.text ?? "",
            finish_reason: choice?.finish_reason,
            usage: event.usage,
        };
    }
}

/** Continues a conversation by the chat template of the model. */
export function streamChat({ maxTokens, ...parameters }, messages, key, signal) {
    const body = { ...parameters, messages, max_completion_tokens: maxTokens };
    return stream("v1/chat/completions", body, key, signal);
}

/** Continues a text. */
export function streamCompletion({ maxTokens, ...parameters }, prompt, key, signal) {
    return stream("v1/completions", { ...parameters, prompt, max_tokens: maxTokens }, key, signal);
}
