// The payload: facts (JSON), columns and pictures (compressed arrays). Inside the page they are
// script elements; a live page asks its server for them, and for the pictures input by input.

// Whatever is asked of the server carries what the page's own address does: the token, what is shown.
function addressOf(name, more = {}) {
  const query = new URLSearchParams(location.search);
  for (const [key, value] of Object.entries(more)) query.set(key, value);
  return `${name}?${query}`;
}

async function fetched(name, more = {}, options = {}) {
  const answer = await fetch(addressOf(name, more), { cache: "no-store", ...options });
  if (!answer.ok) throw Object.assign(new Error((await answer.text()).trim() || `${name}: ${answer.status}`), { status: answer.status });
  return answer;
}

function bytesOf(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const decoded = atob(text);
  const bytes = new Uint8Array(decoded.length);
  for (let i = 0; i < decoded.length; i++) bytes[i] = decoded.charCodeAt(i);
  return bytes;
}

const heldIn = (name) => byId(name).textContent;

async function factsOfPage() {
  return heldIn("facts") ? JSON.parse(heldIn("facts")) : (await fetched("facts.json")).json();
}

async function columnsOfPage(facts) {
  if (heldIn("columns")) return bytesOf(heldIn("columns"));
  return new Uint8Array(await (await fetched("columns.bin", { snapshot: facts.snapshot })).arrayBuffer());
}

async function arraysOf(bytes, contents) {
  const packed = new Blob([bytes]).stream();
  const stream = packed.pipeThrough(new DecompressionStream("deflate"));
  const buffer = await new Response(stream).arrayBuffer();
  const kinds = { Float64Array, Float32Array, Int32Array, Uint32Array, Uint16Array, Uint8Array, Int8Array };
  const arrays = {};
  for (const [key, { type, at, length }] of Object.entries(contents)) {
    arrays[key] = new kinds[type](buffer, at, length);
  }
  return arrays;
}

// What the data call a class; its number where they do not say.
const classText = (model, number) => model.facts.class_names?.[number] ?? String(number);

// Sorted sides of a set of brackets: how many are proven and not refuted at an eps is two searches.
class Sides {
  constructor(lowers, uppers) {
    this.size = lowers.length;
    this.proofs = Float64Array.from(lowers, (low, i) => (low === uppers[i] ? justBelow(low) : low)).sort();
    this.witnesses = Float64Array.from(uppers).sort();
  }

  // [proven, not refuted]: the shares whose class holds in the closed ball of radius eps.
  shares(eps) {
    if (!this.size) return [NaN, NaN];
    const unproven = countWhile(this.proofs, (value) => value < eps);
    const refuted = countWhile(this.witnesses, (value) => value <= eps);
    return [1 - unproven / this.size, 1 - refuted / this.size];
  }
}

// A distance known exactly is itself not within what is proven.
const justBelow = (value) => (value === 0 ? -Number.MIN_VALUE : value * (1 - 2 ** -53));

function countWhile(sorted, holds) {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (holds(sorted[middle])) low = middle + 1;
    else high = middle;
  }
  return low;
}

async function loadModel() {
  const facts = await factsOfPage();
  const rows = await arraysOf(await columnsOfPage(facts), facts.arrays.columns);
  const model = { facts, rows, size: rows.network.length, networks: facts.networks, classes: facts.classes };
  model.rowsOf = facts.networks.map(() => []);
  for (let row = 0; row < model.size; row++) model.rowsOf[rows.network[row]].push(row);
  const counted = facts.networks.map(() => ({ all: [], of: new Map() }));
  for (let i = 0; i < rows.counted_network.length; i++) {
    const group = counted[rows.counted_network[i]];
    group.all.push(i);
    const label = rows.counted_label[i];
    if (!group.of.has(label)) group.of.set(label, []);
    group.of.get(label).push(i);
  }
  const sides = (places) => new Sides(
    places.map((i) => rows.counted_lower[i]), places.map((i) => rows.counted_upper[i]));
  model.sides = counted.map((group) => sides(group.all));
  model.classSides = counted.map((group) =>
    new Map([...group.of].map(([label, places]) => [label, sides(places)])));
  model.pictures = pictureLoader(model);
  model.sameInput = inputIndex(model);
  return model;
}

// The arrays that hold the pictures of a row's input; those of ensembles belong to no row.
function pictureLoader(model) {
  const { facts, rows } = model;
  const kept = new Map();
  const load = facts.has_pictures
    ? () => arraysOf(bytesOf(heldIn("pictures")), facts.arrays.pictures)
    : (input) => picturesOfInput(model, input);
  return (row) => {
    const key = facts.has_pictures ? "all" : rows.input[row];
    if (!kept.has(key)) kept.set(key, load(key));
    return kept.get(key);
  };
}

// One input's own arrays; where in them its parts lie is written where the others' places are.
async function picturesOfInput({ facts, rows }, input) {
  const told = await (await fetched("pictures.json", { input, snapshot: facts.snapshot })).json();
  const known = facts.shapes.findIndex((shape) => String(shape) === String(told.shape));
  rows.input_shape[input] = known < 0 ? facts.shapes.push(told.shape) - 1 : known;
  rows.input_at[input] = told.input_at;
  rows.pixel_range[input] = told.pixel_range;
  for (const [row, at, scale] of told.differences) {
    rows.difference_at[row] = at;
    rows.difference_scale[row] = scale;
  }
  return arraysOf(bytesOf(told.data), told.contents);
}

// What tells inputs apart; where the inputs themselves are not known, their places do.
function inputKey({ rows, networks }, row) {
  return rows.input[row] < 0 ? `${networks[rows.network[row]].experiment}:${rows.position[row]}` : rows.input[row];
}

// Rows of the same input (and target), over all networks.
function inputIndex(model) {
  const { rows } = model;
  const found = new Map();
  const keyOf = (row) => `${inputKey(model, row)}|${rows.target[row]}`;
  for (let row = 0; row < model.size; row++) {
    const key = keyOf(row);
    if (!found.has(key)) found.set(key, []);
    found.get(key).push(row);
  }
  return (row) => found.get(keyOf(row));
}
