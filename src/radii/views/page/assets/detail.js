// One instance: input, counterexample, difference, bracket, and the questions that made it.

const opened = { row: -1, order: null };

function openDetail(model, row, order = null) {
  opened.row = row;
  opened.order = order ?? opened.order ?? model.rowsOf[model.rows.network[row]];
  if (!opened.order.includes(row)) opened.order = model.rowsOf[model.rows.network[row]];
  const dialog = byId("detail");
  drawDetail(model, dialog, row);
  if (!dialog.open) dialog.showModal();
  dialog.focus();
  dialog.scrollTop = 0;
  history.replaceState(null, "", `#row-${row}`);
}

function setUpDetail(model) {
  const dialog = byId("detail");
  const { signal } = state.life;
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); }, { signal });
  dialog.addEventListener("close", () => {
    opened.order = null;
    if (location.hash.startsWith("#row-")) history.replaceState(null, "", location.pathname + location.search);
  }, { signal });
  dialog.addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (by && !["INPUT", "SELECT"].includes(event.target.tagName)) turnDetail(model, by);
  }, { signal });
  on("theme", () => { if (dialog.open) drawDetail(model, dialog, opened.row); });
  window.addEventListener("hashchange", () => openAddressed(model), { signal });
  openAddressed(model);
}

// What the address asks for, when the page opens and whenever it changes: a row, or a part of the page.
function openAddressed(model) {
  const dialog = byId("detail");
  const wanted = /^#row-(\d+)$/.exec(location.hash);
  if (wanted && Number(wanted[1]) < model.size) {
    const row = Number(wanted[1]);
    if (!dialog.open || opened.row !== row) openDetail(model, row);
    return;
  }
  if (dialog.open) dialog.close();
}

function turnDetail(model, by) {
  const at = opened.order.indexOf(opened.row) + by;
  if (at >= 0 && at < opened.order.length) openDetail(model, opened.order[at], opened.order);
}

function drawDetail(model, dialog, row) {
  const { rows, networks } = model;
  const network = networks[rows.network[row]];
  const at = opened.order.indexOf(row);
  const bar = el("div", { class: "detail-bar" },
    el("button", { type: "button", onclick: () => turnDetail(model, -1), disabled: at <= 0, "aria-label": "Previous instance" }, "←"),
    el("span", {}, `${whole(at + 1)} of ${whole(opened.order.length)}`),
    el("button", { type: "button", onclick: () => turnDetail(model, 1), disabled: at >= opened.order.length - 1, "aria-label": "Next instance" }, "→"),
    el("button", { type: "button", class: "close", onclick: () => dialog.close(), "aria-label": "Close" }, "Close ✕"));
  const title = el("h2", { id: "detail-title" }, `Input ${rows.position[row]}, class ${classText(model, rows.label[row])}`);
  const subtitle = el("p", { class: "lead" }, `${network.name}${rows.target[row] >= 0 ? `, against class ${classText(model, rows.target[row])}` : ""}`);
  const pictures = el("div", { class: "pictures" });
  const others = el("div", { class: "others" });
  dialog.replaceChildren(bar, title, subtitle, el("p", { class: "verdict" }, detailSentence(model, row)),
    bracketBar(model, row), proofLine(model, row), pictures, historyTable(model, row), others);
  model.pictures(row).then((arrays) => {
    if (opened.row !== row) return;
    pictures.replaceChildren(...inputPanels(model, arrays, row));
    others.replaceChildren(...otherNetworks(model, arrays, row));
  }).catch((error) => pictures.replaceChildren(el("p", { class: "lead" }, `Its picture cannot be loaded: ${error.message}`)));
}

function detailSentence(model, row) {
  const { lower, upper, label, predicted, correct, witness_class: becomes } = model.rows;
  if (upper[row] === 0) return correct[row] ? "The property fails at the input itself: its radius is 0." : `Misclassified as it stands: class ${classText(model, label[row])} is seen as ${classText(model, predicted[row])}. Its radius is 0.`;
  const { experiment } = model.networks[model.rows.network[row]];
  if (!model.facts.experiments[experiment].is_measured) return claimSentence(lower[row], upper[row]);
  const proven = lower[row] > 0 ? `It is proven${scopeOf(model, row)} that no change up to ${number(lower[row], 6)} breaks it.` : "Nothing is proven about it yet.";
  if (!Number.isFinite(upper[row])) return `${proven} No counterexample is known.`;
  const seen = becomes[row] >= 0 ? ` and is seen as ${classText(model, becomes[row])}` : "";
  return `${proven} A counterexample lies at distance ${number(upper[row], 6)}${seen}; it was replayed on ONNX Runtime.`;
}

// Which numbers the proof speaks of, where that is told.
function scopeOf(model, row) {
  const scope = model.facts.scopes[model.rows.arithmetic[row]];
  return scope ? ` ${scope}` : "";
}

// What the proof rests on, in a run that keeps certificates: its size, and who has checked it.
function proofLine(model, row) {
  const { checks } = model.facts;
  const status = checks?.status[model.rows.proof_status[row]];
  if (!status) return null;
  const told = (name) => model.rows[`proof_${name}`][row];
  const checker = checks.checker[told("checker")];
  const parts = Number.isNaN(told("nodes")) ? "" : `, ${whole(told("nodes"))} ${told("nodes") === 1 ? "node" : "nodes"} and ${whole(told("lemmas"))} lemmas`;
  const certificate = `Its certificate (${bytesText(told("bytes"))}${parts})`;
  const text = {
    believed: `Its proof has no certificate: ${checker} is trusted.`,
    unchecked: `${certificate} has not been checked yet; radii check does that.`,
    checked: `${certificate} was checked by ${checker} in ${number(told("seconds"), 2)} s.`,
    unreadable: `${certificate} cannot be read by ${checker}: ${checks.reason[told("reason")]}.`,
    failed: `${certificate} was refused by ${checker}: ${checks.reason[told("reason")]}.`,
  }[status];
  return el("p", { class: `proof ${status}` }, text);
}

function bytesText(size) {
  if (size < 1000) return `${size} bytes`;
  return size < 1e6 ? `${number(size / 1e3, 3)} kB` : `${number(size / 1e6, 3)} MB`;
}

// A file of published results only claims: nothing of it was proven or replayed here.
function claimSentence(low, high) {
  const proven = low > 0 ? `It is claimed that no change up to ${number(low, 6)} breaks it.` : "No proof is claimed.";
  const witness = Number.isFinite(high) ? `A counterexample is claimed at distance ${number(high, 6)}.` : "No counterexample is claimed.";
  return `${proven} ${witness} Neither was checked: radii audit does that.`;
}

// From 0 to the end of the axis: proven, open, refuted.
function bracketBar(model, row, low = model.rows.lower[row], high = model.rows.upper[row], isSmall = false) {
  const { top } = model.facts.eps;
  const place = (value) => `${(100 * Math.min(value, top)) / top}%`;
  const open = Math.max(Math.min(high, top) - low, 0);
  const bar = el("div", { class: isSmall ? "bracket small" : "bracket", role: "img", "aria-label": `radius ${bracketText(low, high)}` },
    el("div", { class: "proven", style: { width: place(low) } }),
    el("div", { class: "open-share", style: { left: place(low), width: place(open) } }),
    Number.isFinite(high) ? el("div", { class: "refuted", style: { left: place(high) } }) : null);
  if (isSmall) return bar;
  return el("div", { class: "bracket-box" }, bar, el("div", { class: "bracket-scale" },
    el("span", {}, "0"), el("b", {}, `radius ${bracketText(low, high)}`), el("span", {}, number(top, 3))));
}

function historyTable(model, row) {
  const { rows, facts } = model;
  const steps = [];
  for (let i = rows.history_start[row]; i < rows.history_start[row + 1]; i++) steps.push(i);
  if (!steps.length) return el("p", { class: "lead" }, "No questions are on record for this instance.");
  const asked = { attack: (e) => `Attack within ${e}`, probe: (e) => `Quick attack and short proofs up to ${e}`, prove: (e) => `Prove at ${e}`, radius: (e) => `Prove as far as possible up to ${e}`, replay: () => "Run the input itself" };
  const evidence = (i) => {
    const parts = [];
    if (!Number.isNaN(rows.history_proof_eps[i])) parts.push(`proven up to ${number(rows.history_proof_eps[i], 6)}`);
    if (!Number.isNaN(rows.history_distance[i])) parts.push(`counterexample at ${number(rows.history_distance[i], 6)}`);
    const message = facts.messages[rows.history_message[i]];
    if (message) parts.push(message);
    return parts.join("; ");
  };
  const question = (i) => {
    const kind = facts.kinds[rows.history_kind[i]];
    return (asked[kind] ?? ((e) => `${kind} at ${e}`))(number(rows.history_eps[i], 6));
  };
  const table = dataTable({
    name: `history-${row}`,
    caption: "Questions and answers",
    rows: steps,
    size: 100,
    columns: [
      { title: "#", csv: "step", value: (i) => i - rows.history_start[row] + 1 },
      { title: "Question", isText: true, wraps: true, value: question },
      { title: "Answer", isText: true, value: (i) => facts.verdicts[rows.history_verdict[i]], node: (i) => answerMark(rows, facts, i) },
      { title: "Evidence", isText: true, wraps: true, value: evidence },
      { title: "By", isText: true, wraps: true, value: (i) => facts.verifiers[rows.history_verifier[i]] },
      { title: "Seconds", value: (i) => rows.history_seconds[i], text: (i) => rows.history_seconds[i].toFixed(3) },
      { title: "Bracket", csv: "lower", value: (i) => rows.history_lower[i], node: (i) => bracketBar(model, row, rows.history_lower[i], rows.history_upper[i], true) },
    ],
  });
  return el("div", {}, el("h3", {}, "How the bracket came about"), table.element);
}

// One question may end with evidence on both sides, as a quick attack followed by short proofs does.
function answerMark(rows, facts, i) {
  const isBoth = rows.history_proof_eps[i] > 0 && !Number.isNaN(rows.history_distance[i]);
  return isBoth ? el("span", { class: "mark robust" }, "✓ both sides") : verdictMark(facts.verdicts[rows.history_verdict[i]]);
}

function verdictMark(verdict) {
  const marks = { ROBUST: ["✓", "robust"], NOT_ROBUST: ["✗", "not-robust"] };
  const [mark, kind] = marks[verdict] ?? ["?", "missing"];
  return el("span", { class: `mark ${kind}` }, `${mark} ${verdict.replaceAll("_", " ").toLowerCase()}`);
}
