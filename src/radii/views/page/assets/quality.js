// How good the measurement itself is, and all brackets.

const UNITS = {
  count: (value) => whole(value),
  share: (value) => percent(value),
  radius: (value) => number(value, 3),
  seconds: (value) => duration(value),
};

// One column for each statistic that any network has; the two ends of a bracket are one column.
function qualitySection(model) {
  const of = (i) => model.networks[i].statistics;
  const columns = [
    { title: "Network", isText: true, value: (i) => model.networks[i].name },
    { title: "Instances", value: (i) => model.networks[i].instances, text: (i) => whole(model.networks[i].instances) },
    ...model.facts.catalogue.map((one) => statisticColumn(one, of)),
  ].filter((column, place) => place === 0 || model.networks.some((_, i) => column.value(i) !== null));
  const table = dataTable({ name: "quality", caption: "Quality of the measurement", rows: model.networks.map((_, i) => i), columns });
  return section("quality", "How well is it known?",
    "A small gap means that proofs and counterexamples nearly meet. Missing answers never move a bracket; they leave it wide. Shares and gaps count only inputs that are right without any change.",
    table.element);
}

function statisticColumn({ name, title, unit, about }, of) {
  const heading = { title: title[0].toUpperCase() + title.slice(1), csv: name, help: about[0].toUpperCase() + about.slice(1) };
  if (unit === "bracket") {
    const ends = (i) => [of(i)[`${name}_lower`], of(i)[`${name}_upper`] ?? Infinity];
    return { ...heading, value: (i) => of(i)[`${name}_lower`], text: (i) => (ends(i)[0] === null ? "–" : bracketText(...ends(i))) };
  }
  return { ...heading, value: (i) => of(i)[name], text: (i) => (of(i)[name] === null ? "–" : UNITS[unit](of(i)[name])) };
}

function bracketsSection(model) {
  const { rows, networks } = model;
  const chosen = remembered("brackets", { network: "all", label: "all", kind: "all", input: "" });
  const everything = Array.from({ length: model.size }, (_, row) => row);
  const kinds = [
    ["all", "all", () => true],
    ["wrong", "misclassified", (r) => !rows.correct[r]],
    ["proven", "proven at ε", (r) => rows.lower[r] >= state.eps && rows.upper[r] > state.eps],
    ["refuted", "refuted at ε", (r) => rows.upper[r] <= state.eps],
    ["open", "open at ε", (r) => rows.lower[r] < state.eps && rows.upper[r] > state.eps],
    ["missing", "with missing answers", (r) => rows.missing[r] > 0],
  ];
  const matching = () => {
    const test = kinds.find(([name]) => name === chosen.kind)[2];
    return everything.filter((r) => (chosen.network === "all" || rows.network[r] === Number(chosen.network))
      && (chosen.label === "all" || rows.label[r] === Number(chosen.label))
      && (chosen.input === "" || rows.position[r] === Number(chosen.input)) && test(r));
  };
  const columns = [
    { title: "Input", csv: "input", value: (r) => rows.position[r] },
    { title: "Network", csv: "network", isText: true, value: (r) => networks[rows.network[r]].name },
    { title: "Class", csv: "label", value: (r) => rows.label[r] },
    { title: "Predicted", csv: "predicted", value: (r) => rows.predicted[r] },
    { title: "Target", csv: "target", value: (r) => (rows.target[r] < 0 ? null : rows.target[r]) },
    { title: "Proven", csv: "lower", value: (r) => rows.lower[r], text: (r) => number(rows.lower[r], 6) },
    { title: "Counterexample", csv: "upper", value: (r) => rows.upper[r], text: (r) => number(rows.upper[r], 6) },
    { title: "Gap", csv: "gap", value: (r) => rows.upper[r] - rows.lower[r], text: (r) => number(rows.upper[r] - rows.lower[r], 3) },
    { title: "Becomes", csv: "witness_class", value: (r) => (rows.witness_class[r] < 0 ? null : rows.witness_class[r]) },
    { title: "Questions", csv: "queries", value: (r) => rows.queries[r] },
    { title: "Missing", csv: "missing", value: (r) => rows.missing[r] },
    { title: "Seconds", csv: "seconds", value: (r) => rows.seconds[r], text: (r) => (Number.isNaN(rows.seconds[r]) ? "–" : rows.seconds[r].toFixed(2)) },
  ].filter((column) => column.csv !== "target" || model.facts.has_targets);
  const table = dataTable({ name: "brackets", caption: "Every bracket", rows: matching(), columns,
    onRow: (row, order) => openDetail(model, row, order), describe: (r) => `Open input ${rows.position[r]} of ${networks[rows.network[r]].name}` });
  const update = () => table.setRows(matching());
  on("eps", () => { if (["proven", "refuted", "open"].includes(chosen.kind)) update(); });
  const choose = (name) => (value) => { chosen[name] = value; update(); };
  const position = el("input", { type: "number", min: 0, placeholder: "any", value: chosen.input, oninput: () => choose("input")(position.value) });
  const filters = el("div", { class: "row" },
    select("Network", [["all", "all"], ...networks.map((network, place) => [place, network.name])], chosen.network, choose("network")),
    select("Class", [["all", "all"], ...model.classes.map((label) => [label, label])], chosen.label, choose("label")),
    select("State", kinds.map(([name, text]) => [name, text]), chosen.kind, choose("kind")),
    el("label", { class: "field" }, el("span", {}, "Input"), position));
  return section("brackets", "Every bracket",
    "One row for each input of each network. Click a row to see the input, its counterexample and how its bracket came about.", filters, table.element);
}
