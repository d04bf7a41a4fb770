// Brackets as they close: an upright line an instance, solid up to what is proven, light to the closest
// counterexample. With more instances than pixels, a line is the mean of its neighbours.

const CLOSING_HEIGHT = 110;

function closingCanvas() {
  const canvas = el("canvas", { class: "closing", role: "img" });
  const element = el("figure", { class: "closing-box", hidden: true }, canvas,
    el("figcaption", {}, el("span", {}, "Every instance, in order: dark is proven, light is open, empty is refuted.")));
  let drawn = "";

  function draw(known) {
    element.hidden = !known || !known.lower.length;
    if (element.hidden) return;
    const width = Math.round(element.clientWidth);
    const key = `${known.generation} ${known.number} ${width} ${isDark()}`;
    if (!width || key === drawn) return;
    drawn = key;
    const ends = Float64Array.from([...known.lower, ...known.upper].filter(Number.isFinite)).sort();
    paintClosing(canvas, known, 1.1 * quantileAt(ends, 0.99) || 1, width);
    const closed = known.upper.reduce((sum, end, row) => sum + (Number.isFinite(end) && known.lower[row] > 0 ? 1 : 0), 0);
    canvas.setAttribute("aria-label", `${whole(closed)} of ${whole(known.lower.length)} brackets have a proof and a counterexample`);
    canvas.dataset.closed = closed;
  }
  return { element, draw };
}

function paintClosing(canvas, { lower, upper }, top, width) {
  const scale = Math.min(2, window.devicePixelRatio || 1);
  canvas.width = width * scale;
  canvas.height = CLOSING_HEIGHT * scale;
  canvas.style.height = `${CLOSING_HEIGHT}px`;
  const context = canvas.getContext("2d");
  const colours = { proven: token("--proven"), open: faded(colourOf(0), 0.28) };
  const columns = Math.min(lower.length, canvas.width);
  const wide = canvas.width / columns;
  const gap = wide >= 4 ? 1 : 0;
  const high = (value) => (canvas.height * Math.min(value, top)) / top;
  for (let column = 0; column < columns; column++) {
    const from = Math.floor((column * lower.length) / columns);
    const to = Math.max(from + 1, Math.floor(((column + 1) * lower.length) / columns));
    let low = 0;
    let up = 0;
    for (let row = from; row < to; row++) {
      low += high(lower[row]) / (to - from);
      up += high(upper[row]) / (to - from);
    }
    context.fillStyle = colours.open;
    context.fillRect(column * wide, canvas.height - up, wide - gap, up - low);
    context.fillStyle = colours.proven;
    context.fillRect(column * wide, canvas.height - low, wide - gap, low);
  }
}
