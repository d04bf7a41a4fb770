// Many points: painted on a canvas over a chart, where each needs no element of its own.
// A cloud is { x, y, rows, colours (one a point's group), group, text(row) }.

const REACH = 14;

function cloudOver(plot, frame, onPoint) {
  const canvas = el("canvas", { class: "cloud", "aria-hidden": "true" });
  const tip = el("div", { class: "tip", hidden: true, "aria-hidden": "true" });
  frame.append(canvas, tip);
  const view = { cloud: null, px: null, py: null, left: 0, top: 0, down: null };

  function draw(cloud) {
    view.cloud = cloud;
    canvas.hidden = !cloud;
    tip.hidden = true;
    if (!cloud) return;
    const { xaxis, yaxis } = plot._fullLayout;
    const ratio = window.devicePixelRatio || 1;
    Object.assign(view, { left: xaxis._offset, top: yaxis._offset });
    Object.assign(canvas.style, { left: `${view.left}px`, top: `${view.top}px`, width: `${xaxis._length}px`, height: `${yaxis._length}px` });
    canvas.width = Math.round(xaxis._length * ratio);
    canvas.height = Math.round(yaxis._length * ratio);
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    const along = [xaxis, yaxis].map((axis) => [axis.l2p(1) - axis.l2p(0), axis.l2p(0)]);
    view.px = Float32Array.from(cloud.x, (value) => along[0][0] * value + along[0][1]);
    view.py = Float32Array.from(cloud.y, (value) => along[1][0] * value + along[1][1]);
    cloud.colours.forEach((colour, group) => {
      context.fillStyle = colour;
      for (let i = 0; i < view.px.length; i++) if (cloud.group[i] === group) context.fillRect(view.px[i] - 1.5, view.py[i] - 1.5, 3, 3);
    });
  }

  function nearest(event) {
    if (!view.cloud) return -1;
    const box = frame.getBoundingClientRect();
    const x = event.clientX - box.left - view.left;
    const y = event.clientY - box.top - view.top;
    let found = -1;
    let best = REACH * REACH;
    for (let i = 0; i < view.px.length; i++) {
      const distance = (view.px[i] - x) ** 2 + (view.py[i] - y) ** 2;
      if (distance < best) [best, found] = [distance, i];
    }
    return found;
  }

  frame.addEventListener("pointermove", (event) => {
    const at = nearest(event);
    tip.hidden = at < 0;
    if (at < 0) return;
    tip.replaceChildren(...view.cloud.text(view.cloud.rows[at]).map((line) => el("div", {}, line)));
    const isRight = view.px[at] > canvas.clientWidth / 2;
    tip.style.left = `${view.left + view.px[at] + (isRight ? -10 : 10)}px`;
    tip.style.top = `${view.top + view.py[at]}px`;
    tip.classList.toggle("left", isRight);
  });
  frame.addEventListener("pointerleave", () => { tip.hidden = true; });
  frame.addEventListener("pointerdown", (event) => { view.down = view.cloud && [event.clientX, event.clientY]; });
  // Plotly covers the page while a button is down, so that the end of a click is heard on the window.
  window.addEventListener("pointerup", (event) => {
    if (!view.down) return;
    const [x, y] = view.down;
    view.down = null;
    if (Math.hypot(event.clientX - x, event.clientY - y) > 4) return;
    const at = nearest(event);
    if (at >= 0) setTimeout(() => onPoint(view.cloud.rows[at]));
  }, { capture: true, signal: state.life.signal });
  return { draw };
}
