// Putting the page together.

function footer(model) {
  const { facts } = model;
  const names = ["source", "split", "property", "norm", "grid", "search", "verifier", "arithmetic", "attack", "timeout", "budget", "seed"];
  const settings = facts.experiments.map((experiment) => el("dl", {}, ...[["directory", experiment.place], ...names.map((name) => [name, experiment[name]])]
    .filter(([, value]) => value !== null && value !== undefined && value !== "")
    .flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, String(value))])));
  for (const { place, norm, arithmetic, networks, inputs } of facts.ensembles ?? []) {
    settings.push(el("dl", {}, ...[["ensemble", place || "not kept"], ["norm", norm], ["arithmetic", arithmetic], ["networks", networks.join(", ")], ["points", inputs.length]]
      .flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, String(value))])));
  }
  const [isOpen, isExplained] = [...byId("footer").children].map((part) => part.open);
  byId("footer").replaceChildren(
    el("details", { open: isOpen }, el("summary", {}, "How this was measured"), ...settings),
    el("details", { open: isExplained }, el("summary", {}, "What the words mean"), ...[
      ["Radius", "the largest ε for which the network's answer stays right for every change of the input up to ε."],
      ["Bracket [lower, upper)", "what is known of a radius: a proof below, a counterexample above. Without a counterexample there is no upper end."],
      ["Proof", "for floating point: whatever the network's operators give in its own number type, in any order of summation. In real arithmetic: for the network without rounding."],
      ["Robust accuracy at ε", "the share of all inputs that are right and stay right within ε, as an interval from what is proven to what no counterexample refutes."],
      ["Counterexample", "an input that breaks the property, and did so again when replayed on ONNX Runtime."],
      ...(facts.ensembles?.length ? [["Value of an ensemble", "the largest mean loss that a randomized attack forces on every network at once. Where something is undecided it is an interval: what a replayed attack attains, and what proofs and the defender's mix allow at most."]] : []),
      ["Missing answer", "a time-out, a crash or an undecided question. It proves nothing and refutes nothing."],
    ].map(([word, meaning]) => el("p", {}, el("b", {}, `${word}: `), meaning))),
    el("p", {}, `Made by radii ${facts.version} on ${facts.made.slice(0, 16).replace("T", " ")} UTC. ${heldIn("facts") ? "This file is complete: it asks the network for nothing." : "This page is live: it asks nobody but the radii serve it came from."}`));
}

async function show() {
  const model = await loadModel();
  const { scrollY } = window;
  beginAnew();
  forgetCharts();
  forgetNear();
  state.shown = model.networks.map((_, place) => state.shown[place] ?? true);
  byId("title").textContent = model.facts.title;
  if (model.networks.length) setUpControls(model);
  const ofNetworks = [accuracySection, curvesSection, pointsSection, pairsSection, classesSection, targetsSection, qualitySection, bracketsSection];
  byId("sections").replaceChildren(...[alarmSection, summarySection, ...(model.networks.length ? ofNetworks : []), ensemblesSection]
    .map((make) => make(model)).filter(Boolean));
  footer(model);
  setUpDetail(model);
  window.scrollTo(0, scrollY);
  drawVisibleCharts();
  document.documentElement.dataset.ready = model.facts.made;
  return model.facts;
}

function complain(error) {
  byId("sections").replaceChildren(el("p", { class: "alarm", role: "alert" }, `The page cannot be drawn: ${error.message}`));
  throw error;
}

setUpTheme();
if (heldIn("facts")) show().catch(complain);
else followRuns();
