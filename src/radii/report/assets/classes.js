// Per class: robust recall at eps for every network, and over eps for one.

function classesSection(model) {
  const labels = model.classes.filter((label) => model.classSides.some((of) => of.has(label)));
  if (!labels.length) return null;
  const told = el("div", { class: "told" });
  const table = classTable(model, labels);
  const chosen = { network: 0 };
  const picture = chart({
    label: "Proven robust recall of each class over epsilon",
    cursor: "x",
    build: () => classMap(model, labels, chosen.network),
  });
  const update = () => {
    table.refresh();
    told.replaceChildren(...shownNetworks(model).map((place) => el("p", {}, spreadSentence(model, place))));
  };
  on("eps", update);
  on("shown", update);
  update();
  const pick = select("Network", model.networks.map((network, place) => [place, network.name]), 0, (value) => { chosen.network = Number(value); picture.redraw(); });
  return section("classes", "Per class",
    "Robust recall: of the inputs of a class, the share that is right and stays so within ε. The spread between classes is how unfairly robustness is dealt out.",
    told, table.element, el("h3", {}, "Every class at every ε"), el("div", { class: "row" }, pick), picture.element);
}

function recallAt(model, place, label) {
  const sides = model.classSides[place].get(label);
  return sides ? sides.shares(state.eps) : [NaN, NaN];
}

function spreadSentence(model, place) {
  const told = [...model.classSides[place]].map(([label, sides]) => ({ label, shares: sides.shares(state.eps), size: sides.size }));
  const worst = told.reduce((a, b) => (b.shares[0] < a.shares[0] ? b : a));
  const best = told.reduce((a, b) => (b.shares[1] > a.shares[1] ? b : a));
  const least = Math.max(...told.map((t) => t.shares[0])) - Math.min(...told.map((t) => t.shares[1]));
  const most = best.shares[1] - worst.shares[0];
  const few = Math.min(...told.map((t) => t.size));
  const name = model.networks[place].name;
  if (most <= 0) return `${name}: all classes alike, at ${percent(best.shares[1])}.`;
  return `${name}: class ${worst.label} is the weakest with ${shareText(...worst.shares)}, class ${best.label} the strongest with ${shareText(...best.shares)}; classes are ${shareText(Math.max(0, least), most)} apart${few < 10 ? ` (as few as ${few} ${few === 1 ? "input" : "inputs"} a class)` : ""}.`;
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
      height: Math.max(220, 90 + 24 * present.length),
      xaxis: { title: { text: "radius ε" }, range: [0, top], showgrid: false },
      yaxis: { title: { text: "class" }, type: "category", showgrid: false, ticklen: 0 },
      margin: { l: 44, r: 8, t: 8, b: 46 },
    },
  };
}
