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

/** A message of the conversation, to which text can be added: it is shown once a frame. */
export class Message {
    constructor(role, author, text = "") {
        this.content = text;
        this.frame = null;
        this.article = element("article", role);
        this.text = document.createTextNode(text);
        const body = element("div", "text");
        body.append(this.text);
        this.article.append(element("h2", "author", author), body);
        log.append(this.article);
        scrollToEnd();
    }

    add(text) {
        this.content += text;
        this.frame ??= requestAnimationFrame(() => this.show());
    }

    show() {
        const follow = atEnd();
        this.text.appendData(this.content.slice(this.text.length));
        this.frame = null;
        if (follow) scrollToEnd();
    }

    /** Screen readers wait for the end of a message that has begun. */
    begin() {
        this.article.setAttribute("aria-busy", "true");
    }

    /** With a remark of the page, or "". */
    end(remark) {
        this.show();
        const follow = atEnd();
        if (remark !== "") this.article.append(element("p", "note", remark));
        this.article.removeAttribute("aria-busy");
        if (follow) scrollToEnd();
    }

    remove() {
        this.article.remove();
    }
}

export function clear() {
    log.replaceChildren();
}
