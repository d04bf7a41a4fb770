// Tables that sort by any column, page through many rows, and can be taken home as CSV.
// A column: { title, value(row), text(row)?, node(row)?, isText?, help?, live? }.

const PAGE_SIZE = 25;

function dataTable({ name, caption, columns, rows, onRow, describe, size = PAGE_SIZE, sort = null }) {
  const view = remembered(`table ${name}`, { page: 0, sort: sort?.column ?? null, down: sort?.down ?? false });
  Object.assign(view, { rows, order: rows });
  const head = el("tr");
  const body = el("tbody");
  const pager = el("div", { class: "pager" });
  const table = el("table", {}, el("caption", { class: "visually-hidden" }, caption), el("thead", {}, head), body);
  const buttons = columns.map((column, place) => {
    const button = el("button", { type: "button", class: column.title.length > 22 ? "sort long" : "sort", title: column.help,
      onclick: () => sortBy(place) }, column.title);
    head.append(el("th", { scope: "col", class: column.isText ? "words" : "numbers" }, button));
    return button;
  });

  function sortBy(place) {
    view.down = view.sort === place ? !view.down : !columns[place].isText;
    view.sort = place;
    arrange();
  }

  function arrange() {
    view.order = view.rows;
    if (view.sort !== null) {
      const { value, isText } = columns[view.sort];
      const keys = new Map();
      for (const row of view.rows) keys.set(row, value(row));
      const sign = view.down ? -1 : 1;
      const compare = isText
        ? (a, b) => sign * String(keys.get(a)).localeCompare(String(keys.get(b)), "en", { numeric: true })
        : (a, b) => compareNumbers(keys.get(a), keys.get(b), sign);
      view.order = Array.from(view.rows).sort(compare);
    }
    buttons.forEach((button, place) => {
      const isSorted = place === view.sort;
      button.parentElement.setAttribute("aria-sort", isSorted ? (view.down ? "descending" : "ascending") : "none");
    });
    view.page = 0;
    draw();
  }

  function draw() {
    const visible = Array.from(view.order.slice(view.page * size, (view.page + 1) * size));
    body.replaceChildren(...visible.map(drawRow));
    drawPager();
  }

  function drawRow(row) {
    const cells = columns.map((column, place) => {
      const content = column.node ? column.node(row) : String((column.text ?? column.value)(row) ?? "");
      const shown = onRow && place === 0 && !column.node
        ? el("button", { type: "button", class: "open", onclick: (event) => { event.stopPropagation(); onRow(row, view.order); },
          "aria-label": describe ? describe(row) : null }, content)
        : content;
      const isHead = place === 0 && column.isText;
      const isLong = column.isText && (column.wraps || String(column.value(row)).length > 28);
      return el(isHead ? "th" : "td", { class: `${column.isText ? "words" : "numbers"}${isLong ? " long" : ""}`, scope: isHead ? "row" : null }, shown);
    });
    const line = el("tr", {}, ...cells);
    if (onRow) { line.className = "clickable"; line.addEventListener("click", () => onRow(row, view.order)); }
    return line;
  }

  function drawPager() {
    const pages = Math.ceil(view.order.length / size);
    const turn = (by) => () => { view.page = Math.min(Math.max(view.page + by, 0), pages - 1); draw(); };
    const parts = [];
    if (pages > 1) {
      const first = view.page * size + 1;
      const last = Math.min(view.order.length, first + size - 1);
      parts.push(
        el("button", { type: "button", onclick: turn(-1), disabled: view.page === 0 }, "← Back"),
        el("span", {}, `${whole(first)}–${whole(last)} of ${whole(view.order.length)}`),
        el("button", { type: "button", onclick: turn(1), disabled: view.page === pages - 1 }, "More →"));
    } else parts.push(el("span", {}, `${whole(view.order.length)} ${view.order.length === 1 ? "row" : "rows"}`));
    parts.push(el("button", { type: "button", class: "csv", onclick: save }, "Download CSV"));
    pager.replaceChildren(...parts);
  }

  function save() {
    const lines = [columns.map((column) => cell(column.csv ?? column.title)).join(",")];
    for (const row of view.order) lines.push(columns.map((column) => cell(column.value(row))).join(","));
    download(`${name}.csv`, `${lines.join("\r\n")}\r\n`, "text/csv;charset=utf-8");
  }

  function again() {
    const { page } = view;
    arrange();
    view.page = Math.min(page, Math.max(0, Math.ceil(view.order.length / size) - 1));
    if (view.page) draw();
  }

  again();
  const element = el("div", { class: "table", "data-table": name }, scroller(caption, table), pager);
  return { element, setRows(next) { view.rows = next; arrange(); }, refresh: whenNear(element, again) };
}

// Where a table is wider than its place, its edges say on which side there is more.
const sized = new ResizeObserver((entries) => { for (const { target } of entries) markEdges(target.closest(".scroller")); });

function scroller(label, table) {
  const box = el("div", { class: "scroller", tabindex: 0, role: "region", "aria-label": label }, table);
  box.addEventListener("scroll", () => markEdges(box), { passive: true });
  sized.observe(box);
  sized.observe(table);
  return el("div", { class: "edges" }, box);
}

// A small table whose cells are coloured; its caption does not scroll along.
function matrixTable(caption, head, lines) {
  return el("div", {}, el("p", { class: "matrix-caption" }, caption), scroller(caption,
    el("table", { class: "matrix" }, el("caption", { class: "visually-hidden" }, caption), el("thead", {}, head), el("tbody", {}, ...lines))));
}

function markEdges(box) {
  const left = box.scrollWidth - box.clientWidth - box.scrollLeft;
  box.parentElement?.classList.toggle("more-before", box.scrollLeft > 1);
  box.parentElement?.classList.toggle("more-after", left > 1);
}

function compareNumbers(a, b, sign) {
  const isMissing = (value) => value === null || value === undefined || Number.isNaN(value);
  if (isMissing(a) || isMissing(b)) return isMissing(a) - isMissing(b);
  return a === b ? 0 : sign * (a < b ? -1 : 1);
}

// A spreadsheet must not run what a network's name says.
function cell(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "";
  let text = typeof value === "number" && !Number.isFinite(value) ? "inf" : String(value);
  if (typeof value === "string" && /^[=+\-@\t\r]/.test(text)) text = `'${text}`;
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
