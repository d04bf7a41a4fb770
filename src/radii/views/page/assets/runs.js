// The runs: how far, how long still, what went wrong, and the button that pauses.

const STATES = {
  starting: "Starting", running: "Running", pausing: "Pausing: what has begun still ends", paused: "Paused",
  stopped: "Stopped", finished: "Finished", empty: "Empty", unreadable: "Not readable", reading: "Reading", ensemble: "Ensemble",
};

const drawnRuns = new Map();

function drawRuns(panel, told) {
  const shown = told.experiments.filter((run) => run.is_shown);
  for (const run of shown) if (!drawnRuns.has(run.id)) drawnRuns.set(run.id, runCard(run));
  const wanted = [...shown.map((run) => drawnRuns.get(run.id).element), otherRuns(told)].filter(Boolean);
  const isSame = wanted.length === panel.children.length && wanted.every((one, i) => one === panel.children[i]);
  if (!isSame) panel.replaceChildren(...wanted);
  for (const run of shown) drawnRuns.get(run.id).update(run);
}

function runCard(run) {
  const badge = el("span", { class: "badge" });
  const button = el("button", { type: "button", class: "pause" });
  const fill = el("div", { class: "proven" });
  const bar = el("div", { class: "bar", role: "progressbar", "aria-valuemin": 0, "aria-label": `Progress of ${run.name}` }, fill);
  const text = el("p", { class: "progress-text" });
  const advice = el("p", { class: "lead" });
  const canvas = closingCanvas();
  const alarms = el("ul", { class: "alarm alarms", role: "alert", hidden: true });
  const answers = el("ul", { class: "answers" });
  const failures = el("ul", { class: "answers" });
  const failed = el("summary");
  const failureBox = el("details", { class: "failures", hidden: true }, failed, failures);
  const latest = el("details", { class: "latest" }, el("summary", {}, "Latest answers"), answers);
  const element = el("section", { class: "card run", "data-run": run.id, "aria-label": `Run ${run.name}` },
    el("div", { class: "run-head" }, el("h2", {}, run.name), badge, button),
    bar, text, advice, alarms, canvas.element, failureBox, latest);

  function update(now) {
    element.dataset.state = now.state;
    setText(badge, STATES[now.state] ?? now.state);
    const share = now.total ? now.done / now.total : 0;
    fill.style.width = `${100 * share}%`;
    bar.setAttribute("aria-valuemax", now.total);
    bar.setAttribute("aria-valuenow", now.done);
    setText(text, progressText(now));
    setText(advice, now.advice);
    advice.hidden = !now.advice;
    const isPaused = ["paused", "pausing"].includes(now.state);
    button.hidden = !isPaused && now.state !== "running";
    setText(button, isPaused ? "Resume" : "Pause");
    button.onclick = () => order(isPaused ? "resume" : "pause", now.id, button, advice);
    alarms.hidden = !now.disagreements.length;
    replaceTexts(alarms, now.disagreements, (one) => `${one.network}, input ${one.input}: ${one.text}`);
    failureBox.hidden = !now.failure_count;
    setText(failed, `${whole(now.failure_count)} missing ${now.failure_count === 1 ? "answer" : "answers"}: time-outs, memory, errors`);
    replaceTexts(failures, now.failures, (one) => one.text);
    latest.hidden = !now.answers.length;
    replaceTexts(answers, now.answers, (one) => one.text);
    canvas.draw(live.seen.get(now.id));
  }
  return { element, update };
}

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function replaceTexts(list, items, textOf) {
  const key = items.map((one) => one.number).join();
  if (list.dataset.key === key) return;
  list.dataset.key = key;
  list.replaceChildren(...items.map((one) => el("li", {}, textOf(one))));
}

function progressText(now) {
  if (!now.total) return "";
  const parts = [`${whole(now.done)} of ${whole(now.total)} ${now.total === 1 ? "instance" : "instances"}`];
  if (now.queries) parts.push(`${whole(now.queries)} ${now.queries === 1 ? "question" : "questions"}`);
  if (now.seconds_left !== null) parts.push(`about ${leftText(now.seconds_left)} left`);
  return parts.join(" · ");
}

function leftText(seconds) {
  if (seconds < 90) return `${Math.max(1, Math.round(seconds))} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${(seconds / 3600).toFixed(1)} h`;
  return `${(seconds / 86400).toFixed(1)} days`;
}

async function order(what, id, button, advice) {
  button.disabled = true;
  try {
    await fetched(what, { experiment: id }, { method: "POST" });
    await askOnce(byId("runs"), byId("connection"));
  } catch (error) {
    advice.hidden = false;
    setText(advice, `It cannot be done: ${error.message}`);
  } finally {
    button.disabled = false;
  }
}

// All experiments that were found; what is chosen is part of the address, so it can be kept.
let listKey = "";
let listBox = null;

function otherRuns(told) {
  const all = [...told.experiments, ...told.ensembles.map((one) => ({ ...one, state: "ensemble", done: 0, total: 0 }))];
  if (all.length < 2) return null;
  const key = JSON.stringify(all.map((run) => [run.id, run.name, run.state, run.done, run.total, run.is_shown, run.advice]));
  if (key === listKey) return listBox;
  const isOpen = listBox ? listBox.open : true;
  listKey = key;
  const items = all.map((run) => el("li", {},
    checkbox(run.name, run.is_shown, (isOn) => choose(all, run.id, isOn)),
    el("span", { class: "list-state" }, `${STATES[run.state] ?? run.state}${run.total ? `, ${whole(run.done)} of ${whole(run.total)}` : ""}${run.state === "ensemble" && run.advice ? `: ${run.advice}` : ""}`)));
  const made = el("ul", { class: "run-list" }, ...items);
  if (listBox) {
    listBox.lastChild.replaceWith(made);
    setText(listBox.firstChild, `${whole(all.length)} experiments`);
  } else listBox = el("details", { class: "card all-runs" }, el("summary", {}, `${whole(all.length)} experiments`), made);
  listBox.open = isOpen;
  return listBox;
}

function choose(all, id, isOn) {
  const chosen = all.filter((run) => (run.id === id ? isOn : run.is_shown)).map((run) => run.id);
  if (chosen.length) location.assign(addressOf(location.pathname, { show: chosen.join(",") }));
}
