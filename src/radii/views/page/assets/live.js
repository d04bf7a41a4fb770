// The live page: it asks its server every second how the runs are, and draws the report again when
// there is news. Nothing is lost when the server or a run goes away: it keeps asking.

const POLL_MS = 1000;
const RETRY_MS = 2000;
const REPORT_MS = 4000; // the report is drawn again at most this often

const live = { seen: new Map(), drawn: "", drawnAt: -Infinity, isDrawing: false, told: null };

async function followRuns() {
  const panel = el("div", { id: "runs", class: "runs" });
  const status = el("p", { class: "connection", role: "status", id: "connection" });
  byId("controls").before(el("div", { class: "runs-box" }, status, panel));
  byId("loading").textContent = "Looking for experiments …";
  byId("title").textContent = "live";
  byId("detail").addEventListener("close", () => refreshReport().catch(complainLive));
  document.addEventListener("visibilitychange", () => { if (!document.hidden) askOnce(panel, status); });
  for (;;) {
    const isThere = document.hidden && live.told ? true : await askOnce(panel, status);
    await new Promise((done) => { setTimeout(done, isThere ? POLL_MS : RETRY_MS); });
  }
}

async function askOnce(panel, status) {
  try {
    const told = await (await fetched("state.json", { seen: seenSoFar() })).json();
    live.told = told;
    takeIn(told);
    keepChoice(told);
    drawRuns(panel, told);
    drawStarts(panel, told);
    const waiting = byId("loading");
    if (waiting && told.experiments.length) waiting.textContent = "Drawing what is known so far …";
    say(status, "");
    await refreshReport();
    return true;
  } catch (error) {
    if (error.status === 403) say(status, "This address is no longer valid: open the one that radii serve prints.");
    else if (error.status) say(status, `radii serve answers: ${error.message}`);
    else say(status, "radii serve does not answer. What is shown stays; it is asked again every two seconds.");
    return false;
  }
}

function say(status, text) {
  if (status.textContent !== text) status.textContent = text;
  document.documentElement.dataset.connected = String(!text);
}

// Which answers of which experiment the page has: the server sends only what came after them.
const seenSoFar = () => [...live.seen].map(([id, { generation, number }]) => `${id}:${generation}:${number}`).join(",");

function takeIn(told) {
  for (const run of told.experiments) {
    if (!run.brackets) continue;
    const { generation, number, lower, upper, rows } = run.brackets;
    if (lower) live.seen.set(run.id, { generation, number, lower: Float64Array.from(lower), upper: Float64Array.from(upper, (end) => end ?? Infinity) });
    const known = live.seen.get(run.id);
    for (const [row, low, high] of rows ?? []) {
      known.lower[row] = low;
      known.upper[row] = high ?? Infinity;
    }
    known.number = number;
  }
}

// What the server chose to show stays what is shown, also when another run begins.
function keepChoice(told) {
  const shown = [...told.experiments, ...told.ensembles].filter((run) => run.is_shown).map((run) => run.id);
  const query = new URLSearchParams(location.search);
  if (!shown.length || query.has("show")) return;
  query.set("show", shown.join(","));
  history.replaceState(null, "", `${location.pathname}?${query}${location.hash}`);
}

// A reader who has opened an input or is choosing something is not disturbed.
const isBusy = () => document.hidden || byId("detail").open || ["SELECT", "INPUT"].includes(document.activeElement?.tagName)
  && byId("sections").contains(document.activeElement);

async function refreshReport() {
  const told = live.told;
  if (!told || live.isDrawing) return;
  if (!told.revision) {
    sayWhyEmpty(told);
    return;
  }
  const isFirst = !live.drawn;
  if (told.revision === live.drawn || (!isFirst && (isBusy() || performance.now() - live.drawnAt < REPORT_MS))) return;
  live.isDrawing = true;
  try {
    const started = performance.now();
    const facts = await show();
    live.drawn = facts.revision;
    // A page that takes long to draw is drawn less often.
    live.drawnAt = performance.now() + 4 * (performance.now() - started);
  } finally {
    live.isDrawing = false;
  }
}

function whyEmpty(told) {
  if (told.experiments.length || told.ensembles.length) return "The chosen experiment has nothing to show yet.";
  const starting = told.files?.find((file) => file.state === "running");
  if (starting) return `${starting.name} is starting: networks and data are being loaded. Its results appear here by themselves.`;
  return `No experiment is in ${told.places.join(", ")} yet. Start one with radii run; it appears here by itself.`;
}

function sayWhyEmpty(told) {
  const text = whyEmpty(told);
  const place = byId("loading");
  if (place && place.textContent !== text) place.textContent = text;
}

function complainLive(error) {
  byId("connection").textContent = `The report cannot be drawn now: ${error.message}`;
}
