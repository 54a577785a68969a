// What the page shows of a conversation. Texts of people and models are text nodes, never markup.
// SPDX-License-Identifier: Apache-2.0

const log = document.getElementById("conversation");

function element(name, className, text = "") {
    const made = document.createElement(name);
    made.className = className;
    made.textContent = text;
    return made;
}

/** Whether the reader is at the end, where new text keeps them. */
function atEnd() {
    return log.scrollHeight - log.scrollTop - log.clientHeight < 40;
}

function scrollToEnd() {
    log.scrollTop = log.scrollHeight;
}

/** A message of the conversation, to which text can be added. */
export class Message {
    constructor(role, author, text = "") {
        this.article = element("article", role);
        this.text = document.createTextNode(text);
        const body = element("div", "text");
        body.append(this.text);
        this.article.append(element("h2", "author", author), body);
        log.append(this.article);
        scrollToEnd();
    }

    get content() {
        return this.text.data;
    }

    add(text) {
        const follow = atEnd();
        this.text.appendData(text);
        if (follow) scrollToEnd();
    }

    /** Screen readers read a busy message when it is complete. */
    set busy(busy) {
        this.article.setAttribute("aria-busy", String(busy));
    }

    note(text) {
        const follow = atEnd();
        this.article.append(element("p", "note", text));
        if (follow) scrollToEnd();
    }

    remove() {
        this.article.remove();
    }
}

export function clear() {
    log.replaceChildren();
}
