// Inputs and counterexamples as pictures, or as numbers where an input is no picture.

function inputPanels(model, arrays, row) {
  const { rows, facts } = model;
  const input = rows.input[row];
  if (input < 0) return [];
  if (rows.input_at[input] < 0) return [el("p", { class: "lead" }, "The picture of this input is not in this page; its notes say why.")];
  const shape = facts.shapes[rows.input_shape[input]];
  if (shape.length === 1) return [featureTable(model, arrays, row, shape[0])];
  const becomes = rows.witness_class[row];
  const panels = [panel("Input", `class ${rows.label[row]}`, inputPicture(model, arrays, row, shape), "input")];
  if (rows.difference_at[row] >= 0) {
    const scale = number(rows.difference_scale[row], 3);
    panels.push(panel("Counterexample", becomes >= 0 ? `seen as ${becomes}` : "", brokenPicture(model, arrays, row, shape), "counterexample"));
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

function featureTable(model, arrays, row, size) {
  const { rows } = model;
  const at = rows.input_at[rows.input[row]];
  const from = rows.difference_at[row];
  const change = (k) => (from < 0 ? 0 : arrays.values[from + k]);
  const features = Array.from({ length: size }, (_, k) => k).sort((a, b) => Math.abs(change(b)) - Math.abs(change(a)));
  return dataTable({
    name: `features-${row}`,
    caption: "Features of the input and of its counterexample",
    rows: features,
    size: 12,
    columns: [
      { title: "Feature", csv: "feature", value: (k) => k },
      { title: "Input", csv: "input", value: (k) => arrays.values[at + k], text: (k) => number(arrays.values[at + k]) },
      ...(from < 0 ? [] : [
        { title: "Counterexample", csv: "counterexample", value: (k) => arrays.values[at + k] + change(k), text: (k) => number(arrays.values[at + k] + change(k)) },
        { title: "Difference", csv: "difference", value: change, text: (k) => number(change(k)) }]),
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
      el("span", {}, `${bracketText(rows.lower[other], rows.upper[other])}${becomes >= 0 ? `, seen as ${becomes}` : ""}`));
  });
  return [el("h3", {}, "The same input on every network"), el("div", { class: "other-grid" }, ...cards)];
}
