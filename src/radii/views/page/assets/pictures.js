// Inputs and counterexamples as pictures, or as numbers where an input is no picture.

function inputPanels(model, arrays, row) {
  const { rows, facts } = model;
  const input = rows.input[row];
  if (input < 0) return [];
  if (rows.input_at[input] < 0) return [el("p", { class: "lead" }, "The picture of this input is not in this page; its notes say why.")];
  const shape = facts.shapes[rows.input_shape[input]];
  if (shape.length === 1) return [isSignal(shape) ? signalPanel(model, arrays, row, shape[0]) : null, featureTable(model, arrays, row, shape[0])].filter(Boolean);
  const becomes = rows.witness_class[row];
  const panels = [panel("Input", `class ${classText(model, rows.label[row])}`, inputPicture(model, arrays, row, shape), "input")];
  if (rows.difference_at[row] >= 0) {
    const scale = number(rows.difference_scale[row], 3);
    panels.push(panel("Counterexample", becomes >= 0 ? `seen as ${classText(model, becomes)}` : "", brokenPicture(model, arrays, row, shape), "counterexample"));
    panels.push(panel("Difference", `−${scale} (blue) to +${scale} (orange)`, differencePicture(model, arrays, row, shape), "difference"));
  }
  return panels;
}

function panel(title, text, canvas, kind) {
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `${title}: ${text}`);
  canvas.dataset.picture = kind;
  return el("figure", { class: "panel" }, canvas, el("figcaption", {}, el("b", {}, title), el("span", {}, text)));
}

function paint([height, width, channels], colour) {
  const canvas = el("canvas", { width, height });
  const context = canvas.getContext("2d");
  const image = context.createImageData(width, height);
  for (let i = 0; i < height * width; i++) image.data.set(colour(i, channels), 4 * i);
  context.putImageData(image, 0, 0);
  return canvas;
}

const clipped = (value) => Math.max(0, Math.min(255, value));

function inputPicture(model, arrays, row, shape) {
  return paintInput(arrays.pixels, model.rows.input_at[model.rows.input[row]], shape);
}

function brokenPicture(model, arrays, row, shape) {
  const { input_at: inputAt, input, difference_at: differenceAt, difference_scale: scales, pixel_range: ranges } = model.rows;
  return paintBroken(arrays.pixels, inputAt[input[row]], differenceAt[row], scales[row] / ranges[input[row]], shape);
}

function differencePicture(model, arrays, row, shape) {
  return paintDifference(arrays.pixels, model.rows.difference_at[row], shape);
}

function paintInput(pixels, at, shape) {
  return paint(shape, (i, channels) => {
    const from = at + i * channels;
    return channels === 1 ? [pixels[from], pixels[from], pixels[from], 255] : [...pixels.subarray(from, from + 3), 255];
  });
}

// Differences are bytes around 127; `scale` is the largest one, of what lies between black and white.
function paintBroken(pixels, at, differenceAt, scale, shape) {
  const unit = (255 * scale) / 127;
  const value = (k) => clipped(pixels[at + k] + unit * (pixels[differenceAt + k] - 127));
  return paint(shape, (i, channels) => {
    const k = i * channels;
    return channels === 1 ? [value(k), value(k), value(k), 255] : [value(k), value(k + 1), value(k + 2), 255];
  });
}

function paintDifference(pixels, at, shape) {
  const paper = isDark() ? [28, 34, 41] : [255, 255, 255];
  const ends = isDark() ? [[79, 179, 232], [255, 138, 76]] : [[0, 114, 178], [213, 94, 0]];
  return paint(shape, (i, channels) => {
    let change = 0;
    for (let c = 0; c < channels; c++) change += (pixels[at + i * channels + c] - 127) / 127 / channels;
    const end = ends[change > 0 ? 1 : 0];
    const weight = Math.min(1, Math.abs(change));
    return [...paper.map((value, c) => value + weight * (end[c] - value)), 255];
  });
}

// --- inputs that are no pictures: the features that changed most, and a line where there are many

const FEWEST_SIGNAL = 49;
const isSignal = ([size, ...more]) => !more.length && size >= FEWEST_SIGNAL;
const featureName = ({ facts }, k) => facts.features?.names[k] ?? `feature ${k}`;

// { k, before, change } of every feature, those that changed most first: in units of their scales.
function changedFeatures(model, arrays, row, size) {
  const { rows } = model;
  const at = rows.input_at[rows.input[row]];
  const from = rows.difference_at[row];
  const moved = ({ k, change }) => Math.abs(change) / (model.facts.features?.scales[k] || 1);
  return Array.from({ length: size }, (_, k) => ({ k, before: arrays.values[at + k], change: from < 0 ? 0 : arrays.values[from + k] }))
    .sort((a, b) => moved(b) - moved(a) || a.k - b.k);
}

// The input as a line, and the counterexample over it.
function signalPicture(model, arrays, row, size) {
  const [width, height] = [320, 120];
  const canvas = el("canvas", { width: 2 * width, height: 2 * height, class: "signal" });
  const features = changedFeatures(model, arrays, row, size).sort((a, b) => a.k - b.k);
  const lines = [[features.map(({ before }) => before), token("--muted")]];
  if (model.rows.difference_at[row] >= 0) lines.push([features.map(({ before, change }) => before + change), token("--refuted")]);
  const values = lines.flatMap(([line]) => line);
  const [low, high] = values.reduce(([least, most], value) => [Math.min(least, value), Math.max(most, value)], [Infinity, -Infinity]);
  const context = canvas.getContext("2d");
  context.scale(2, 2);
  context.lineWidth = 1.6;
  for (const [line, colour] of lines) {
    context.strokeStyle = colour;
    context.beginPath();
    line.forEach((value, k) => context.lineTo(4 + ((width - 8) * k) / (size - 1), height - 6 - ((height - 12) * (value - low)) / (high - low || 1)));
    context.stroke();
  }
  return canvas;
}

const signalPanel = (model, arrays, row, size) => panel("Input and counterexample", "grey is the input, orange what breaks it", signalPicture(model, arrays, row, size), "signal");

function featureTable(model, arrays, row, size) {
  const hasChange = model.rows.difference_at[row] >= 0;
  return dataTable({
    name: `features-${row}`,
    caption: "Features of the input and of its counterexample",
    rows: changedFeatures(model, arrays, row, size),
    size: 12,
    columns: [
      { title: "Feature", csv: "feature", isText: Boolean(model.facts.features), value: ({ k }) => model.facts.features?.names[k] ?? k },
      { title: "Input", csv: "input", value: ({ before }) => before, text: ({ before }) => number(before) },
      ...(hasChange ? [
        { title: "Counterexample", csv: "counterexample", value: ({ before, change }) => before + change, text: ({ before, change }) => number(before + change) },
        { title: "Difference", csv: "difference", value: ({ change }) => change, text: ({ change }) => number(change) }] : []),
    ],
  }).element;
}

// The same input on every network, side by side.
function otherNetworks(model, arrays, row) {
  const { rows, facts, networks } = model;
  const same = model.sameInput(row);
  if (same.length < 2) return [];
  const cards = same.map((other) => {
    const input = rows.input[other];
    const hasPicture = input >= 0 && rows.difference_at[other] >= 0 && facts.shapes[rows.input_shape[input]].length === 3;
    const becomes = rows.witness_class[other];
    return el("button", { type: "button", class: "other", "aria-current": other === row ? "true" : null, onclick: () => openDetail(model, other) },
      hasPicture ? brokenPicture(model, arrays, other, facts.shapes[rows.input_shape[input]]) : el("div", { class: "blank" }, rows.upper[other] === 0 ? "wrong as it stands" : "no picture"),
      el("b", {}, networks[rows.network[other]].name),
      el("span", {}, `${bracketText(rows.lower[other], rows.upper[other])}${becomes >= 0 ? `, seen as ${classText(model, becomes)}` : ""}`));
  });
  return [el("h3", {}, "The same input on every network"), el("div", { class: "other-grid" }, ...cards)];
}
