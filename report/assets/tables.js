"use strict";
// Tables whose headings sort.

// Columns: [heading, field, how to write it, whether it is a number]. `row` makes the element of a
// record; what has no value in a column comes last either way.
function sortableTable(id, columns, records, row) {
  const body = element("tbody", {}, ...records.map(row));
  const heads = columns.map(([title, , , isNumber], i) => {
    const head = element("th", { class: isNumber ? "number" : "", scope: "col" },
      element("button", { onclick: () => sort(i, head) }, title));
    return head;
  });
  function sort(column, head) {
    const [, field, , isNumber] = columns[column];
    const before = head.getAttribute("aria-sort");
    const rises = before ? before === "descending" : !isNumber || field === "number";
    heads.forEach((each) => each.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", rises ? "ascending" : "descending");
    const [known, missing] = [records.filter((each) => has(each[field])),
      records.filter((each) => !has(each[field]))];
    known.sort((one, two) => (rises ? 1 : -1) * compare(one[field], two[field]));
    body.replaceChildren(...[...known, ...missing].map(row));
  }
  return element("div", { class: "scroll" }, element("table", { id },
    element("thead", {}, element("tr", {}, ...heads)), body));
}

function has(value) {
  return value !== null && value !== undefined && value !== "";
}

function compare(one, two) {
  return typeof one === "string" ? one.localeCompare(two) : one - two;
}
