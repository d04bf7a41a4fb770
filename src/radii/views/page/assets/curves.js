// Robust accuracy over eps, and the same seen from below: the distribution of the radius.

const MOST_STEPS = 1500;

// Edges and shares between them; beyond a screen's worth of steps, evenly spaced ones.
function stepsOf(sides, top) {
  let edges = Float64Array.from(new Set([0, ...sides.proofs, ...sides.witnesses].filter((v) => v >= 0 && v <= top))).sort();
  if (edges.length > MOST_STEPS) edges = Float64Array.from({ length: MOST_STEPS }, (_, i) => (i * top) / MOST_STEPS);
  const ends = [...edges, top];
  const proven = [];
  const open = [];
  for (let i = 0; i < edges.length; i++) {
    const [low, high] = sides.shares((ends[i] + ends[i + 1]) / 2);
    proven.push(low);
    open.push(high);
  }
  return { x: [...edges, top], proven: [...proven, proven.at(-1)], open: [...open, open.at(-1)] };
}

function curveBlock(model) {
  const top = model.facts.eps.top;
  const steps = model.networks.map((_, place) => stepsOf(model.sides[place], top));
  const chosen = remembered("curves", { isBroken: false, hasBand: model.networks.length <= 2, hasFit: false });
  const key = el("ul", { class: "key" });
  const picture = chart({
    label: "Robust accuracy over epsilon, one band a network",
    height: () => (isNarrow() ? 300 : 370),
    cursor: "x",
    key,
    build: () => ({
      data: shownNetworks(model).flatMap((place) => curveTraces(model, place, steps[place], chosen)),
      layout: {
        hovermode: "x unified",
        xaxis: { title: { text: "radius ε" }, range: [0, top], hoverformat: ".4f" },
        yaxis: { title: { text: chosen.isBroken ? "share of inputs broken within ε" : "robust accuracy" }, range: [0, 1.02], tickformat: ".0%" },
      },
    }),
  });
  const redraw = () => { key.replaceChildren(...keyItems(chosen, model.facts.level)); picture.redraw(); };
  redraw();
  on("shown", picture.redraw);
  const views = select("Show", [["kept", "robust accuracy"], ["broken", "share broken (ECDF of the radius)"]], chosen.isBroken ? "broken" : "kept", (value) => {
    chosen.isBroken = value === "broken";
    picture.redraw();
  });
  const band = checkbox(`${100 * model.facts.level} % confidence band`, chosen.hasBand, (isOn) => { chosen.hasBand = isOn; redraw(); });
  const fit = model.facts.fits?.length
    ? checkbox("best fit", chosen.hasFit, (isOn) => { chosen.hasFit = isOn; redraw(); }) : null;
  return el("div", { id: "curves", class: "block" }, el("h3", {}, "Robust accuracy over ε"), legend(model), picture.element,
    el("div", { class: "row" }, views, band, fit));
}

// What thick and thin mean, as samples of the lines themselves.
function keyItems({ hasBand, hasFit }, level) {
  const items = [["thin", "thin: proven"], ["thick", "thick: not refuted"], ["shade", "between: open"]];
  if (hasBand) items.push(["pale", `pale: ${100 * level} % confidence`]);
  if (hasFit) items.push(["dotted", "dotted: best fit"]);
  return items.map(([kind, text]) => el("li", {}, el("span", { class: `line ${kind}`, "aria-hidden": "true" }), text));
}

function curveTraces(model, place, steps, { isBroken, hasBand, hasFit = false }) {
  const network = model.networks[place];
  const colour = colourOf(place);
  const side = (values) => (isBroken ? values.map((v) => 1 - v) : values);
  const line = (values, more) => ({ type: "scatter", mode: "lines", x: steps.x, y: side(values), hoverinfo: "skip", name: plain(network.name), ...more });
  const shape = (width, dash) => ({ shape: "hv", color: colour, width, dash });
  const nothing = { shape: "hv", width: 0, color: colour };
  const traces = [];
  if (hasBand) {
    traces.push(line(steps.proven.map((v) => Math.max(0, v - network.half_width)), { line: nothing }));
    traces.push(line(steps.open.map((v) => Math.min(1, v + network.half_width)), { line: nothing, fill: "tonexty", fillcolor: faded(colour, 0.1) }));
  }
  traces.push(line(steps.proven, { line: shape(1, "solid") }));
  traces.push(line(steps.open, { line: shape(2.6, dashOf(place)), fill: "tonexty", fillcolor: faded(colour, 0.28), hoverinfo: undefined,
    hovertemplate: "%{text}", text: steps.x.map((_, i) => (isBroken ? shareText(1 - steps.open[i], 1 - steps.proven[i]) : shareText(steps.proven[i], steps.open[i]))) }));
  if (hasFit) traces.push(...fitTraces(model, place, side));
  return traces;
}
