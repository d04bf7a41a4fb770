// The most fragile inputs: right as they stand, and broken by the smallest changes.

const FIRST_SHOWN = 6;
const MOST_CHANGES = 3;

function galleryBlock(model) {
  const chosen = remembered("gallery", { network: "all", count: FIRST_SHOWN });
  const grid = el("div", { class: "gallery-grid" });
  const more = el("button", { type: "button", class: "quiet", onclick: () => { chosen.count += FIRST_SHOWN; draw(); } }, "Show more");
  const draw = () => {
    const found = fragileRows(model, chosen.network);
    grid.replaceChildren(...found.slice(0, chosen.count).map((row) => fragileCard(model, row, found)));
    if (!found.length) grid.replaceChildren(el("p", { class: "lead" }, "No input that is right without any change has a known counterexample."));
    more.hidden = found.length <= chosen.count;
    mark();
  };
  const mark = () => { for (const card of grid.querySelectorAll(".fragile")) card.classList.toggle("within", model.rows.upper[card.dataset.row] <= state.eps); };
  on("eps", mark);
  on("theme", draw);
  draw();
  const pick = model.networks.length > 1
    ? select("Network", [["all", "all networks"], ...model.networks.map((network, place) => [place, network.name])], chosen.network,
      (value) => { Object.assign(chosen, { network: value, count: FIRST_SHOWN }); draw(); }) : null;
  return el("div", { id: "gallery", class: "block" }, el("h3", {}, "What breaks first"),
    el("p", { class: "lead" }, "Inputs that are right, and become wrong after the smallest known changes. Click one for details."),
    grid, el("div", { class: "row" }, pick, more));
}

// Each input once, by its closest counterexample.
function fragileRows(model, network) {
  const { upper, holds } = model.rows;
  const rows = network === "all" ? Array.from({ length: model.size }, (_, row) => row) : [...model.rowsOf[Number(network)]];
  const seen = new Set();
  return rows.filter((row) => holds[row] && upper[row] > 0 && Number.isFinite(upper[row]))
    .sort((a, b) => upper[a] - upper[b] || a - b)
    .filter((row) => !seen.has(inputKey(model, row)) && seen.add(inputKey(model, row)));
}

function fragileCard(model, row, order) {
  const { position, label, witness_class: becomes, upper, network } = model.rows;
  const name = model.networks[network[row]].name;
  const turns = becomes[row] >= 0 ? `${classText(model, label[row])} → ${classText(model, becomes[row])}` : `class ${classText(model, label[row])}`;
  const seen = el("div", { class: "fragile-picture" });
  const card = el("button", { type: "button", class: "fragile", "data-row": row, onclick: () => openDetail(model, row, order),
    "aria-label": `Input ${position[row]} of class ${classText(model, label[row])}${becomes[row] >= 0 ? ` becomes ${classText(model, becomes[row])}` : " breaks"} at distance ${number(upper[row], 3)} on ${name}` },
  seen, el("span", { class: "fragile-text" }, el("strong", {}, turns), el("span", { class: "distance" }, number(upper[row], 3))),
  model.networks.length > 1 ? el("span", { class: "fragile-name", style: { "--colour": colourOf(network[row]) } }, name) : null);
  if (model.rows.input[row] < 0) seen.replaceChildren(...noPicture(position[row]));
  else model.pictures(row).then((arrays) => seen.replaceChildren(...fragileContent(model, arrays, row))).catch(() => seen.replaceChildren(...noPicture(position[row])));
  return card;
}

const noPicture = (position) => [el("span", { class: "blank" }, `input ${position}`)];

// Two pictures, a line, or the features that changed most.
function fragileContent(model, arrays, row) {
  const { rows, facts } = model;
  const input = rows.input[row];
  if (rows.input_at[input] < 0) return noPicture(rows.position[row]);
  const shape = facts.shapes[rows.input_shape[input]];
  if (shape.length === 3) return [inputPicture(model, arrays, row, shape), brokenPicture(model, arrays, row, shape)];
  if (isSignal(shape)) return [signalPicture(model, arrays, row, shape[0])];
  const changes = changedFeatures(model, arrays, row, shape[0]).filter(({ change }) => change !== 0).slice(0, MOST_CHANGES);
  return [el("span", { class: "changed-features" }, ...changes.map(({ k, before, change }) => el("span", {},
    el("i", {}, featureName(model, k)), el("span", {}, `${number(before, 3)} → ${number(before + change, 3)}`))))];
}
