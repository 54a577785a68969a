// The chat page: settings, the conversation, and the answer that is being written.
// SPDX-License-Identifier: Apache-2.0

import { listModels, streamChat, streamCompletion } from "./api.js";
import { clear, Message } from "./conversation.js";

const [model, settings, toggle, system, temperature, maxTokens, key, error, composer, message, send, stop] = [
    "model", "settings", "toggle", "system", "temperature", "max-tokens", "key", "error", "composer",
    "message", "send", "stop",
].map((id) => document.getElementById(id));

let history = []; // messages as the API takes them
let running = null; // AbortController of the answer that is being written
let tasks = new Map(); // what each model serves

// ---- Settings ------------------------------------------------------------------------------------

function showSettings(shown) {
    settings.classList.toggle("open", shown);
    toggle.setAttribute("aria-expanded", String(shown));
}

/** Shows the message of a failure; a refused key can be corrected at once. */
function showError(failure) {
    error.textContent = failure?.message ?? "";
    error.hidden = !failure;
    const refused = failure?.status === 401;
    key.toggleAttribute("aria-invalid", refused);
    if (refused) {
        showSettings(true);
        key.focus();
    }
}

async function loadModels() {
    const chosen = model.value;
    try {
        const models = await listModels(key.value);
        tasks = new Map(models.map(({ id, tasks }) => [id, tasks]));
        const names = [...tasks.keys()].filter((name) => tasks.get(name).includes("completions"));
        model.replaceChildren(...names.map((name) => new Option(name, name, false, name === chosen)));
        showError(names.length > 0 ? null : new Error("No model of this server writes text."));
    } catch (failure) {
        showError(failure);
    }
}

/** Whether the chosen model has a chat template; without one it continues texts. */
function chats() {
    return tasks.get(model.value)?.includes("chat");
}

function number(input) {
    return input.value === "" ? undefined : Number(input.value);
}

function parameters() {
    return { model: model.value, temperature: number(temperature), maxTokens: number(maxTokens) };
}

// ---- Answers -------------------------------------------------------------------------------------

/** Streams the answer to the history; a model without a chat template continues the last message. */
function streamAnswer(signal) {
    if (!chats()) {
        return streamCompletion(parameters(), history.at(-1).content, key.value, signal);
    }
    const first = system.value.trim() === "" ? [] : [{ role: "system", content: system.value }];
    return streamChat(parameters(), [...first, ...history], key.value, signal);
}

const REASONS = {
    length: "cut off at the limit of tokens",
    stopped: "stopped",
    completion: "this model has no chat template and continues your text",
};

/** "20 tokens, 41.3 tokens/s", and why the answer ended if not by itself. */
function summary({ usage, seconds, reasons }) {
    const tokens = usage?.completion_tokens;
    const counts = tokens === undefined ? [] : [`${tokens} tokens`, `${(tokens / seconds).toFixed(1)} tokens/s`];
    return [...counts, ...reasons.map((reason) => REASONS[reason])].filter(Boolean).join(", ");
}

/** Writes the answer as it comes. Returns what failed, or null. */
async function write(answer, signal) {
    answer.begin();
    const began = performance.now();
    const reasons = chats() ? [] : ["completion"];
    let usage = null;
    let failure = null;
    try {
        for await (const part of streamAnswer(signal)) {
            answer.add(part.text);
            usage = part.usage ?? usage;
            if (part.finish_reason) reasons.push(part.finish_reason);
        }
    } catch (thrown) {
        if (signal.aborted) reasons.push("stopped");
        else failure = thrown;
    }
    answer.end(summary({ usage, seconds: (performance.now() - began) / 1000, reasons }));
    return failure;
}

function setBusy(controller) {
    running = controller;
    send.hidden = running !== null;
    stop.hidden = running === null;
    return controller;
}

/** Sends the message. Without an answer it returns to its field, so that nothing is lost. */
async function ask() {
    const content = message.value;
    if (running !== null || content.trim() === "") return;
    showError(null);
    const conversation = history;
    const question = new Message("user", "You", content);
    const answer = new Message("assistant", model.value);
    conversation.push({ role: "user", content });
    message.value = "";
    const { signal } = setBusy(new AbortController());
    const failure = await write(answer, signal);
    setBusy(null);
    if (conversation !== history) return; // another one has begun
    if (answer.content === "" && (failure !== null || signal.aborted)) {
        conversation.pop();
        question.remove();
        answer.remove();
        message.value ||= content;
    } else {
        conversation.push({ role: "assistant", content: answer.content });
    }
    message.focus();
    showError(failure);
}

function stopAnswer() {
    running?.abort();
}

function beginAgain() {
    stopAnswer();
    history = [];
    clear();
    showError(null);
    message.focus();
}

// ---- Events --------------------------------------------------------------------------------------

composer.addEventListener("submit", (event) => {
    event.preventDefault();
    ask();
});
message.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    composer.requestSubmit();
});
document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") stopAnswer();
});
stop.addEventListener("click", stopAnswer);
document.getElementById("new").addEventListener("click", beginAgain);
toggle.addEventListener("click", () => showSettings(!settings.classList.contains("open")));
key.addEventListener("change", loadModels);
loadModels();
