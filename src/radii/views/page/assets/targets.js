// Where inputs go when they break: class by class, within eps.

const MOST_MATRIX_CLASSES = 24;
const HOT = 0.8; // of a cell's colour: beyond, dark letters are hard to read on it

function targetsSection(model) {
  const chosen = remembered("targets", { network: 0 });
  const holder = el("div");
  const table = dataTable({
    name: "per-target",
    caption: wording(model).caption,
    rows: targetPairs(model, chosen.network),
    size: 12,
    sort: { column: 3, down: true },
    columns: [
      { title: "Class", csv: "class", value: (p) => p.label },
      { title: model.facts.has_targets ? "Target" : "Becomes", csv: "target", value: (p) => p.target },
      { title: model.facts.has_targets ? "Inputs" : "Inputs that go there", csv: "inputs", value: (p) => p.uppers.length },
      { title: "Within ε", csv: "within_eps", value: (p) => within(p), help: wording(model).within },
      { title: "Closest", csv: "closest", value: (p) => p.uppers[0], text: (p) => number(p.uppers[0]), help: "The distance of the closest such counterexample" },
      { title: "Median", csv: "median", value: (p) => quantileAt(p.uppers, 0.5), text: (p) => number(quantileAt(p.uppers, 0.5)) },
    ],
  });
  const draw = () => holder.replaceChildren(targetMatrix(model, chosen.network));
  const drawNear = whenNear(holder, draw);
  const update = (isNew) => {
    if (isNew) table.setRows(targetPairs(model, chosen.network));
    else table.refresh();
    drawNear();
  };
  on("eps", () => update(false));
  draw();
  const pick = select("Network", model.networks.map((network, place) => [place, network.name]), chosen.network, (value) => { chosen.network = Number(value); update(true); });
  return section("targets", "Per target",
    wording(model).lead,
    el("div", { class: "row" }, pick), holder, table.element);
}

// What a pair of class and target says depends on what was measured.
function wording(model) {
  if (model.facts.has_targets && !model.facts.targets_are_become) {
    return {
      verb: "is reached by",
      caption: "Pairs of classes: which target's output reaches the label's",
      within: "How many have a counterexample at a distance of at most ε where the target's output is at least the label's",
      lead: "Each input was measured against each target class (one-to-one). A cell is the share of a class for which the target's output reaches the label's within ε; what the network then answers may be a third class.",
    };
  }
  return {
    verb: "becomes",
    caption: "Pairs of classes: who becomes what",
    within: "How many have a counterexample that is seen as this class at a distance of at most ε",
    lead: model.facts.has_targets
      ? "Each input was measured against each target class (become). A cell is the share of a class that can be turned into the target within ε."
      : "Which class the closest counterexample is seen as. A cell is the share of a class that breaks into another within ε.",
  };
}

const within = (pair) => countWhile(pair.uppers, (value) => value <= state.eps);

function targetPairs(model, place) {
  model.pairsOf ??= new Map();
  if (model.pairsOf.has(place)) return model.pairsOf.get(place);
  const { label, target, witness_class: becomes, upper } = model.rows;
  const found = new Map();
  for (const row of model.rowsOf[place]) {
    const goal = target[row] >= 0 ? target[row] : becomes[row];
    if (goal < 0) continue;
    const key = label[row] * 65536 + goal;
    if (!found.has(key)) found.set(key, { label: label[row], target: goal, rows: [], uppers: [] });
    found.get(key).rows.push(row);
    found.get(key).uppers.push(upper[row]);
  }
  for (const pair of found.values()) pair.uppers = Float64Array.from(pair.uppers).sort();
  model.pairsOf.set(place, [...found.values()]);
  return model.pairsOf.get(place);
}

function targetMatrix(model, place) {
  const { classes } = model;
  if (classes.length > MOST_MATRIX_CLASSES) return el("p", { class: "lead" }, `With ${classes.length} classes, the table of pairs is easier to read than a matrix.`);
  const pairs = new Map(targetPairs(model, place).map((pair) => [`${pair.label}|${pair.target}`, pair]));
  const head = el("tr", {}, el("th", { scope: "col" }, `class ↓ ${wording(model).verb} →`), ...classes.map((target) => el("th", { scope: "col" }, String(target))));
  const lines = classes.map((label) => el("tr", {}, el("th", { scope: "row" }, String(label)), ...classes.map((target) => {
    const pair = pairs.get(`${label}|${target}`);
    if (label === target) return el("td", { class: "diagonal" }, "");
    const count = pair ? within(pair) : 0;
    const size = model.facts.has_targets ? pair?.uppers.length ?? 0 : model.classSides[place].get(label)?.size ?? 0;
    const share = size ? count / size : 0;
    return el("td", { style: { "--heat": `${Math.round(100 * share)}%` }, class: share > HOT ? "hot" : null,
      title: `class ${label} ${wording(model).verb} ${target} within ε: ${count} of ${size}` }, count ? `${Math.round(100 * share)}` : "");
  })));
  return matrixTable(`${model.networks[place].name}: per cent of each class that ${wording(model).verb} another within ε = ${number(state.eps)}`, head, lines);
}
