// Two networks on the same inputs.

function pairsSection(model) {
  if (model.networks.length < 2) return null;
  const chosen = remembered("pairs", { a: 0, b: 1 });
  const told = el("div", { class: "told" });
  const options = model.networks.map((network, place) => [place, network.name]);
  const picture = chart({
    label: "Radii of two networks on the same inputs",
    height: () => (isNarrow() ? 340 : 460),
    cursor: "xy",
    onPoint: (row) => openDetail(model, row),
    build: () => pairChart(model, chosen.a, chosen.b),
  });
  const update = () => { picture.redraw(); tell(); };
  const tell = () => told.replaceChildren(...pairSentences(model, chosen.a, chosen.b).map((text) => el("p", {}, ...prose(text, model.networks.map(({ name }) => name)))));
  tell();
  const row = el("div", { class: "row" },
    select("Across", options, chosen.a, (value) => { chosen.a = Number(value); update(); }),
    select("Up", options, chosen.b, (value) => { chosen.b = Number(value); update(); }));
  return section("pairs", "Two networks, input by input",
    "Points above the diagonal are inputs on which the network of the vertical axis is more robust. Grey points are undecided: their brackets overlap.",
    row, told, el("div", { class: "split" }, picture.element, correlationTable(model)));
}

function pairedRows(model, a, b) {
  const pairs = [];
  for (const row of model.rowsOf[a]) {
    const other = model.sameInput(row).find((candidate) => model.rows.network[candidate] === b);
    if (other !== undefined) pairs.push([row, other]);
  }
  return pairs;
}

function leads(model, [one, two]) {
  const { lower, upper } = model.rows;
  if (lower[one] >= upper[two] && upper[one] > upper[two]) return -1;
  if (lower[two] >= upper[one] && upper[two] > upper[one]) return 1;
  return 0;
}

function pairSentences(model, a, b) {
  const names = [model.networks[a].name, model.networks[b].name];
  if (a === b) return ["Choose two different networks."];
  const pairs = pairedRows(model, a, b);
  const wins = { "-1": 0, 0: 0, 1: 0 };
  for (const pair of pairs) wins[leads(model, pair)] += 1;
  const told = [];
  const unsolved = pairs.filter((pair) => pair.some((row) => isUnsolved(model.rows, row))).length;
  if (pairs.length) {
    const open = wins[0] ? `; for ${whole(wins[0])} it is open` : "";
    told.push(`Of ${whole(pairs.length)} shared ${model.facts.has_targets ? "instances" : "inputs"}, ${names[0]} has the larger radius on ${whole(wins[-1])} and ${names[1]} on ${whole(wins[1])}${open}.`);
    if (unsolved) told.push(`${whole(unsolved)} of them have no answer on one of the two, and no point below.`);
  } else told.push("The two networks share no input.");
  const found = model.facts.pairs.find((pair) => names.includes(pair.a) && names.includes(pair.b));
  if (found) told.push(`On these inputs: ${found.here}`, `For all inputs of this kind: ${found.everywhere}`);
  return told;
}

function pairChart(model, a, b) {
  const { lower, position, label } = model.rows;
  const pairs = a === b ? [] : pairedRows(model, a, b).filter((pair) => !pair.some((row) => isUnsolved(model.rows, row)));
  const top = model.facts.eps.top;
  const isMany = pairs.length > MOST_SVG_POINTS;
  const leaders = pairs.map((pair) => leads(model, pair) + 1);
  const colours = [colourOf(a), isDark() ? "#9aa4ae" : "#6b7580", colourOf(b)];
  const text = ([one, two]) => [`input ${position[one]}, class ${label[one]}`, `${number(lower[one])} across, ${number(lower[two])} up`];
  const group = (lead) => {
    const of = pairs.filter((_, i) => leaders[i] === lead);
    return { type: "scatter", mode: "markers", x: of.map(([one]) => lower[one]), y: of.map(([, two]) => lower[two]), customdata: of.map(([one]) => one),
      text: of.map((pair) => text(pair).join("<br>")), hovertemplate: "%{text}<extra></extra>",
      marker: { symbol: ["circle", "circle-open", "diamond"][lead], size: 9, color: faded(colours[lead], 0.75), line: { width: lead === 1 ? 1.4 : 0 } } };
  };
  const otherOf = isMany ? new Map(pairs) : null;
  const cloud = isMany ? { rows: pairs.map(([one]) => one), group: leaders, x: pairs.map(([one]) => lower[one]), y: pairs.map(([, two]) => lower[two]),
    colours: colours.map((colour) => faded(colour, Math.max(0.15, Math.min(0.5, 2500 / pairs.length)))), text: (one) => text([one, otherOf.get(one)]) } : null;
  const range = [-0.02 * top, top];
  return {
    data: isMany ? NOTHING : [group(1), group(0), group(2)],
    cloud,
    layout: {
      xaxis: { title: { text: plain(model.networks[a].name) }, range },
      yaxis: { title: { text: plain(model.networks[b].name) }, range },
      shapes: [{ type: "line", x0: 0, y0: 0, x1: top, y1: top, line: { color: token("--muted"), width: 1, dash: "dot" } }],
    },
  };
}

function correlationTable(model) {
  const matrix = model.facts.correlations;
  if (!matrix.length) return el("div");
  const rows = matrix.flatMap((line, i) => line.map((value, j) => ({ i, j, value }))).filter(({ i, j }) => i < j);
  const table = dataTable({
    name: "correlations",
    caption: "Are the same inputs hard for both? Spearman's correlation",
    rows,
    size: 10,
    columns: [
      { title: "Network", isText: true, value: (r) => model.networks[r.i].name },
      { title: "and", isText: true, value: (r) => model.networks[r.j].name },
      { title: "Correlation", value: (r) => r.value, text: (r) => (r.value === null ? "–" : r.value.toFixed(2)),
        help: "Spearman's rank correlation of proven radii, on inputs that are right as they stand, and have an answer, for both" },
    ],
  });
  return el("div", {}, el("h3", {}, "Are the same inputs hard for both?"), table.element);
}
