// Making elements and writing numbers. Text is always set as text, never as markup.

function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "class") made.className = value;
    else if (name === "style") for (const [k, v] of Object.entries(value)) made.style.setProperty(k, v);
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

const byId = (id) => document.getElementById(id);

const number = (value, digits = 4) => {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (!Number.isFinite(value)) return "none";
  if (value === 0) return "0";
  return String(Number(value.toPrecision(digits)));
};

// Bounds are rounded outward, so that what is written stays true.
function outward(low, high, digits = 4) {
  const unit = 10 ** digits;
  const down = Math.floor(low * unit + 1e-6) / unit;
  const up = Number.isFinite(high) ? Math.ceil(high * unit - 1e-6) / unit : high;
  return [down.toFixed(digits), Number.isFinite(up) ? up.toFixed(digits) : "∞"];
}

function bracketText(low, high) {
  if (low === high) return low === 0 ? "0" : number(low, 6);
  const [down, up] = outward(low, high);
  return `[${down}, ${up})`;
}

// All and nothing are said only of all and nothing.
function tenths(share) {
  const rounded = (100 * share).toFixed(1);
  if (rounded === "100.0" && share < 1) return "99.9";
  return rounded === "0.0" && share > 0 ? "0.1" : rounded;
}

const percent = (share) => `${tenths(share)}\u00a0%`;

// What is known as an interval is rounded outward: [at least, at most] in per cent.
function shareEnds(proven, open) {
  if (proven === open) return [tenths(proven), tenths(open)];
  return [(Math.floor(1000 * proven + 1e-9) / 10).toFixed(1), (Math.ceil(1000 * open - 1e-9) / 10).toFixed(1)];
}

function shareText(proven, open) {
  const [low, high] = shareEnds(proven, open);
  return low === high ? `${low}\u00a0%` : `${low}–${high}\u00a0%`;
}

// "a", "a and b", "a, b and 3 more"
function listed(names, most = 3) {
  const shown = names.length > most ? [...names.slice(0, most - 1), `${names.length - most + 1} more`] : names;
  return shown.length < 2 ? shown.join("") : `${shown.slice(0, -1).join(", ")} and ${shown.at(-1)}`;
}

// A sentence in which names, such as mlp-standard, are not broken at the end of a line.
function prose(text, names) {
  const short = names.filter((name) => name && name.length <= 24).sort((a, b) => b.length - a.length);
  if (!short.length) return [text];
  const escaped = short.map((name) => name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return text.split(new RegExp(`(${escaped.join("|")})`)).map((part, i) => (i % 2 ? el("span", { class: "whole" }, part) : part));
}

const whole = (value) => Math.round(value).toLocaleString("en");

const duration = (seconds) => {
  if (seconds === null || Number.isNaN(seconds)) return "–";
  if (seconds < 10) return `${seconds.toFixed(2)} s`;
  if (seconds < 120) return `${seconds.toFixed(1)} s`;
  if (seconds < 7200) return `${(seconds / 60).toFixed(1)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
};

function select(label, options, chosen, onchange) {
  const box = el("select", { onchange: (event) => onchange(event.target.value) });
  for (const [value, text] of options) {
    box.append(el("option", { value, selected: String(value) === String(chosen) }, text));
  }
  return el("label", { class: "field" }, el("span", {}, label), box);
}

function checkbox(label, isChecked, onchange) {
  const box = el("input", { type: "checkbox", checked: isChecked, onchange: () => onchange(box.checked) });
  return el("label", { class: "check" }, box, el("span", {}, label));
}

function section(id, title, lead, ...children) {
  const heading = el("h2", { id: `${id}-title` }, title);
  return el("section", { id, class: "card", "aria-labelledby": `${id}-title` }, heading,
    lead ? el("p", { class: "lead" }, lead) : null, ...children);
}

// What nobody sees need not follow the slider: it is drawn when it comes near the screen.
const overdue = new Map();
const near = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    target.isNear = isIntersecting;
    if (isIntersecting) catchUp(target);
  }
}, { rootMargin: "200px" });

function catchUp(element) {
  const draw = overdue.get(element);
  overdue.delete(element);
  draw?.();
}

function whenNear(element, draw) {
  near.observe(element);
  return () => {
    overdue.set(element, draw);
    if (element.isNear) catchUp(element);
  };
}

function forgetNear() {
  overdue.clear();
  near.disconnect();
  sized.disconnect();
}

window.addEventListener("beforeprint", () => [...overdue.keys()].forEach(catchUp));

function download(name, text, type) {
  const link = el("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
