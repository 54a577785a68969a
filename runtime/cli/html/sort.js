"use strict";
// The button of a header sorts the rows of its table by that column, and in the other order the next time.
// Numbers come before cells without one, such as "-".
for (const button of document.querySelectorAll("th > button"))
    button.addEventListener("click", () => {
        const head = button.parentElement, column = head.cellIndex;
        const rows = head.closest("table").tBodies[0].rows;
        const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
        const text = (row) => row.cells[column].textContent;
        const number = (row) => {
            const value = text(row) === "\u221e" ? Number.MAX_VALUE : parseFloat(text(row));
            return Number.isNaN(value) ? sign * Infinity : value;
        };
        const order = head.className === "n"
            ? (a, b) => sign * (number(a) === number(b) ? 0 : number(a) - number(b))
            : (a, b) => sign * text(a).localeCompare(text(b), "en", { numeric: true });
        for (const other of head.parentElement.cells)
            other.setAttribute("aria-sort", "none");
        head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
        head.closest("table").tBodies[0].append(...Array.from(rows).sort(order));
    });
