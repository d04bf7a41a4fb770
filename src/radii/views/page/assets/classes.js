// Per class: robust recall at eps for every network, and over eps for one.

function classesSection(model) {
  const labels = model.classes.filter((label) => model.classSides.some((of) => of.has(label)));
  if (!labels.length) return null;
  const told = el("div", { class: "told" });
  const table = classTable(model, labels);
  const chosen = remembered("classes", { network: 0 });
  const picture = chart({
    label: "Proven robust recall of each class over epsilon",
    height: () => Math.max(220, 90 + 24 * labels.length),
    cursor: "x",
    build: () => classMap(model, labels, chosen.network),
  });
  const tell = () => told.replaceChildren(...shownNetworks(model).map((place) => el("p", {}, ...prose(spreadSentence(model, place), [model.networks[place].name]))));
  const tellNear = whenNear(told, tell);
  const update = () => { table.refresh(); tellNear(); };
  on("eps", update);
  on("shown", update);
  on("theme", table.refresh);
  tell();
  const pick = select("Network", model.networks.map((network, place) => [place, network.name]), chosen.network, (value) => { chosen.network = Number(value); picture.redraw(); });
  return section("classes", "Per class",
    "Robust recall is the share of a class's inputs that are right and stay right within ε. The spread between the best and the worst class shows how unevenly robustness is distributed.",
    told, table.element, el("h3", {}, "Every class at every ε"), el("div", { class: "row" }, pick), picture.element);
}

function recallAt(model, place, label) {
  const sides = model.classSides[place].get(label);
  return sides ? sides.shares(state.eps) : [NaN, NaN];
}

function spreadSentence(model, place) {
  const told = [...model.classSides[place]].filter(([label]) => label >= 0).map(([label, sides]) => ({ label, shares: sides.shares(state.eps), size: sides.size }));
  const { name, class_margins: margins } = model.networks[place];
  if (told.length < 2) return `${name}: there is only one class.`;
  const side = (at) => told.map((t) => t.shares[at]);
  // Who may be the weakest: proven no more than what the weakest is at most.
  const floor = Math.min(...side(1));
  const ceiling = Math.max(...side(0));
  const weakest = told.filter((t) => t.shares[0] <= floor);
  const strongest = told.filter((t) => t.shares[1] >= ceiling);
  const least = Math.max(0, ceiling - floor);
  const most = Math.max(...told.flatMap((a) => told.filter((b) => b !== a).map((b) => a.shares[1] - b.shares[0])));
  if (most <= 0) return `${name}: all classes alike, at ${percent(ceiling)}.`;
  const range = (of) => shareText(Math.min(...of.map((t) => t.shares[0])), Math.max(...of.map((t) => t.shares[1])));
  const who = (of) => `class${of.length > 1 ? "es" : ""} ${listed(of.map((t) => String(t.label)), 6)}`;
  const lows = told.map((t) => Math.max(0, t.shares[0] - margins[t.label]));
  const highs = told.map((t) => Math.min(1, t.shares[1] + margins[t.label]));
  const sure = Math.max(...lows) - Math.min(...highs);
  const beyond = sure > 0
    ? `; for all inputs of this kind it is at least ${shareEnds(sure, 1)[0]}\u00a0% (${100 * model.facts.level} % confidence)`
    : "; with so few inputs it may be chance";
  return `${name}: weakest ${who(weakest)} with ${range(weakest)}, strongest ${who(strongest)} with ${range(strongest)}. The spread is ${shareText(least, most)}${beyond}.`;
}

function classTable(model, labels) {
  const sizes = (label) => Math.max(...model.classSides.map((of) => of.get(label)?.size ?? 0));
  const columns = [
    { title: "Class", csv: "class", isText: true, value: (label) => String(label) },
    { title: "Inputs", csv: "inputs", value: sizes },
  ];
  model.networks.forEach((network, place) => columns.push({
    title: network.name,
    csv: `${network.name} proven`,
    value: (label) => recallAt(model, place, label)[0],
    node: (label) => recallCell(place, recallAt(model, place, label)),
  }));
  return dataTable({ name: "per-class", caption: "Robust recall of each class at ε", rows: labels, columns });
}

function recallCell(place, [proven, open]) {
  if (Number.isNaN(proven)) return el("span", {}, "–");
  return el("div", { class: "recall", style: { "--colour": colourOf(place) } },
    el("span", {}, shareText(proven, open)),
    el("div", { class: "bar" }, el("div", { class: "proven", style: { width: `${100 * proven}%` } }),
      el("div", { class: "open-share", style: { left: `${100 * proven}%`, width: `${100 * (open - proven)}%` } })));
}

function classMap(model, labels, place) {
  const top = model.facts.eps.top;
  const count = 160;
  const x = Array.from({ length: count }, (_, i) => ((i + 0.5) * top) / count);
  const present = labels.filter((label) => model.classSides[place].has(label)).reverse();
  const shares = present.map((label) => x.map((eps) => model.classSides[place].get(label).shares(eps)));
  return {
    data: [{ type: "heatmap", x, y: present.map(String), z: shares.map((line) => line.map(([proven]) => proven)), zmin: 0, zmax: 1,
      colorscale: "Cividis", text: shares.map((line) => line.map((pair) => shareText(...pair))),
      hovertemplate: "class %{y}, ε %{x:.4f}<br>%{text}<extra></extra>",
      colorbar: { title: { text: "proven", side: "right" }, tickformat: ".0%", thickness: 12, outlinewidth: 0 } }],
    layout: {
      xaxis: { title: { text: "radius ε" }, range: [0, top], showgrid: false },
      yaxis: { title: { text: "class" }, type: "category", showgrid: false, ticklen: 0 },
      margin: { l: 44, r: 8, t: 8, b: 46 },
    },
  };
}
