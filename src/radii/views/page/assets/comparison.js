// Two networks compared: who is more robust on which input, with pictures; both curves; statistics.

const PAIR_PAGE = 12;

// Rows of the same input on two networks. Inputs are known by what they are; where that is not told,
// or data were prepared in two ways, by their place and label.
function matchedRows(model, first, second) {
  const { rows } = model;
  const byInput = (row) => (rows.input[row] < 0 ? null : `${rows.input[row]}|${rows.target[row]}`);
  const byPlace = (row) => `${rows.position[row]}|${rows.label[row]}|${rows.target[row]}`;
  for (const key of [byInput, byPlace]) {
    const known = new Map(model.rowsOf[second].map((row) => [key(row), row]));
    known.delete(null);
    const found = model.rowsOf[first].filter((row) => known.has(key(row))).map((row) => verdictOf(model, row, known.get(key(row))));
    if (found.length) return found;
  }
  return [];
}

// `lead` is how much larger the leader's radius is at least; the difference lies between two numbers.
function verdictOf({ rows }, a, b) {
  const { lower, upper, holds } = rows;
  const isAhead = (one, two) => (holds[one] && !holds[two]) || (lower[one] > 0 && lower[one] >= upper[two]);
  const who = isAhead(a, b) ? "first" : isAhead(b, a) ? "second" : "open";
  const least = lower[a] - upper[b];
  const most = upper[a] - lower[b];
  const lead = who === "first" ? Math.max(0, least) : who === "second" ? Math.max(0, -most) : 0;
  return { a, b, who, least, most, lead, isWrong: !holds[a] && !holds[b] };
}

const signed = (value) => (Number.isFinite(value) ? `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(4)}` : value < 0 ? "−∞" : "+∞");

function differenceText({ who, least, most, isWrong }, names) {
  if (isWrong) return "Both are wrong as it stands.";
  if (who === "open") return `Their difference lies between ${signed(least)} and ${signed(most)}.`;
  const [low, high] = who === "first" ? [least, most] : [-most, -least];
  const [down, up] = outward(Math.max(0, low), high);
  return `The radius of ${names[who === "first" ? 0 : 1]} is larger by ${Number.isFinite(high) ? `${down} to ${up}` : `at least ${down}`}.`;
}

class PairView {
  constructor(model, pair) {
    Object.assign(this, { model, pair, names: [pair.first, pair.second] });
    this.places = this.names.map((name) => model.networks.findIndex((network) => network.name === name));
    this.matched = matchedRows(model, ...this.places);
    const counts = { first: 0, second: 0, open: 0 };
    for (const found of this.matched) counts[found.who] += 1;
    this.counts = counts;
  }

  colour(which) { return colourOf(which); }
}

// --- the first card: a sentence, the tally, the curves

function tallyCard(pairView, view, choose, choosePair) {
  const { model, names, counts, matched, places } = pairView;
  const sides = places.map((place) => model.sides[place]);
  const live = el("p", { class: "live", "aria-live": "polite" });
  const say = () => {
    const [one, two] = sides.map((side) => shareText(...side.shares(view.eps)));
    live.textContent = `Within ε = ${number(view.eps)}, ${names[0]} stays right on ${one} of its inputs, ${names[1]} on ${two}.`;
  };
  const { top } = model.facts.eps;
  const lines = names.map((name, which) => ({ name, sides: sides[which], colour: () => pairView.colour(which), dash: svgDash(which) }));
  const control = epsControl(top, view, choose);
  const chart = curveChart(lines, top, view, choose);
  view.listeners.push(say, control.update, chart.draw);
  say();
  const pairs = model.facts.statistics.comparisons;
  const picker = pairs.length > 1 ? el("div", { class: "row" }, select("Networks", pairs.map((pair, place) => [place, `${pair.first} – ${pair.second}`]),
    pairs.indexOf(pairView.pair), (place) => choosePair(pairs[Number(place)]))) : null;
  const tally = matched.length ? [el("h3", {}, `Who is more robust on which of ${whole(matched.length)} inputs?`), tallyBar(pairView, counts, matched.length, view)]
    : [el("p", { class: "lead" }, "The two were measured on different inputs: only their curves can be compared.")];
  return section("pair", `${names[0]} and ${names[1]}`, null, picker, live, control.element, chart.element,
    el("p", { class: "hint" }, SIDES_OF_LINES), legendOf(lines, view, chart.draw), ...tally);
}

function tallyBar(pairView, counts, total, view) {
  const words = { first: `${pairView.names[0]} is more robust`, second: `${pairView.names[1]} is more robust`, open: "brackets overlap, or both are wrong" };
  const colours = { first: pairView.colour(0), second: pairView.colour(1), open: "var(--line)" };
  const order = ["first", "open", "second"];
  const bar = el("div", { class: "tally", role: "img", "aria-label": order.map((who) => `${words[who]}: ${counts[who]}`).join("; ") },
    ...order.filter((who) => counts[who]).map((who) => el("span", { style: { "flex-grow": counts[who], background: colours[who] }, title: words[who] })));
  const chips = order.map((who) => el("button", { type: "button", class: "chip tally-chip", "data-who": who, onclick: () => view.show(who) },
    el("i", { class: "swatch", style: { background: colours[who] } }), el("b", {}, whole(counts[who])), words[who]));
  const lead = "A network counts as more robust on an input where its proof reaches as far as the other's counterexample. In the picture an input is a cross, as wide and as high as what is open about its two radii; below the line the first network is more robust, above it the second.";
  return el("div", { class: "tally-box", "data-total": total },
    el("div", {}, bar, el("div", { class: "legend upright" }, ...chips), el("p", { class: "hint" }, lead)), crosses(pairView));
}

// Radius on one network against radius on the other.
function crosses({ model, matched, names, colour }) {
  const { lower, upper } = model.rows;
  const [size, edge] = [340, 42];
  const top = model.facts.eps.top;
  const x = (value) => edge + ((size - edge - 8) * Math.min(value, top)) / top;
  const y = (value) => size - edge - ((size - edge - 8) * Math.min(value, top)) / top;
  const ink = { first: colour(0), second: colour(1), open: "var(--muted)" };
  const marks = matched.map(({ a, b, who }) => {
    const [cx, cy] = [x((lower[a] + Math.min(upper[a], top)) / 2), y((lower[b] + Math.min(upper[b], top)) / 2)];
    const at = model.rows.position[a];
    return svg("g", { stroke: ink[who], "data-cross": who }, svg("title", {}, `input ${at}: ${bracketText(lower[a], upper[a])} and ${bracketText(lower[b], upper[b])}`),
      svg("circle", { cx, cy, r: 3.2, fill: ink[who] }),
      svg("path", { d: `M${x(lower[a])} ${cy}H${x(upper[a])}M${cx} ${y(lower[b])}V${y(upper[b])}`, "stroke-width": 1.4 }));
  });
  const ticks = niceTicks(top, 4).flatMap((eps) => [
    svg("line", { x1: x(eps), x2: x(eps), y1: 8, y2: size - edge }), svg("line", { x1: edge, x2: size - 8, y1: y(eps), y2: y(eps) }),
    svg("text", { x: x(eps), y: size - edge + 16, "text-anchor": "middle" }, number(eps)), svg("text", { x: edge - 6, y: y(eps) + 4, "text-anchor": "end" }, number(eps))]);
  const middle = (size + edge) / 2;
  return svg("svg", { class: "crosses", viewBox: `0 0 ${size} ${size}`, role: "img", "aria-label": `Radii of ${matched.length} inputs on ${names[0]} and on ${names[1]}` },
    svg("g", { class: "steps-axes" }, ...ticks, svg("line", { x1: x(0), y1: y(0), x2: x(top), y2: y(top), class: "diagonal" }),
      svg("text", { x: middle, y: size - 4, "text-anchor": "middle" }, `radius on ${names[0]}`),
      svg("text", { x: 10, y: middle - edge, "text-anchor": "middle", transform: `rotate(-90 10 ${middle - edge})` }, `radius on ${names[1]}`)), ...marks);
}

// --- inputs side by side

const ORDERS = {
  lead: ["largest difference first", () => (one, two) => two.lead - one.lead],
  fragile: ["most fragile first", ({ upper }) => (one, two) => Math.min(upper[one.a], upper[one.b]) - Math.min(upper[two.a], upper[two.b])],
  place: ["in order of the data", ({ position }) => (one, two) => position[one.a] - position[two.a]],
};

function inputsCard(pairView, view) {
  const { model, names, matched } = pairView;
  const chosen = remembered(`inputs ${names.join("|")}`, { who: "all", order: "lead", page: 0 });
  const grid = el("div", { class: "pair-grid" });
  const pager = el("div", { class: "pager" });
  const filter = select("Show", [["all", "all inputs"], ["first", `${names[0]} more robust`], ["second", `${names[1]} more robust`], ["open", "undecided"]],
    chosen.who, (who) => change({ who, page: 0 }));
  const order = select("Order", Object.entries(ORDERS).map(([key, [text]]) => [key, text]), chosen.order, (key) => change({ order: key, page: 0 }));
  const change = (values) => { Object.assign(chosen, values); draw(); };
  view.show = (who) => {
    filter.querySelector("select").value = who;
    change({ who, page: 0 });
    byId("inputs").scrollIntoView({ behavior: "smooth" });
  };

  async function draw() {
    const listed = matched.filter((found) => chosen.who === "all" || found.who === chosen.who).sort(ORDERS[chosen.order][1](model.rows));
    const pages = Math.max(1, Math.ceil(listed.length / PAIR_PAGE));
    chosen.page = Math.min(chosen.page, pages - 1);
    const first = chosen.page * PAIR_PAGE;
    const visible = listed.slice(first, first + PAIR_PAGE);
    const cards = await Promise.all(visible.map(async (found) => inputCard(pairView, found, await model.pictures(found.a))));
    grid.replaceChildren(...cards);
    if (!cards.length) grid.replaceChildren(el("p", { class: "lead" }, "There is no such input."));
    const turn = (by) => () => change({ page: chosen.page + by });
    pager.replaceChildren(
      el("button", { type: "button", onclick: turn(-1), disabled: chosen.page === 0 }, "← Back"),
      el("span", {}, listed.length ? `${whole(first + 1)}–${whole(first + visible.length)} of ${whole(listed.length)}` : "none"),
      el("button", { type: "button", onclick: turn(1), disabled: chosen.page >= pages - 1 }, "More →"),
      el("button", { type: "button", class: "csv", onclick: () => savePairs(pairView, listed) }, "Download CSV"));
    grid.dataset.shown = visible.length;
  }
  on("theme", draw);
  draw();
  return section("inputs", "Inputs side by side", "Each input with the closest counterexample that was found for either network, and what is known of both radii.",
    el("div", { class: "row" }, filter, order), grid, pager);
}

function inputCard(pairView, found, arrays) {
  const { model, names } = pairView;
  const { rows, facts } = model;
  const input = rows.input[found.a];
  const shape = input < 0 || rows.input_at[input] < 0 ? null : facts.shapes[rows.input_shape[input]];
  const badge = found.who === "open" ? "undecided" : found.who === "first" ? names[0] : names[1];
  const colour = found.who === "open" ? "var(--muted)" : pairView.colour(found.who === "first" ? 0 : 1);
  const pictures = shape?.length === 3 ? el("div", { class: "pictures" },
    panel("Input", `class ${classText(model, rows.label[found.a])}`, inputPicture(model, arrays, found.a, shape), "input"),
    ...[found.a, found.b].map((row, which) => brokenPanel(pairView, row, which, arrays, shape))) : null;
  const changes = shape?.length === 1 ? [found.a, found.b].map((row, which) => changedText(model, arrays, row, names[which], shape[0])) : [];
  return el("article", { class: "pair-input", "data-who": found.who },
    el("div", { class: "pair-head" }, el("b", {}, `Input ${rows.position[found.a]}, class ${classText(model, rows.label[found.a])}`),
      el("span", { class: "badge", style: { color: colour, "border-color": colour } }, badge)),
    pictures, ...changes,
    ...[found.a, found.b].map((row, which) => radiusBar(pairView, row, which)),
    el("p", { class: "hint" }, differenceText(found, names)));
}

function brokenPanel({ model, names }, row, which, arrays, shape) {
  const { rows } = model;
  if (rows.difference_at[row] >= 0) {
    const becomes = rows.witness_class[row];
    return panel(names[which], becomes >= 0 ? `seen as ${classText(model, becomes)}` : "broken", brokenPicture(model, arrays, row, shape), `broken-${which}`);
  }
  return el("figure", { class: "panel" }, el("div", { class: "blank" }, rows.holds[row] ? "no counterexample" : "wrong as it stands"),
    el("figcaption", {}, el("b", {}, names[which]), el("span", {}, rows.holds[row] ? "none found" : `seen as ${classText(model, rows.predicted[row])}`)));
}

// Of an input that is no picture, the features that change most.
function changedText(model, arrays, row, name, size) {
  const { rows } = model;
  const [at, from] = [rows.input_at[rows.input[row]], rows.difference_at[row]];
  if (from < 0) return el("p", { class: "changes" }, el("b", {}, `${name}: `), rows.holds[row] ? "no counterexample" : "wrong as it stands");
  const order = Array.from({ length: size }, (_, k) => k).sort((j, k) => Math.abs(arrays.values[from + k]) - Math.abs(arrays.values[from + j]));
  const named = model.facts.features ?? [];
  const text = order.slice(0, 3).map((k) => `${named[k] ?? `feature ${k}`} ${number(arrays.values[at + k], 3)} → ${number(arrays.values[at + k] + arrays.values[from + k], 3)}`);
  return el("p", { class: "changes" }, el("b", {}, `${name}: `), text.join(", "));
}

function radiusBar(pairView, row, which) {
  const { lower, upper } = pairView.model.rows;
  const { top } = pairView.model.facts.eps;
  const at = (value) => `${(100 * Math.min(value, top)) / top}%`;
  return el("div", { class: "radius-row" },
    el("div", { class: "bar", style: { "--colour": pairView.colour(which) } },
      el("div", { class: "open-share", style: { width: at(upper[row]) } }), el("div", { class: "proven", style: { width: at(lower[row]) } })),
    el("span", { class: "value" }, bracketText(lower[row], upper[row])));
}

function savePairs({ model, names }, listed) {
  const { rows } = model;
  const columns = ["input", "label", ...names.flatMap((name) => [`${name}: lower`, `${name}: upper`]), "difference, least", "difference, most", "more robust"];
  const lines = listed.map(({ a, b, least, most, who }) => [rows.position[a], rows.label[a], rows.lower[a], rows.upper[a], rows.lower[b], rows.upper[b],
    least, most, who === "open" ? "undecided" : names[who === "first" ? 0 : 1]]);
  download("inputs.csv", `${[columns, ...lines].map((line) => line.map(cell).join(",")).join("\r\n")}\r\n`, "text/csv;charset=utf-8");
}

// --- statistics: what `radii compare` prints

const pText = (value) => (value === null ? "–" : value < 0.001 ? value.toExponential(0) : value.toFixed(3));
const radiusText = (row, name) => (row[`${name}_lower`] === null ? "–" : bracketText(row[`${name}_lower`], row[`${name}_upper`] ?? Infinity));
const spanText = ({ least, most, low, high }) => (least === null ? "–" : `${least.toFixed(2)} to ${most.toFixed(2)} (${low.toFixed(2)} to ${high.toFixed(2)})`);

function statisticsCard({ model, pair, names }) {
  const { statistics } = model.facts;
  const level = `${number(100 * statistics.level)} %`;
  const summaries = statistics.summary.filter((row) => names.includes(row.group));
  const spearman = statistics.spearman.find((row) => row.first === pair.first && row.second === pair.second);
  const means = pair.mean_difference;
  const told = [pair.verdict, `On these inputs: ${pair.dominance}`, `Among all inputs: ${pair.dominance_of_all_inputs}`,
    means.proven === null ? null : `The mean proven radius of ${names[0]} less that of ${names[1]} is ${signed(means.proven)}, with a standard error of ${means.error === null ? "unknown size" : means.error.toFixed(4)}.`,
    spearman?.spearman === null || !spearman ? null : `Spearman's correlation of the radii is ${spearman.spearman.toFixed(2)} (p ${pText(spearman.p)}) over ${whole(spearman.inputs)} inputs.`];
  return section("statistics", "Statistics", `What radii compare prints, on ${statistics.inputs === "all" ? "all inputs" : "inputs that are classified correctly"}.`,
    el("div", { class: "sentences" }, ...told.filter(Boolean).map((text) => el("p", {}, text))),
    summaryTable(summaries), testTable(pair), el("p", { class: "hint" }, `Cliff's delta: ${spanText(pair.cliffs_delta)}, in brackets with ${level} confidence; positive: ${names[0]} has the larger radii.`),
    qualityTable(statistics.quality.filter((row) => names.includes(row.group))));
}

const labelledColumn = (title, value, text, more = {}) => ({ title, csv: title, value, node: (row) => el("span", { class: "cell", "data-label": title }, text(row)), ...more });
const groupColumn = { title: "Network", isText: true, value: (row) => row.group, node: (row) => el("b", {}, row.group) };

function summaryTable(rows) {
  return dataTable({ name: "summary", caption: "Radii of the two networks", rows, columns: [groupColumn,
    labelledColumn("Correct", (row) => row.correct, (row) => `${whole(row.correct)} of ${whole(row.inputs)}`),
    ...["lowest", "mean", "median"].map((name) => labelledColumn(`${name[0].toUpperCase()}${name.slice(1)} radius`, (row) => row[`${name}_lower`], (row) => radiusText(row, name)))] }).element;
}

function testTable(pair) {
  return dataTable({ name: "tests", caption: "Do they differ? Tests", rows: pair.tests, columns: [
    { title: "Test", isText: true, value: (row) => row.test, node: (row) => el("b", {}, row.test) },
    labelledColumn("Statistic", (row) => row.statistic, (row) => number(row.statistic)),
    labelledColumn("p", (row) => row.p_value, (row) => pText(row.p_value)),
    labelledColumn("p after Holm", (row) => row.adjusted, (row) => pText(row.adjusted), { help: "corrected for all pairs of networks" })] }).element;
}

function qualityTable(rows) {
  return dataTable({ name: "quality", caption: "How well is it known?", rows, columns: [groupColumn,
    labelledColumn("Mean gap", (row) => row.mean_gap, (row) => number(row.mean_gap), { help: "mean width of the brackets" }),
    labelledColumn("Largest gap", (row) => row.largest_gap, (row) => number(row.largest_gap)),
    labelledColumn("No counterexample", (row) => row.without_witness, (row) => (row.without_witness === null ? "–" : percent(row.without_witness))),
    labelledColumn("Missing answers", (row) => row.missing, (row) => number(row.missing)),
    labelledColumn("Seconds each", (row) => row.mean_seconds, (row) => number(row.mean_seconds, 3))] }).element;
}

// --- the page

function drawPair(model, pair) {
  beginAnew();
  forgetNear();
  const view = { eps: state.eps ?? model.facts.eps.start, listeners: [], show: () => {} };
  const pairView = new PairView(model, pair);
  const choose = (eps) => { state.eps = view.eps = eps; view.listeners.forEach((listen) => listen()); };
  const { notes } = model.facts;
  byId("sections").replaceChildren(...[
    notes.length ? el("ul", { class: "notes" }, ...notes.map((text) => el("li", {}, text))) : null,
    tallyCard(pairView, view, choose, (other) => drawPair(model, other)),
    pairView.matched.length ? inputsCard(pairView, view) : null,
    statisticsCard(pairView)].filter(Boolean));
  on("theme", () => requestAnimationFrame(() => drawPair(model, pair)));
}

drawSheet(async (facts) => {
  const model = await loadModel();
  const pairs = facts.statistics.comparisons;
  const [one, two] = facts.first;
  drawPair(model, pairs.find((pair) => pair.first === one && pair.second === two) ?? pairs[0]);
  sheetFooter(facts,
    ["Radius", "the largest ε for which the network's answer stays right for every change of the input up to ε."],
    ["Bracket [lower, upper)", "what is known of a radius: a proof below, a counterexample above. Without a counterexample there is no upper end."],
    ["Robust accuracy at ε", "the share of all inputs that are right and stay right within ε, from what is proven to what no counterexample refutes."],
    ["More robust on an input", "its proven radius is at least the distance of the other's counterexample, or it is right where the other is wrong. Brackets that overlap decide nothing."]);
});
