// Robust accuracy over eps as SVG: what is proven, and a light band up to what is not refuted. Small
// ones stand in tables; a large one has axes, and a click on it chooses eps.

const SVG = "http://www.w3.org/2000/svg";
const SIDES_OF_LINES = "Thin lines are proven, thick ones not refuted; between them it is open.";

function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== null && value !== undefined) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// Shares at every half pixel: steps closer than that cannot be seen. As [x, proven, open].
function sampled(sides, top, width) {
  const count = Math.max(2, Math.round(2 * width));
  return Array.from({ length: count + 1 }, (_, i) => [(i * width) / count, ...sides.shares(((i || 1e-9) * top) / count)]);
}

const linePath = (points, y) => points.map(([x, value], i) => (i ? `H${x.toFixed(1)}V${y(value).toFixed(2)}` : `M${x.toFixed(1)} ${y(value).toFixed(2)}`)).join("");

function bandPath(points, y) {
  const upper = linePath(points.map(([x, , open]) => [x, open]), y);
  const back = points.map(([x, proven]) => [x, proven]).reverse()
    .map(([x, value]) => `V${y(value).toFixed(2)}H${x.toFixed(1)}`).join("");
  return `${upper}${back}Z`;
}

// --- small: no axes, the same scale for every row of a table

function sparkline(sides, top, eps, colour, name) {
  const [width, height] = [132, 34];
  const y = (share) => 1 + (height - 2) * (1 - share);
  const points = sampled(sides, top, width);
  const proven = points.map(([x, low]) => [x, low]);
  const at = Math.min(1, eps / top) * width;
  return svg("svg", { class: "spark", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": `Robust accuracy of ${name} from ε = 0 to ${number(top, 3)}` },
    svg("path", { d: `${linePath(proven, y)}V${height}H0Z`, fill: colour, opacity: 0.16 }),
    svg("path", { d: bandPath(points, y), fill: colour, opacity: 0.4 }),
    svg("path", { d: linePath(proven, y), fill: "none", stroke: colour, "stroke-width": 1.6 }),
    svg("line", { x1: at, x2: at, y1: 0, y2: height, class: "spark-eps" }));
}

// --- large

function niceTicks(top, most) {
  const raw = top / most;
  const unit = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((k) => k * unit).find((size) => size >= raw);
  return Array.from({ length: Math.floor(top / step + 1e-9) + 1 }, (_, i) => Number((i * step).toPrecision(10)));
}

// `lines` are { name, sides, colour(), dash }; `view` has eps and is told of a new one by `choose`.
function curveChart(lines, top, view, choose) {
  const element = el("div", { class: "steps", "data-chart": "curves" });
  const margin = { left: 46, right: 10, top: 10, bottom: 40 };

  function draw() {
    const width = Math.max(240, element.clientWidth || 900);
    const height = width < 560 ? 230 : 300;
    const [inner, high] = [width - margin.left - margin.right, height - margin.top - margin.bottom];
    const x = (eps) => margin.left + (inner * Math.min(eps, top)) / top;
    const y = (share) => margin.top + high * (1 - share);
    const drawn = lines.filter((line) => line.isShown !== false).map((line) => {
      const points = sampled(line.sides, top, inner).map(([at, ...shares]) => [at + margin.left, ...shares]);
      return svg("g", { "data-line": line.name },
        svg("path", { d: bandPath(points, y), fill: line.colour(), opacity: 0.25 }),
        svg("path", { d: linePath(points.map(([at, low]) => [at, low]), y), fill: "none", stroke: line.colour(), "stroke-width": 0.8 }),
        svg("path", { d: linePath(points.map(([at, , open]) => [at, open]), y), fill: "none", stroke: line.colour(), "stroke-width": 2, "stroke-dasharray": line.dash }));
    });
    const mark = svg("g", { class: "steps-eps" }, svg("line", { x1: x(view.eps), x2: x(view.eps), y1: margin.top, y2: margin.top + high }));
    const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img",
      "aria-label": `Robust accuracy over ε of ${listed(lines.map((line) => line.name))}` },
      axes(x, y, top, width, height, margin), ...drawn, mark);
    picture.addEventListener("pointerdown", (event) => drag(event, picture, x));
    element.replaceChildren(picture);
  }

  function drag(event, picture, x) {
    const move = (at) => {
      const box = picture.getBoundingClientRect();
      const [left, right] = [x(0), x(top)];
      choose(Math.min(Math.max((top * (at.clientX - box.left - left)) / (right - left), 0), top));
    };
    const stop = () => window.removeEventListener("pointermove", move);
    move(event);
    window.addEventListener("pointermove", move);
    window.addEventListener("pointerup", stop, { once: true });
    window.addEventListener("pointercancel", stop, { once: true });
  }

  // One line alone, as long as its row is pointed at; all of them for an empty name.
  function single(name) {
    for (const line of element.querySelectorAll("[data-line]")) line.setAttribute("opacity", !name || line.dataset.line === name ? 1 : 0.12);
  }

  new ResizeObserver(() => { if (element.clientWidth) draw(); }).observe(element);
  return { element, draw, single };
}

function axes(x, y, top, width, height, margin) {
  const made = svg("g", { class: "steps-axes" });
  for (const share of [0, 0.25, 0.5, 0.75, 1]) {
    made.append(svg("line", { x1: margin.left, x2: width - margin.right, y1: y(share), y2: y(share) }),
      svg("text", { x: margin.left - 8, y: y(share) + 4, "text-anchor": "end" }, `${100 * share} %`));
  }
  for (const eps of niceTicks(top, width < 560 ? 4 : 8)) {
    made.append(svg("text", { x: x(eps), y: height - margin.bottom + 18, "text-anchor": "middle" }, number(eps)));
  }
  made.append(svg("text", { x: (margin.left + width - margin.right) / 2, y: height - 4, "text-anchor": "middle", class: "steps-title" }, "radius ε"));
  return made;
}

// A slider and a box for one eps, as the report has them for the whole page.
function epsControl(top, view, choose) {
  const slider = el("input", { type: "range", min: 0, max: top, step: "any", class: "eps", "aria-label": "Radius ε" });
  const box = el("input", { type: "number", min: 0, step: "any", inputmode: "decimal", class: "eps-box", "aria-label": "Radius ε, exact" });
  slider.addEventListener("input", () => choose(Number(slider.value)));
  slider.addEventListener("keydown", (event) => {
    const moves = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10 };
    if (!(event.key in moves)) return;
    event.preventDefault();
    choose(Math.min(top, Math.max(0, view.eps + (moves[event.key] * top) / 200)));
  });
  box.addEventListener("change", () => choose(Math.min(top, Math.max(0, Number(box.value) || 0))));
  const update = () => {
    slider.value = view.eps;
    slider.style.setProperty("--filled", `${(100 * view.eps) / top}%`);
    slider.setAttribute("aria-valuetext", `epsilon ${number(view.eps)}`);
    if (document.activeElement !== box) box.value = number(view.eps, 6);
  };
  update();
  return { element: el("div", { class: "eps-row" }, el("span", {}, "Radius ", el("b", {}, "ε")), slider, box), update };
}

// Solid is proven, hatched is open; the text tells both ends.
function shareBar(proven, open, colour) {
  return el("div", { class: "share" },
    el("div", { class: "bar", style: { "--colour": colour } },
      el("div", { class: "open-share", style: { width: `${100 * open}%` } }),
      el("div", { class: "proven", style: { width: `${100 * proven}%` } })));
}

function legendOf(lines, view, draw) {
  const chips = lines.map((line) => {
    const chip = el("button", { type: "button", class: "chip", "aria-pressed": "true", onclick: () => {
      line.isShown = line.isShown === false;
      chip.setAttribute("aria-pressed", String(line.isShown));
      draw();
    } }, svg("svg", { viewBox: "0 0 30 10", "aria-hidden": "true" },
      svg("line", { x1: 0, x2: 30, y1: 5, y2: 5, stroke: line.colour(), "stroke-width": 3, "stroke-dasharray": line.dash })), line.name);
    return chip;
  });
  return el("div", { class: "legend" }, ...chips);
}

function sheetFooter(facts, ...words) {
  byId("footer").replaceChildren(
    el("details", {}, el("summary", {}, "What the words mean"), ...words.map(([word, meaning]) => el("p", {}, el("b", {}, `${word}: `), meaning))),
    el("p", {}, `Made by radii ${facts.version} on ${facts.made.slice(0, 16).replace("T", " ")} UTC. This file is complete: it asks the network for nothing.`));
}

const SVG_DASHES = [null, "7 3", "2 3", "8 3 2 3"];
const svgDash = (place) => SVG_DASHES[(place + Math.floor(place / 8)) % 4];

async function drawSheet(draw) {
  setUpTheme();
  try {
    const facts = await factsOfPage();
    byId("title").textContent = facts.title;
    await draw(facts);
    document.documentElement.dataset.ready = facts.made;
  } catch (error) {
    byId("sections").replaceChildren(el("p", { class: "alarm", role: "alert" }, `The page cannot be drawn: ${error.message}`));
    throw error;
  }
}
