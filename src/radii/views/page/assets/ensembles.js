// Ensembles against randomized attacks: the value over eps, and at a chosen eps who is fooled with whom,
// the defender's mix and the attacker's, in pictures.

const SHOWN_POINTS = 12;
const FEW_FEATURES = 8;

function ensemblesSection(model) {
  const { ensembles } = model.facts;
  if (!ensembles?.length) return null;
  const parts = ensembles.map((ensemble, place) => ensemblePart(model, ensemble, place, ensembles.length > 1));
  return section("ensembles", "Ensembles",
    "An attacker draws a perturbation at random, a defender draws a network. The value is the largest share of points that a randomized attack makes every network err on; the ensemble is robust for α where it is below α.",
    ...parts);
}

function ensemblePart(model, ensemble, place, isOneOfMany) {
  const part = el("div", { class: "ensemble" },
    isOneOfMany ? el("h3", {}, ensemble.place || `Ensemble ${place + 1}`) : null,
    el("p", {}, `${ensemble.networks.length} networks (${listed(ensemble.networks, 6)}), ${ensemble.inputs.length} ${ensemble.inputs.length === 1 ? "point" : "points"}, distances in ${ensemble.norm}.`),
    ensembleAlarm(ensemble));
  if (!ensemble.values.length) {
    part.append(el("p", { class: "lead" }, "No value has been measured yet."));
    return part;
  }
  const chosen = remembered(`ensemble ${place}`, { at: tellingValue(ensemble), alpha: 0.5, kind: "perturbed", isAll: false });
  const detail = el("div", {});
  const draw = () => detail.replaceChildren(...playOf(model, ensemble, place, chosen, draw));
  const picked = select("At ε", ensemble.values.map((value, at) => [at, number(value.eps, 6)]), chosen.at, (at) => choose(Number(at)));
  const choose = (at) => {
    chosen.at = at;
    picked.querySelector("select").value = at;
    draw();
  };
  part.append(valueCurve(ensemble, chosen, choose), el("div", { class: "row" }, picked), detail);
  on("theme", draw);
  draw();
  return part;
}

// The largest eps at which the answer is neither nothing nor everything, else the largest of all.
function tellingValue(ensemble) {
  const last = ensemble.values.findLastIndex(({ lower, upper }) => upper.number > 0 && lower.number < 1);
  return last < 0 ? ensemble.values.length - 1 : last;
}

function ensembleAlarm({ networks, disagreements }) {
  if (!disagreements.length) return null;
  return el("div", { class: "alarm", role: "alert" }, el("p", {}, "A replayed input contradicts claimed proofs. They are not used in any number here."),
    el("ul", {}, ...disagreements.map((one) => el("li", {}, `Input ${one.input}: ${byText(one)} claimed that nothing within ${number(one.eps)} fools ${namesOf(networks, one.networks)} together.`))));
}

function namesOf(networks, places) {
  if (places.length === networks.length && networks.length > 2) return `all ${networks.length} networks`;
  return places.map((place) => networks[place]).join(" + ") || "nobody";
}

const fractionText = ({ text, number: value }) => (text.includes("/") ? `${text} (${number(value)})` : text);
const byText = ({ by, arithmetic }) => (arithmetic ? `${by} (${arithmetic})` : by);
const valueText = ({ lower, upper }) => (lower.text === upper.text ? `exactly ${fractionText(lower)}` : `between ${fractionText(lower)} and ${fractionText(upper)}`);

// What is attained at an eps is attained beyond it, and what holds at an eps holds below: so steps.
function valueCurve(ensemble, chosen, choose) {
  const { values } = ensemble;
  const x = values.map(({ eps }) => eps);
  const told = el("p", { class: "told", "aria-live": "polite" });
  const picture = chart({
    label: "Value of the game over epsilon",
    height: () => (isNarrow() ? 260 : 320),
    onPoint: choose,
    build: () => ({
      data: [
        { side: "lower", shape: "hv", colour: token("--refuted"), name: "attained" },
        { side: "upper", shape: "vh", colour: token("--proven"), name: "at most", fill: "tonexty", fillcolor: faded(token("--proven"), 0.16) },
      ].map(({ side, shape, colour, ...more }) => ({ type: "scatter", mode: "lines+markers", x, y: values.map((value) => value[side].number),
        customdata: values.map((_, at) => at), text: values.map(valueText), hovertemplate: "ε %{x}: %{text}<extra></extra>",
        line: { shape, color: colour, width: 2.4 }, marker: { color: colour, size: 7 }, ...more })),
      layout: {
        showlegend: true,
        legend: { orientation: "h", y: 1.14, x: 0 },
        xaxis: { title: { text: "radius ε" } },
        yaxis: { title: { text: "value" }, range: [-0.03, 1.03] },
        shapes: [{ type: "line", xref: "paper", x0: 0, x1: 1, y0: chosen.alpha, y1: chosen.alpha, line: { color: token("--muted"), width: 1, dash: "dot" } }],
      },
    }),
  });
  const box = el("input", { type: "number", min: 0, max: 1, step: 0.05, value: chosen.alpha, oninput: () => {
    const alpha = Number(box.value);
    if (!(alpha > 0 && alpha <= 1)) return;
    chosen.alpha = alpha;
    update();
    picture.redraw();
  } });
  const update = () => { told.textContent = robustText(values, chosen.alpha); };
  update();
  return el("div", {}, el("div", { class: "row" }, el("label", { class: "field" }, el("span", {}, "α"), box)), told, picture.element);
}

function robustText(values, alpha) {
  const robust = values.findLast(({ upper }) => upper.number < alpha);
  const broken = values.find(({ lower }) => lower.number >= alpha);
  const proven = robust ? `proven robust up to ε = ${number(robust.eps, 6)}` : "nowhere proven robust";
  return `For α = ${number(alpha)}: ${proven}; ${broken ? `broken from ε = ${number(broken.eps, 6)} on` : "nowhere broken"}.`;
}

function playOf(model, ensemble, place, chosen, redraw) {
  const value = ensemble.values[chosen.at];
  const answers = value.questions === 1 ? "1 question was" : `${whole(value.questions)} questions were`;
  return [
    el("p", { class: "live" }, `At ε = ${number(value.eps, 6)} the value is ${valueText(value)}.`),
    el("p", { class: "lead" }, `A replayed attack makes every network err on a share of at least ${fractionText(value.lower)} of the points, on average over its draws; with the defence below, no attack expects more than ${fractionText(value.upper)}. ${answers} asked at this ε, in ${duration(value.seconds)}.`),
    el("h3", {}, "The defender's mix"), defenceTable(ensemble, value, place),
    el("h3", {}, "Who is fooled with whom"), togetherTable(ensemble, value, place),
    el("h3", {}, "The best randomized attack"), ...attackParts(model, ensemble, value, chosen, redraw),
  ];
}

function defenceTable({ networks }, { defence }, place) {
  return dataTable({ name: `defence-${place}`, caption: "Weights of the networks", rows: networks.map((_, i) => i), columns: [
    { title: "Network", csv: "network", isText: true, value: (i) => networks[i] },
    { title: "Weight", csv: "weight", value: (i) => defence[i].number, text: (i) => fractionText(defence[i]) },
  ] }).element;
}

function togetherTable({ networks, inputs }, { points }, place) {
  const sets = (rows, text) => ({ isText: true, wraps: true, value: (i) => rows(i).map(text).join("; "),
    node: (i) => el("div", {}, ...rows(i).map((row) => el("div", {}, text(row)))) });
  const columns = [
    { title: "Input", csv: "input", value: (i) => inputs[i].index },
    { title: "Class", csv: "label", value: (i) => inputs[i].label },
    { title: "Fooled by one perturbation", csv: "fooled_together", ...sets((i) => (points[i].fooled.length ? points[i].fooled : [[]]), (set) => namesOf(networks, set)) },
    { title: "Proven impossible", csv: "impossible", ...sets((i) => points[i].impossible, (one) => `${namesOf(networks, one.networks)}, by ${byText(one)}${one.eps > 0 ? ` at ${number(one.eps)}` : ""}`) },
    { title: "Undecided", csv: "undecided", ...sets((i) => points[i].undecided, (set) => namesOf(networks, set)) },
  ].filter((column) => column.csv !== "undecided" || points.some((point) => point.undecided.length));
  return dataTable({ name: `together-${place}`, caption: "Who is fooled with whom at each point", rows: inputs.map((_, i) => i), columns }).element;
}

function attackParts(model, ensemble, value, chosen, redraw) {
  const kinds = select("Show", [["perturbed", "perturbed inputs"], ["difference", "differences"], ["input", "inputs as they are"]], chosen.kind,
    (kind) => { chosen.kind = kind; redraw(); });
  const count = ensemble.inputs.length;
  const rest = count > SHOWN_POINTS && !chosen.isAll
    ? el("button", { type: "button", onclick: () => { chosen.isAll = true; redraw(); } }, `Show all ${whole(count)} points`) : null;
  const grids = value.attack.map((attempt) => [
    el("h4", {}, `With probability ${fractionText(attempt.probability)}`),
    el("div", { class: "other-grid" }, ...attempt.points.slice(0, chosen.isAll ? count : SHOWN_POINTS)
      .map((perturbed, point) => perturbedFigure(model, ensemble, ensemble.inputs[point], perturbed, chosen.kind))),
  ]);
  return [el("div", { class: "row" }, ensemble.shape.length === 3 ? kinds : null, rest), ...grids.flat()];
}

function perturbedFigure(model, ensemble, input, perturbed, kind) {
  const where = el("div", { class: "blank" });
  const fooled = namesOf(ensemble.networks, perturbed.fooled);
  if (input.at >= 0) model.pictures(null).then((arrays) => where.replaceWith(...perturbedNodes(ensemble, arrays, input, perturbed, kind, fooled)));
  else where.textContent = "no picture";
  return el("figure", { class: "perturbed" }, where, el("figcaption", {}, el("b", {}, `Input ${input.index}, class ${input.label}`),
    el("span", {}, perturbed.distance === 0 ? "as it is" : `changed by ${number(perturbed.distance)}`), el("span", {}, `fools ${fooled}`)));
}

function perturbedNodes({ shape, pixel_range: range }, arrays, input, { at, scale, distance }, kind, fooled) {
  const isMissing = at < 0 && distance > 0;
  if (shape.length === 1) {
    const values = Array.from({ length: shape[0] }, (_, k) => arrays.ensemble_values[input.at + k] + (at < 0 ? 0 : arrays.ensemble_values[at + k]));
    return [el("div", { class: "blank" }, isMissing || shape[0] > FEW_FEATURES ? "no picture" : values.map((value) => number(value, 3)).join(", "))];
  }
  if (isMissing && kind !== "input") return [el("div", { class: "blank" }, "no picture")];
  const pixels = arrays.ensemble_pixels;
  const canvas = at < 0 || kind === "input" ? paintInput(pixels, input.at, shape)
    : kind === "difference" ? paintDifference(pixels, at, shape) : paintBroken(pixels, input.at, at, scale / range, shape);
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `Input ${input.index}, ${kind}, fools ${fooled}`);
  canvas.dataset.picture = kind;
  return [canvas];
}
