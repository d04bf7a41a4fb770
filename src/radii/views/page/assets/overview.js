// First one sentence, the curve and what breaks first; then robust accuracy of every network at eps.

function alarmSection(model) {
  const told = model.facts.disagreements;
  if (!told.length) return null;
  const items = told.slice(0, 50).map((one) => el("li", {},
    el("button", { type: "button", class: "link", onclick: () => openDetail(model, one.row) }, `${one.network}, input ${one.input}`),
    `: ${one.text}`));
  const title = told.length === 1 ? "A claimed proof is wrong" : `${whole(told.length)} claimed proofs are wrong`;
  return el("section", { class: "alarm", role: "alert", id: "disagreements" }, el("h2", {}, title),
    el("p", {}, "A replayed counterexample contradicts them. The claims, and all others of the same tool on the same input, are not used in any number on this page."),
    el("ul", {}, ...items), told.length > 50 ? el("p", {}, `… and ${whole(told.length - 50)} more.`) : null);
}

// The first screen. All other sentences fold away; notes, which warn, do not.
function openingSection(model) {
  const { summary, notes, own_notes } = model.facts;
  const names = model.networks.map(({ name }) => name);
  const sentences = el("div", { class: "sentences" }, ...summary.map((text) => el("p", {}, ...prose(text, names))));
  const warnings = notes.length ? el("ul", { class: "notes", "aria-label": "Notes" }, ...notes.map((text) => el("li", {}, text))) : null;
  const said = own_notes.length ? el("div", { class: "own-notes", role: "note" }, ...own_notes.map((text) => el("p", {}, text))) : null;
  if (!model.networks.length) return section("summary", "Summary", null, said, sentences, warnings);
  const live = el("p", { class: "live", id: "live", role: "heading", "aria-level": 2, "aria-live": "polite" });
  const update = () => { live.replaceChildren(...prose(liveSentence(model), names)); };
  on("eps", update);
  update();
  return el("section", { id: "summary", class: "card", "aria-label": "What was found" }, live, said,
    el("div", { class: "opening" }, curveBlock(model), galleryBlock(model)),
    warnings, folded("sentences", "More about these results: what was measured, how tight the brackets are, what it cost", sentences));
}

// Open or not, it stays so when the page is drawn again.
function folded(name, title, ...children) {
  const view = remembered(`folded ${name}`, { isOpen: false });
  const box = el("details", { class: "folded", open: view.isOpen, ontoggle: () => { view.isOpen = box.open; } }, el("summary", {}, title), ...children);
  return box;
}

function liveSentence(model) {
  const told = model.networks.map((network, place) => ({ name: network.name, shares: model.sides[place].shares(state.eps) }));
  const one = ({ name, shares: [proven, open] }) => `${name} stays right on ${shareText(proven, open)} of its inputs`;
  const within = `Within ε = ${number(state.eps)}`;
  if (told.length === 1) return `${within}, ${one(told[0])}.`;
  const best = told.reduce((a, b) => (b.shares[0] > a.shares[0] ? b : a));
  const worst = told.reduce((a, b) => (b.shares[1] < a.shares[1] ? b : a));
  const leaders = told.filter((t) => t.shares[1] >= best.shares[0]);
  if (best.shares[0] <= worst.shares[1]) {
    const low = Math.min(...told.map((t) => t.shares[0]));
    const high = Math.max(...told.map((t) => t.shares[1]));
    return `${within}, ${shareText(low, high)} of the inputs stay right, and no network is shown to lead the others.`;
  }
  const rest = `; ${worst.name} on ${shareText(...worst.shares)}.`;
  if (leaders.length === 1) return `${within}, ${one(best)}${rest}`;
  const together = [Math.min(...leaders.map((t) => t.shares[0])), Math.max(...leaders.map((t) => t.shares[1]))];
  return `${within}, ${listed(leaders.map((t) => t.name))} stay right on ${shareText(...together)} of their inputs${rest}`;
}

function accuracySection(model) {
  const bars = model.networks.map((network, place) => accuracyBar(model, network, place));
  const list = el("div", { class: "bars" }, ...bars.map((bar) => bar.element));
  const update = () => bars.forEach((bar) => bar.update());
  on("eps", update);
  on("theme", update);
  update();
  return section("accuracy", "Robust accuracy at ε",
    "The share of all inputs that are right, and stay right under every change up to ε. Right means classified correctly, or having the property that was asked for.",
    barKey(), list, accuracyTable(model).element);
}

const barKey = () => el("ul", { class: "key" }, ...[
  ["proven", "proven"], ["open-share", "neither proven nor refuted"], ["rest", "refuted by a counterexample"], ["tick", "accuracy without any change (ε = 0)"],
].map(([kind, text]) => el("li", {}, el("span", { class: "bar sample", "aria-hidden": "true" }, el("span", { class: kind })), text)));

function accuracyBar(model, network, place) {
  const proven = el("div", { class: "proven" });
  const open = el("div", { class: "open-share" });
  const plainMark = el("div", { class: "tick", title: `Without any change: ${percent(network.accuracy)}`, style: { left: `${100 * network.accuracy}%` } });
  const value = el("span", { class: "value" });
  const name = el("span", { class: "name" }, network.name);
  const element = el("div", { class: "bar-row" }, name, el("div", { class: "bar" }, proven, open, plainMark), value);
  return { element, update() {
    const [low, high] = model.sides[place].shares(state.eps);
    const colour = colourOf(place);
    element.style.setProperty("--colour", colour);
    proven.style.width = `${100 * low}%`;
    open.style.left = `${100 * low}%`;
    open.style.width = `${100 * (high - low)}%`;
    value.textContent = shareText(low, high);
  } };
}

function accuracyTable(model) {
  const { networks, sides } = model;
  const at = (place) => sides[place].shares(state.eps);
  const table = dataTable({
    name: "robust-accuracy",
    caption: "Networks side by side",
    rows: networks.map((_, place) => place),
    columns: [
      { title: "Network", isText: true, value: (i) => networks[i].name },
      { title: "Inputs", value: (i) => networks[i].inputs, text: (i) => whole(networks[i].inputs) },
      { title: "Accuracy", value: (i) => networks[i].accuracy, text: (i) => percent(networks[i].accuracy) },
      { title: "Proven at ε", csv: "proven", value: (i) => at(i)[0], text: (i) => `${shareEnds(...at(i))[0]}\u00a0%` },
      { title: "Not refuted at ε", csv: "not_refuted", value: (i) => at(i)[1], text: (i) => `${shareEnds(...at(i))[1]}\u00a0%` },
      { title: `${100 * model.facts.level} % band`, csv: "band_low", help: "For all inputs of this kind, at every ε at once (Dvoretzky, Kiefer, Wolfowitz)",
        value: (i) => Math.max(0, at(i)[0] - networks[i].half_width),
        text: (i) => shareText(Math.max(0, at(i)[0] - networks[i].half_width), Math.min(1, at(i)[1] + networks[i].half_width)) },
      { title: "Median radius", csv: "median_lower", help: "Of inputs that are right without any change",
        value: (i) => networks[i].median?.[0] ?? null,
        text: (i) => networks[i].median ? bracketText(networks[i].median[0], networks[i].median[1] ?? Infinity) : "-" },
    ],
  });
  on("eps", () => table.refresh());
  return table;
}
