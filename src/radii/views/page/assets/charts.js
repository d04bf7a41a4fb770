// Plotly with the page's look. Charts are drawn when they come near the screen.

const waiting = new Map();
const watcher = new IntersectionObserver((entries) => {
  for (const entry of entries) if (entry.isIntersecting) drawNow(entry.target);
}, { rootMargin: "400px" });

function drawNow(place) {
  const draw = waiting.get(place);
  if (!draw) return;
  waiting.delete(place);
  watcher.unobserve(place);
  draw();
}

// Before the page is drawn again: charts that go away are let go.
function forgetCharts() {
  waiting.clear();
  watcher.disconnect();
  for (const plot of document.querySelectorAll(".js-plotly-plot")) Plotly.purge(plot);
}

// At once, so that what is on the screen does not go blank when it is drawn again.
function drawVisibleCharts() {
  for (const place of [...waiting.keys()]) {
    const { top, bottom } = place.getBoundingClientRect();
    if (bottom > 0 && top < innerHeight) drawNow(place);
  }
}

window.addEventListener("beforeprint", () => [...waiting.keys()].forEach(drawNow));

const isNarrow = () => matchMedia("(max-width: 40rem)").matches;

// Plotly's own buttons lie over the chart, and one of them offers to upload it: the page has its own.
const CHART_CONFIG = { responsive: true, displayModeBar: false, displaylogo: false, showSendToCloud: false, plotlyServerURL: "", scrollZoom: false };

// `build` gives { data, layout, cloud? }; `key` explains lines and signs, and stands below;
// `cursor` is "x" or "xy": where eps is marked. The room is taken before anything is drawn, so that
// nothing jumps when it is.
function chart({ label, height, build, cursor = null, onPoint = null, key = null }) {
  const plot = el("div", { class: "plot", style: { "min-height": `${height()}px` } });
  const marks = cursor ? [...cursor].map((axis) => el("div", { class: `eps-mark ${axis}`, "aria-hidden": "true" })) : [];
  const tools = chartTools(plot, label, key);
  const frame = el("figure", { class: "chart", role: "group", "aria-label": label }, plot, ...marks, tools.element);
  const over = onPoint ? cloudOver(plot, frame, onPoint) : null;
  let isDrawn = false;
  let cloud = null;

  function draw() {
    const { data, layout, cloud: points = null } = build();
    cloud = points;
    plot.style.minHeight = `${height()}px`;
    Plotly.react(plot, data, { ...look(), height: height(), ...layout, xaxis: { ...axis(), ...layout.xaxis }, yaxis: { ...axis(), ...layout.yaxis } }, CHART_CONFIG);
    tools.comeHome(!cloud);
    if (!isDrawn) {
      isDrawn = true;
      plot.on("plotly_relayout", tools.update);
      plot.on("plotly_afterplot", () => { mark(); over?.draw(cloud); });
      if (onPoint) plot.on("plotly_click", (event) => {
        const found = event.points.find((point) => point.customdata !== undefined && point.customdata !== null);
        if (found) onPoint(found.customdata);
      });
    }
    mark();
    over?.draw(cloud);
  }

  function mark() {
    const full = plot._fullLayout;
    if (!full || !marks.length) return;
    const { xaxis, yaxis } = full;
    for (const line of marks) {
      const isX = line.classList.contains("x");
      const along = isX ? xaxis : yaxis;
      const at = along._offset + along.l2p(state.eps);
      const isInside = at >= along._offset - 0.5 && at <= along._offset + along._length + 0.5;
      line.hidden = !isInside;
      const across = isX ? yaxis : xaxis;
      if (isX) Object.assign(line.style, { left: `${at}px`, top: `${across._offset}px`, height: `${across._length}px` });
      else Object.assign(line.style, { top: `${at}px`, left: `${across._offset}px`, width: `${across._length}px` });
    }
  }

  waiting.set(plot, draw);
  watcher.observe(plot);
  on("theme", () => { if (isDrawn) draw(); });
  if (cursor) on("eps", () => { if (isDrawn) mark(); });
  return { element: frame, redraw: () => { if (isDrawn) draw(); } };
}

// Below the chart, where they cover nothing. Points on a canvas are no part of Plotly's picture.
function chartTools(plot, label, key) {
  let home = null;
  const ranges = () => [plot._fullLayout.xaxis.range.slice(), plot._fullLayout.yaxis.range.slice()];
  const back = el("button", { type: "button", class: "quiet", hidden: true,
    onclick: () => Plotly.relayout(plot, { "xaxis.range": home[0].slice(), "yaxis.range": home[1].slice() }) }, "Whole range");
  const save = el("button", { type: "button", class: "quiet", hidden: true, "aria-label": `Save as a picture: ${label}`,
    onclick: () => Plotly.downloadImage(plot, { format: "svg", filename: "radii" }) }, "Save SVG");
  const element = el("div", { class: "chart-tools" }, key, el("span", { class: "chart-buttons" }, back, save));
  const update = () => {
    const moved = ranges().flat().map((end, i) => Math.abs(end - home.flat()[i]));
    back.hidden = Math.max(...moved) < 1e-9;
  };
  const comeHome = (isComplete) => { home = ranges(); save.hidden = !isComplete; back.hidden = true; };
  return { element, update, comeHome };
}

function look() {
  return {
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif", size: 13, color: token("--ink") },
    margin: { l: 54, r: 16, t: 12, b: 46 },
    showlegend: false,
    hovermode: "closest",
    hoverlabel: { bgcolor: token("--card"), bordercolor: token("--line"), font: { color: token("--ink"), size: 13 } },
    dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
  };
}

const axis = () => ({ gridcolor: token("--line"), zeroline: false, linecolor: token("--line"), tickcolor: token("--line"),
  ticks: "outside", ticklen: 4, automargin: true, fixedrange: matchMedia("(pointer: coarse)").matches });

// Which network is which line, and which are shown: one choice for the whole page.
function legend(model) {
  const box = el("div", { class: "legend", role: "group", "aria-label": "Networks shown" });
  const draw = () => box.replaceChildren(...model.networks.map((network, place) => {
    const sample = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    sample.setAttribute("viewBox", "0 0 30 10");
    sample.setAttribute("aria-hidden", "true");
    const line = document.createElementNS("http://www.w3.org/2000/svg", "line");
    const dashes = { solid: "", dash: "8 3", dot: "2 3", dashdot: "9 3 2 3" }[dashOf(place)];
    for (const [key, value] of Object.entries({ x1: 0, y1: 5, x2: 30, y2: 5, stroke: colourOf(place), "stroke-width": 3.5, "stroke-dasharray": dashes })) line.setAttribute(key, value);
    sample.append(line);
    return el("button", { type: "button", class: "chip", "aria-pressed": String(state.shown[place]), onclick: () => {
      state.shown[place] = !state.shown[place];
      if (!state.shown.some(Boolean)) state.shown.fill(true);
      announce("shown");
    } }, sample, el("span", {}, network.name));
  }));
  draw();
  on("shown", draw);
  on("theme", draw);
  return model.networks.length > 1 ? box : el("span");
}

const plain = (text) => String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
const shownNetworks = (model) => model.networks.map((_, place) => place).filter((place) => state.shown[place]);
