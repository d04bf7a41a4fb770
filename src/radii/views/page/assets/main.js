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
      ["Thin and thick", "of a curve: the thin line is what is proven, the thick one what no counterexample refutes. The tick in a bar is accuracy without any change."],
      ["Missing answer", "a time-out, a crash or an undecided question. It proves nothing and refutes nothing."],
    ].map(([word, meaning]) => el("p", {}, el("b", {}, `${word}: `), meaning))),
    el("p", {}, `Made by radii ${facts.version} on ${facts.made.slice(0, 16).replace("T", " ")} UTC. ${heldIn("facts") ? "This file is complete: it asks the network for nothing." : "This page is live: it asks nobody but the radii serve it came from."}`));
}

const CONTENTS = { summary: "Overview", accuracy: "At ε", points: "Inputs", pairs: "Pairs", classes: "Classes", targets: "Targets",
  statistics: "Tests and fits", quality: "Quality", brackets: "Brackets", ensembles: "Ensembles" };

// The table of contents, beside the slider; it marks the part that is being read.
function setUpContents() {
  const parts = [...byId("sections").children].filter((part) => part.id in CONTENTS);
  const links = new Map(parts.map((part) => [part, el("a", { href: `#${part.id}` }, CONTENTS[part.id])]));
  byId("contents").replaceChildren(...links.values());
  const mark = () => {
    const edge = byId("controls").getBoundingClientRect().bottom + innerHeight / 4;
    const read = parts.findLast((part) => part.getBoundingClientRect().top < edge) ?? parts[0];
    for (const [part, link] of links) {
      if (part !== read) link.removeAttribute("aria-current");
      else if (!link.hasAttribute("aria-current")) {
        link.setAttribute("aria-current", "true");
        byId("contents").scrollLeft = link.offsetLeft - 40;
      }
    }
  };
  window.addEventListener("scroll", mark, { passive: true, signal: state.life.signal });
  mark();
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
  const ofNetworks = [accuracySection, pointsSection, pairsSection, classesSection, targetsSection, statisticsSection, qualitySection, bracketsSection];
  byId("sections").replaceChildren(...[alarmSection, openingSection, ...(model.networks.length ? ofNetworks : []), ensemblesSection]
    .map((make) => make(model)).filter(Boolean));
  setUpContents();
  footer(model);
  setUpDetail(model);
  if (document.documentElement.dataset.ready || !location.hash) window.scrollTo(0, scrollY);
  else document.getElementById(location.hash.slice(1))?.scrollIntoView();
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
