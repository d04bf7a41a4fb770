// Every input as a point: how far it is from breaking, a strip a network. A click opens it.

const MOST_SVG_POINTS = 3000;

function quantileAt(sorted, share) {
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(share * sorted.length - 1e-9) - 1))];
}

// A fixed scatter, so that a point keeps its place when the chart is drawn again.
const scatterOf = (row) => (((row * 2654435761) >>> 0) / 2 ** 32 - 0.5) * 0.56;

function pointsSection(model) {
  const chosen = remembered("points", { label: "all" });
  const picture = chart({
    label: "The radius of every input, one strip a network; the table of brackets below has the same data",
    height: () => 80 + shownNetworks(model).length * (shownNetworks(model).length > 8 ? 52 : 84),
    cursor: "x",
    onPoint: (row) => openDetail(model, row),
    build: () => {
      const networks = shownNetworks(model);
      const rowsOf = networks.map((place) => model.rowsOf[place].filter((row) => chosen.label === "all" || model.rows.label[row] === Number(chosen.label)));
      const count = rowsOf.reduce((sum, rows) => sum + rows.length, 0);
      const isMany = count > MOST_SVG_POINTS;
      return {
        data: isMany ? NOTHING : networks.flatMap((place, at) => stripTraces(model, place, at, rowsOf[at])),
        cloud: isMany ? stripCloud(model, networks, rowsOf) : null,
        layout: {
          shapes: networks.flatMap((place, at) => boxShapes(model, place, at, rowsOf[at])),
          xaxis: { title: { text: "radius" }, range: [-0.015 * model.facts.eps.top, model.facts.eps.top] },
          yaxis: { range: [networks.length - 0.45, -0.55], showgrid: false, ticklen: 0, tickvals: networks.map((_, at) => at),
            ticktext: networks.map((place) => shortened(model.networks[place].name)) },
          margin: { l: 20, r: 16, t: 8, b: 46 },
        },
      };
    },
  });
  on("shown", picture.redraw);
  const classes = select("Class", [["all", "all"], ...model.classes.map((label) => [label, label])], chosen.label, (value) => {
    chosen.label = value;
    picture.redraw();
  });
  return section("points", "Every input",
    "Each point is one input at its proven radius, with a line up to its closest counterexample. × marks misclassified inputs, ▹ inputs without a counterexample. Boxes hold the middle half of the inputs, with a bar at the median; they leave out inputs without any answer (▹ at 0). Click a point to see the input and what breaks it.",
    el("div", { class: "row" }, classes), legend(model), picture.element);
}

const shortened = (name) => {
  const most = isNarrow() ? 12 : 24;
  return plain(name.length > most ? `${name.slice(0, most - 1)}…` : name);
};

const NOTHING = [{ type: "scatter", x: [], y: [] }];

function stripCloud(model, networks, rowsOf) {
  const rows = rowsOf.flat();
  const group = rowsOf.flatMap((of, at) => of.map(() => at));
  return { rows, group, x: rows.map((r) => model.rows.lower[r]), y: rows.map((r, i) => group[i] + scatterOf(r)),
    colours: networks.map((place, at) => faded(colourOf(place), Math.max(0.12, Math.min(0.5, 1500 / rowsOf[at].length)))), text: (row) => pointLines(model, row) };
}

function stripTraces(model, place, at, rows) {
  const { lower, upper } = model.rows;
  const colour = colourOf(place);
  const kinds = [
    { rows: rows.filter((r) => upper[r] > 0 && Number.isFinite(upper[r])), symbol: "circle" },
    { rows: rows.filter((r) => upper[r] === 0), symbol: "x-thin" },
    { rows: rows.filter((r) => !Number.isFinite(upper[r])), symbol: "triangle-right-open" },
  ];
  return kinds.filter((kind) => kind.rows.length).map((kind) => ({
    type: "scatter",
    mode: "markers",
    x: kind.rows.map((r) => lower[r]),
    y: kind.rows.map((r) => at + scatterOf(r)),
    customdata: kind.rows,
    text: kind.rows.map((r) => pointLines(model, r).map(plain).join("<br>")),
    hovertemplate: "%{text}<extra></extra>",
    error_x: kind.symbol !== "circle" ? undefined
      : { type: "data", symmetric: false, array: kind.rows.map((r) => upper[r] - lower[r]), arrayminus: kind.rows.map(() => 0), color: faded(colour, 0.5), thickness: 1.2, width: 0 },
    marker: { symbol: kind.symbol, size: 8, color: faded(colour, 0.8),
      line: { width: kind.symbol === "circle" ? 0 : 1.6, color: colour } },
  }));
}

function pointLines(model, row) {
  const { lower, upper, label, position, witness_class: becomes, target } = model.rows;
  const parts = [model.networks[model.rows.network[row]].name, `input ${position[row]}, class ${classText(model, label[row])}`];
  if (target[row] >= 0) parts.push(`against class ${classText(model, target[row])}`);
  parts.push(`radius ${bracketText(lower[row], upper[row])}`);
  if (becomes[row] >= 0) parts.push(`becomes ${classText(model, becomes[row])}`);
  return parts;
}

// Nothing is proven and nothing witnessed: no number stands for such a result.
const isUnsolved = ({ lower, upper, holds }, row) => Boolean(holds[row]) && lower[row] === 0 && !Number.isFinite(upper[row]);

function boxShapes(model, place, at, rows) {
  const { lower, upper, holds } = model.rows;
  const right = rows.filter((r) => holds[r] && !isUnsolved(model.rows, r));
  if (right.length < 4) return [];
  const lows = Float64Array.from(right, (r) => lower[r]).sort();
  const highs = Float64Array.from(right, (r) => upper[r]).sort();
  const edge = 2 * model.facts.eps.top;
  const span = (from, to, height, fill, line) => ({ type: "rect", layer: "below", x0: from, x1: Math.min(to, edge), y0: at - height, y1: at + height, fillcolor: fill, line });
  const colour = colourOf(place);
  const median = [quantileAt(lows, 0.5), Math.min(quantileAt(highs, 0.5), edge)];
  return [
    span(quantileAt(lows, 0.05), quantileAt(highs, 0.95), 0.015, faded(colour, 0.5), { width: 0 }),
    span(quantileAt(lows, 0.25), quantileAt(highs, 0.75), 0.33, faded(colour, 0.16), { width: 1, color: faded(colour, 0.6) }),
    span(median[0], median[1], 0.33, token("--ink"), { width: 1.5, color: token("--ink") }),
  ];
}
