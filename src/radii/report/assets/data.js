// The payload: facts (JSON), columns and pictures (compressed arrays). Inside the page they are
// script elements; a server may hand out the same three under the same names instead.

async function fetched(name) {
  const answer = await fetch(name, { cache: "no-store" });
  if (!answer.ok) throw new Error(`${name}: ${answer.status} ${answer.statusText}`);
  return answer;
}

async function partOf(name) {
  const element = byId(name);
  const held = element ? element.textContent : "";
  if (name === "facts") return held ? JSON.parse(held) : (await fetched("facts.json")).json();
  if (!held) return new Uint8Array(await (await fetched(`${name}.bin`)).arrayBuffer());
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(held);
  const text = atob(held);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

async function arraysOf(name, contents) {
  const packed = new Blob([await partOf(name)]).stream();
  const stream = packed.pipeThrough(new DecompressionStream("deflate"));
  const buffer = await new Response(stream).arrayBuffer();
  const kinds = { Float64Array, Float32Array, Int32Array, Uint32Array, Uint16Array, Uint8Array, Int8Array };
  const arrays = {};
  for (const [key, { type, at, length }] of Object.entries(contents)) {
    arrays[key] = new kinds[type](buffer, at, length);
  }
  return arrays;
}

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
  const facts = await partOf("facts");
  const rows = await arraysOf("columns", facts.arrays.columns);
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
  model.pictures = pictureLoader(facts);
  model.sameInput = inputIndex(model);
  return model;
}

function pictureLoader(facts) {
  let arrays = null;
  return () => (arrays ??= arraysOf("pictures", facts.arrays.pictures));
}

// Rows of the same input (and target), over all networks.
function inputIndex(model) {
  const { rows } = model;
  const found = new Map();
  const keyOf = (row) => {
    const experiment = model.networks[rows.network[row]].experiment;
    const input = rows.input[row] < 0 ? `${experiment}:${rows.position[row]}` : rows.input[row];
    return `${input}|${rows.target[row]}`;
  };
  for (let row = 0; row < model.size; row++) {
    const key = keyOf(row);
    if (!found.has(key)) found.set(key, []);
    found.get(key).push(row);
  }
  return (row) => found.get(keyOf(row));
}
