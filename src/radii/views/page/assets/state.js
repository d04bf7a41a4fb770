// What the reader has chosen. Sections subscribe; changes are passed on once a frame.

const state = { eps: null, isEpsChosen: false, shown: [], listeners: new Map(), pending: new Set(), memory: new Map(), life: new AbortController() };

// Before the page is drawn again, from newer data, what the last drawing listens to is let go.
function beginAnew() {
  state.life.abort();
  state.life = new AbortController();
  state.listeners.clear();
}

// What was chosen in a part of the page, kept when it is drawn again.
function remembered(name, initial) {
  if (!state.memory.has(name)) state.memory.set(name, initial);
  return state.memory.get(name);
}

function on(topic, listener) {
  if (!state.listeners.has(topic)) state.listeners.set(topic, new Set());
  state.listeners.get(topic).add(listener);
}

function announce(topic) {
  if (!state.pending.size) requestAnimationFrame(deliver);
  state.pending.add(topic);
}

function deliver() {
  const topics = [...state.pending];
  state.pending.clear();
  for (const topic of topics) for (const listener of state.listeners.get(topic) ?? []) listener();
}

function setEps(value, model) {
  const { top } = model.facts.eps;
  const eps = Math.min(Math.max(Number(value) || 0, 0), top);
  state.eps = eps;
  const slider = byId("eps");
  if (Number(slider.value) !== eps) slider.value = eps;
  slider.style.setProperty("--filled", `${(100 * eps) / top}%`);
  slider.setAttribute("aria-valuetext", `epsilon ${number(eps)}`);
  const box = byId("eps-number");
  if (document.activeElement !== box) box.value = number(eps);
  announce("eps");
}

function setUpControls(model) {
  const { top, start, step } = model.facts.eps;
  const slider = byId("eps");
  const choose = (value) => {
    state.isEpsChosen = true;
    setEps(value, model);
  };
  slider.max = top;
  slider.step = "any";
  // Arrow keys move by a step of the grid, the mouse moves freely.
  slider.onkeydown = (event) => {
    const moves = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10 };
    if (!(event.key in moves)) return;
    event.preventDefault();
    choose(Math.round(state.eps / step + moves[event.key]) * step);
  };
  slider.oninput = () => choose(slider.value);
  byId("eps-number").onchange = (event) => choose(event.target.value);
  byId("eps-number").step = step;
  byId("controls").hidden = false;
  setEps(state.isEpsChosen ? state.eps : start, model);
}

// --- colours: Okabe and Ito's, with brighter ones on dark paper

const PALETTE = {
  light: ["#0072B2", "#D55E00", "#009E73", "#B85C92", "#3A9BD9", "#C98500", "#222222", "#7f7f1f"],
  dark: ["#4FB3E8", "#FF8A4C", "#35CBA0", "#E8A5CB", "#9AD7FF", "#F5BC4B", "#EDEDED", "#CFCF6A"],
};
const DASHES = ["solid", "dash", "dot", "dashdot"];
const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "pentagon", "hexagon", "star", "cross"];

const isDark = () => document.documentElement.dataset.theme === "dark"
  || (!document.documentElement.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
const colourOf = (network) => PALETTE[isDark() ? "dark" : "light"][network % 8];
const dashOf = (network) => DASHES[(network + Math.floor(network / 8)) % 4];
const symbolOf = (network) => SYMBOLS[network % 8];
const token = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function faded(colour, alpha) {
  const [r, g, b] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  return `rgba(${r},${g},${b},${alpha})`;
}

function setUpTheme() {
  const kept = { get: () => null, set: () => {} };
  try {
    const storage = window.localStorage;
    kept.get = () => storage.getItem("radii-theme");
    kept.set = (value) => storage.setItem("radii-theme", value);
  } catch { /* a page opened from a file may have no storage */ }
  const apply = (theme) => {
    if (theme) document.documentElement.dataset.theme = theme;
    const next = isDark() ? "light" : "dark";
    byId("theme").textContent = next === "dark" ? "☾ Dark" : "☀ Light";
    byId("theme").onclick = () => { kept.set(next); apply(next); };
    announce("theme");
  };
  apply(kept.get());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => apply(null));
  byId("print").onclick = () => window.print();
  // Paper is white, whatever the screen is.
  let before = null;
  window.addEventListener("beforeprint", () => {
    before = document.documentElement.dataset.theme ?? "";
    document.documentElement.dataset.theme = "light";
    for (const listener of state.listeners.get("theme") ?? []) listener();
  });
  window.addEventListener("afterprint", () => {
    if (before) document.documentElement.dataset.theme = before;
    else delete document.documentElement.dataset.theme;
    announce("theme");
  });
}
