// The board: a card for each table of networks that can be compared.

const RADIUS_WORDS = [
  ["Radius", "the largest ε for which the network's answer stays right for every change of the input up to ε."],
  ["Robust accuracy at ε", "the share of all inputs that are right and stay right within ε: from what is proven to what no counterexample refutes. Where both agree, one number is shown; a question mark stands where nobody searched for counterexamples."],
  ["Rank", "1 more than the number of networks that are shown to be more robust at the chosen ε: those whose proven share is larger than what is not refuted of this one. Networks that overlap share a rank."],
  ["Median radius", "of the inputs that have one, as a bracket: a proof below, a counterexample above."],
  ["Closed", "the share of inputs with no value of the grid left between proof and counterexample."],
  ["Arithmetic", "what proofs speak of. float: the numbers that the network computes, with their rounding. real: the network without rounding."],
  ["Claims", "numbers of a published file, which radii has not checked."],
];

function boardCard(table, place, sidesOf) {
  const view = { eps: table.eps[0] };
  const rows = table.entries.map((entry, at) => ({ ...entry, sides: sidesOf(place, at), colour: () => colourOf(entry.number) }));
  const lines = rows.map((row) => ({ name: row.network, sides: row.sides, colour: row.colour, dash: svgDash(row.number) }));
  const listeners = [];
  const choose = (eps) => { view.eps = eps; listeners.forEach((listen) => listen()); };
  const control = epsControl(table.top, view, choose);
  const chart = curveChart(lines, table.top, view, choose);
  const live = el("p", { class: "live", "aria-live": "polite" });
  const say = () => { live.textContent = leaderSentence(rows, view.eps); };
  const made = boardTable(table, place, rows, view);
  made.element.addEventListener("pointerover", (event) => chart.single(event.target.closest("tr")?.querySelector(".network")?.textContent ?? ""));
  made.element.addEventListener("pointerleave", () => chart.single(""));
  listeners.push(say, control.update, chart.draw, made.refresh);
  on("theme", () => { chart.draw(); made.refresh(); legend.replaceWith(legend = legendOf(lines, view, chart.draw)); });
  let legend = legendOf(lines, view, chart.draw);
  say();
  const inputs = `${whole(table.inputs)} ${table.inputs === 1 ? "input" : "inputs"}`;
  return section(`table-${place}`, table.source,
    `${whole(rows.length)} ${rows.length === 1 ? "network" : "networks"} on the same ${inputs}; ${table.norm} distance, property ${table.property}.`,
    live, control.element, chart.element, el("p", { class: "hint" }, SIDES_OF_LINES), legend, made.element);
}

// The shares that count at eps; beyond where anybody searched, nothing is known above but accuracy.
function sharesAt(row, eps) {
  const [proven, open] = row.sides.shares(eps);
  const isKnown = row.searched === null || eps < row.searched;
  return { proven, open: isKnown ? open : row.accuracy, isKnown };
}

const textAt = ({ proven, open, isKnown }) => (isKnown ? shareText(proven, open) : `${tenths(proven)}–? %`);

const rankAt = (row, rows, eps) => 1 + rows.filter((other) => sharesAt(other, eps).proven > sharesAt(row, eps).open).length;

function leaderSentence(rows, eps) {
  const within = `Within ε = ${number(eps)}`;
  const best = rows.reduce((a, b) => (sharesAt(b, eps).proven > sharesAt(a, eps).proven ? b : a));
  const leaders = rows.filter((row) => rankAt(row, rows, eps) === 1);
  if (rows.length === 1) return `${within}, ${best.network} stays right on ${textAt(sharesAt(best, eps))} of the inputs.`;
  if (leaders.length === rows.length) return `${within}, no network is shown to be more robust than all the others.`;
  if (leaders.length === 1) return `${within}, ${best.network} leads: it stays right on ${textAt(sharesAt(best, eps))} of the inputs.`;
  return `${within}, ${listed(leaders.map((row) => row.network))} share the lead.`;
}

const labelled = (label, ...content) => el("span", { class: "cell", "data-label": label }, ...content);

function boardTable(table, place, rows, view) {
  const at = (row) => sharesAt(row, view.eps);
  const fixed = table.eps.length > 1 ? table.eps : [];
  const column = (title, csv, value, text, more = {}) => ({ title, csv, value, node: (row) => labelled(title, text(row)), ...more });
  return dataTable({
    name: `board-${place}`,
    caption: `Networks on ${table.source}`,
    rows,
    size: 50,
    sort: { column: 0, down: false },
    columns: [
      column("Rank", "rank", (row) => rankAt(row, rows, view.eps), (row) => el("b", { class: "rank" }, String(rankAt(row, rows, view.eps))),
        { help: "1 more than how many are shown to be more robust at ε" }),
      { title: "Network", csv: "network", isText: true, value: (row) => row.network, node: networkCell },
      { title: "Robust accuracy at ε", csv: "proven", value: (row) => at(row).proven, node: (row) => accuracyCell(row, at(row)) },
      { title: "Over ε", csv: "not refuted", value: (row) => (at(row).isKnown ? at(row).open : null), help: "robust accuracy from ε = 0 on",
        node: (row) => labelled("Over ε", sparkline(row.sides, table.top, view.eps, row.colour(), row.network)) },
      ...fixed.map((eps, i) => column(`at ${number(eps)}`, `proven at ${eps}`, (row) => row.shares[i].proven,
        ({ shares }) => textAt({ proven: shares[i].proven, open: shares[i].not_refuted, isKnown: shares[i].not_refuted !== null }))),
      column("Accuracy", "accuracy", (row) => row.accuracy, (row) => percent(row.accuracy)),
      column("Median radius", "median, proven", (row) => row.median?.[0] ?? null, (row) => (row.median ? bracketText(row.median[0], row.median[1] ?? Infinity) : "–")),
      column("Closed", "closed", (row) => row.closed, (row) => (row.closed === null ? "–" : percent(row.closed)), { help: "inputs with no grid value left open" }),
      column("Proofs", "arithmetic", (row) => `${row.arithmetic} ${row.verifier}`, proofText, { isText: true, help: "arithmetic, verifier, and how many a checker has accepted" }),
      column("Measured", "measured", (row) => row.measured[1], (row) => row.measured[1].slice(0, 10) || "–", { isText: true, help: "day of the last answer" }),
    ],
  });
}

function proofText({ arithmetic, verifier, checked, is_claim: isClaim }) {
  if (isClaim) return "claims";
  return [arithmetic || "none", verifier, checked].filter(Boolean).join(", ");
}

function networkCell(row) {
  return el("span", { class: "network", title: row.place }, el("i", { class: "swatch", style: { background: row.colour() } }), row.network);
}

function accuracyCell(row, shares) {
  return labelled("Robust accuracy at ε", el("span", { class: "share-cell" },
    shareBar(shares.proven, shares.open, row.colour()), el("b", { class: "value" }, textAt(shares))));
}

drawSheet(async (facts) => {
  const columns = await arraysOf(await columnsOfPage(facts), facts.arrays.columns);
  let start = 0;
  const sides = facts.tables.map((table) => table.entries.map(() => {
    const [from, to] = [start, start + table.inputs];
    start = to;
    return new Sides(columns.lower.slice(from, to), columns.upper.slice(from, to));
  }));
  const cards = facts.tables.map((table, place) => boardCard(table, place, (one, at) => sides[one][at]));
  const notes = facts.notes.length ? [el("ul", { class: "notes" }, ...facts.notes.map((text) => el("li", {}, text)))] : [];
  byId("sections").replaceChildren(...notes, ...cards);
  sheetFooter(facts, ...RADIUS_WORDS);
});
