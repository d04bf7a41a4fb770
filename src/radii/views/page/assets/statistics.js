// Tests between networks and between classes, and parametric fits: what radii compare prints.

const pText = (p) => (p === null || p === undefined ? "–" : p < 0.001 ? "< 0.001" : p.toFixed(3));

function statisticsSection(model) {
  const { fits = [], tests = [], class_tests: ofClasses = [] } = model.facts;
  if (!fits.length && !tests.length && !ofClasses.length) return null;
  return section("statistics", "Tests and fits",
    "Computed on inputs that are right without any change. p‑values are corrected for several tests by Holm's procedure; below 0.05, chance is an unlikely explanation.",
    ...(tests.length ? networkTests(model, tests) : []), ...(ofClasses.length ? classTests(model, ofClasses) : []), ...(fits.length ? fitTable(model, fits) : []));
}

function networkTests(model, tests) {
  const names = [...new Set(tests.flatMap(({ a, b }) => [a, b]))];
  const cells = new Map(tests.flatMap((test) => [[`${test.a}|${test.b}`, test], [`${test.b}|${test.a}`, test]]));
  const matrix = names.length > 2 ? ksMatrix("Kolmogorov-Smirnov statistics between networks", names, (one, two) => cells.get(`${one}|${two}`)) : null;
  const table = dataTable({
    name: "tests",
    caption: "Do the radii of two networks differ?",
    rows: tests,
    size: 10,
    columns: [
      { title: "Network", csv: "first", isText: true, value: (t) => t.a },
      { title: "and", csv: "second", isText: true, value: (t) => t.b },
      { title: "KS", csv: "ks", help: "Kolmogorov-Smirnov: the largest distance between the distributions of the proven radii", value: (t) => t.statistic, text: (t) => (t.statistic === null ? "–" : t.statistic.toFixed(3)) },
      { title: "p (KS)", csv: "ks_p", help: "After Holm's correction; takes the networks' inputs as independent samples", value: (t) => t.adjusted, text: (t) => pText(t.adjusted) },
      { title: "p (permutation)", csv: "permutation_p", help: "After Holm's correction; knows brackets and, where inputs are the same, exchanges the two of an input", value: (t) => t.permutation, text: (t) => pText(t.permutation) },
      { title: "Cliff's delta", csv: "delta_least", help: "How much more often the first has the larger radius than the smaller: from -1 to 1", value: (t) => t.delta[0],
        text: (t) => [...new Set(t.delta.map((end) => end.toFixed(2).replace("-", "−")))].join(" to ") },
    ],
  });
  return [el("h3", {}, "Do the networks differ?"), matrix, folded("verdicts", "In words", ...tests.map((test) => el("p", {}, ...prose(test.verdict, [test.a, test.b])))), table.element].filter(Boolean);
}

function classTests(model, ofClasses) {
  const chosen = remembered("class tests", { at: 0 });
  const holder = el("div");
  const draw = () => {
    const { network, classes, statistics, adjusted, sides } = ofClasses[Math.min(chosen.at, ofClasses.length - 1)];
    const test = (one, two) => {
      const [i, j] = [classes.indexOf(one), classes.indexOf(two)];
      return { statistic: statistics[i][j], adjusted: adjusted[i][j] };
    };
    holder.replaceChildren(ksMatrix(`${network}: Kolmogorov-Smirnov statistics between classes${sides ? `; ${sides}` : ""}`, classes, test));
  };
  draw();
  const pick = select("Network", ofClasses.map(({ network }, at) => [at, network]), chosen.at, (value) => { chosen.at = Number(value); draw(); });
  return [el("h3", {}, "Do the classes differ?"), ofClasses.length > 1 ? el("div", { class: "row" }, pick) : null, holder].filter(Boolean);
}

// What may be chance is pale, however large.
function ksMatrix(caption, names, test) {
  const head = el("tr", {}, el("th", { scope: "col" }, ""), ...names.map((name) => el("th", { scope: "col" }, String(name))));
  const cell = (one, two) => {
    const { statistic = null, adjusted = null } = test(one, two) ?? {};
    if (statistic === null) return el("td", { class: one === two ? "diagonal" : null }, "");
    const isSure = adjusted !== null && adjusted < 0.05;
    return el("td", { class: `${isSure ? "sure" : ""}${isSure && statistic > HOT ? " hot" : ""}`, style: { "--heat": `${Math.round((isSure ? 100 : 25) * statistic)}%` },
      title: `${one} and ${two}: ${number(statistic, 3)}, p = ${pText(adjusted)}` }, `${statistic.toFixed(2)}${isSure ? "*" : ""}`);
  };
  return matrixTable(`${caption}. * is significant: p below 0.05 after Holm's correction.`, head,
    names.map((one) => el("tr", {}, el("th", { scope: "row" }, String(one)), ...names.map((two) => cell(one, two)))));
}

function fitTable(model, fits) {
  const table = dataTable({
    name: "fits",
    caption: "Parametric families fitted to the brackets",
    rows: fits,
    size: 16,
    columns: [
      { title: "Network", csv: "network", isText: true, value: (f) => f.network },
      { title: "Family", csv: "family", isText: true, value: (f) => `${f.title}${f.is_best ? " (best)" : ""}` },
      { title: "Parameters", csv: "parameters", isText: true, wraps: true, value: (f) => f.parameters },
      { title: "AIC", csv: "aic", help: "Akaike's criterion: smaller is better, on the same brackets", value: (f) => f.aic, text: (f) => (f.aic === null ? "–" : f.aic.toFixed(1)) },
      { title: "p (Monte Carlo)", csv: "p", help: "Of the best family: small means that even it does not describe the radii. Every simulated sample is put on the same grid and fitted anew", value: (f) => f.p_value, text: (f) => pText(f.p_value) },
    ],
  });
  return [el("h3", {}, "Which family describes the radii?"),
    el("p", { class: "lead" }, "Fitted to brackets as intervals, not as points. The best fit can be drawn over the curve at the top; ", el("code", {}, "radii compare --fit"), " tests every family."), table.element];
}

// The best fit over the curve: what it expects of inputs that are right as they stand.
function fitTraces(model, place, side) {
  const { name, accuracy } = model.networks[place];
  const best = model.facts.fits.find((fit) => fit.is_best && fit.network === name);
  if (!best) return [];
  const { top } = model.facts.eps;
  return [{ type: "scatter", mode: "lines", x: best.broken.map((_, i) => (i * top) / (best.broken.length - 1)), y: side(best.broken.map((share) => accuracy * (1 - share))),
    line: { color: token("--ink"), width: 1.2, dash: "dot" }, hoverinfo: "skip", name: plain(`${name}, ${best.title}`) }];
}
