// Experiment files that can be started from here, and the history: who answered how much, and when.

const FILE_STATES = { running: "Running", stopping: "Stopping", stopped: "Stopped", finished: "Finished", failed: "Failed" };

const startBoxes = {};

function drawStarts(panel, told) {
  drawBox(panel, "files", told.files, filesBox);
  const sittings = told.experiments.flatMap((run) => run.sittings.map((sitting) => ({ ...sitting, name: run.name, asked: run.asked })));
  drawBox(panel, "history", sittings.length ? sittings.sort((one, two) => two.began - one.began) : null, historyBox);
}

// A box is drawn again only when it would be another, and stays as open as it was; null: no box.
function drawBox(panel, name, value, make) {
  const key = JSON.stringify(value);
  const before = startBoxes[name];
  if (before?.key !== key) {
    const box = value ? make(value) : null;
    if (box && before?.box) box.open = before.box.open;
    before?.box?.remove();
    startBoxes[name] = { key, box };
  }
  const { box } = startBoxes[name];
  if (!box || box.parentElement === panel.parentElement) return;
  if (name === "files") panel.after(box);
  else panel.parentElement.append(box);
}

function filesBox(files) {
  const items = files.map((file) => {
    const isGoing = ["running", "stopping"].includes(file.state);
    const said = el("span", { class: "list-state", role: "status" }, [FILE_STATES[file.state], file.message].filter(Boolean).join(": "));
    const button = el("button", { type: "button", class: "start", disabled: file.state === "stopping",
      "aria-label": `${isGoing ? "Stop" : "Start"} ${file.name}`, title: `results go to ${file.out}`,
      onclick: () => orderFile(isGoing ? "stop" : "start", file.id, button, said) }, isGoing ? "Stop" : "Start");
    return el("li", { "data-file": file.name, "data-state": file.state }, el("span", {}, file.name), said, button);
  });
  return el("details", { class: "card all-runs starts", open: true }, el("summary", {}, "Experiment files"),
    items.length ? el("ul", { class: "run-list" }, ...items) : el("p", { class: "lead" }, "No experiment file is in the folder yet: radii init writes one."),
    el("p", { class: "hint" }, "One at a time. A run that is started here ends with radii serve; what it found is kept, and starting again continues."));
}

async function orderFile(what, file, button, said) {
  button.disabled = true;
  try {
    await fetched(what, { file }, { method: "POST" });
    await askOnce(byId("runs"), byId("connection"));
  } catch (error) {
    setText(said, `It cannot be done: ${error.message}`);
    button.disabled = false;
  }
}

const momentText = (seconds) => new Date(1000 * seconds).toISOString().slice(0, 16).replace("T", " ");

function historyBox(sittings) {
  const items = sittings.map(({ began, ended, answers, name, asked }) => el("li", {},
    el("span", {}, el("b", {}, name), ` ${asked}`),
    el("span", { class: "list-state" }, `${momentText(began)} to ${momentText(ended).slice(momentText(began).slice(0, 10) === momentText(ended).slice(0, 10) ? 11 : 0)} UTC, ${whole(answers)} ${answers === 1 ? "answer" : "answers"}`)));
  return el("details", { class: "card all-runs history" }, el("summary", {}, "History: what was asked when"), el("ul", { class: "run-list" }, ...items));
}
