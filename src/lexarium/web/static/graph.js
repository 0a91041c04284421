// The graph of a term's relations: expand, pan and zoom it by mouse and keyboard. The page contains it as a static SVG;
// the relations of other terms are read from the SVG of their pages.

const WIDTH = 216, HEIGHT = 30, STEP = 38, LABEL = 24, GAP = 14, CENTRE = 134, COLUMN = 310, MARGIN = 24;
const figure = document.querySelector("[data-graph]");
const svg = figure.querySelector("svg");
const centre = svg.querySelector(".centre").cloneNode(true);
const root = { href: location.pathname + location.search, name: centre.textContent, depth: 0, groups: readGroups(svg), isOpen: true };
let view, bounds;

function make(name, attributes = {}, text = "") {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.textContent = text;
  return element;
}

function readGroups(picture) {
  return [...(picture?.querySelectorAll("[data-side]") ?? [])].map(group => ({
    side: group.dataset.side === "left" ? -1 : 1,
    label: group.querySelector(".label").textContent,
    isLoose: group.classList.contains("loose"),
    hidden: Number(group.dataset.hidden),
    nodes: [...group.querySelectorAll("a")].map(link => ({
      href: link.getAttribute("href"), name: link.querySelector("title").textContent, text: link.querySelector("text").textContent,
    })),
  }));
}

function* walk(node) {
  yield node;
  if (node.isOpen) for (const group of node.groups) for (const child of group.nodes) yield* walk(child);
}

// Relations lead outward: those of a node on the left are placed further to the left.
async function expand(node) {
  if (!node.groups) {
    const answer = await fetch(node.href, { headers: { accept: "text/html" } });
    if (!answer.ok) throw new Error(answer.statusText);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    node.groups = readGroups(page.querySelector("[data-graph] svg"));
  }
  const known = new Set([...walk(root)].map(item => item.href));
  for (const group of node.groups) {
    group.side = node.side;
    group.nodes = group.nodes.filter(item => !known.has(item.href));
  }
  node.groups = node.groups.filter(group => group.nodes.length);
  node.isOpen = node.groups.length > 0;
  return node.groups.reduce((sum, group) => sum + group.nodes.length, 0);
}

async function toggle(node) {
  try {
    if (node.isOpen) {
      node.isOpen = false;
      node.groups = null;
      say(`${node.name} collapsed.`);
    } else {
      const count = await expand(node);
      svg.style.height = `${Math.max(parseFloat(svg.style.height), 420)}px`;
      say(count ? `${count} records related to ${node.name} added.` : `${node.name} has no other relations.`);
    }
  } catch { say(`${node.name} could not be loaded.`); }
  draw();
  if (bounds[0] < view[0] || bounds[1] < view[1] || bounds[2] > view[0] + view[2] || bounds[3] > view[1] + view[3]) fit();
  svg.querySelector(`[data-node="${CSS.escape(node.href)}"]`)?.focus();
}

// Place the groups of a node from a height on; return the height below them.
function place(groups, side, depth, top) {
  let y = top;
  for (const group of groups) {
    group.x = side > 0 ? CENTRE + (depth - 1) * COLUMN : -CENTRE - WIDTH - (depth - 1) * COLUMN;
    y += LABEL;
    for (const node of group.nodes) {
      Object.assign(node, { side, depth, x: group.x });
      const below = node.isOpen ? place(node.groups, side, depth + 1, y) : y;
      const height = Math.max(STEP, below - y);
      node.y = y + (height - STEP) / 2;
      y += height;
    }
    group.y = group.nodes[0].y - 8;
    if (group.hidden > 0) { group.hiddenY = y + 12; y += LABEL; }
    y += GAP;
  }
  return y;
}

function draw() {
  const lines = make("g"), boxes = make("g");
  bounds = [-75, -22, 75, 22];
  for (const side of [-1, 1]) {
    const groups = root.groups.filter(group => group.side === side);
    const height = place(groups, side, 1, 0) - GAP;
    place(groups, side, 1, -height / 2);
  }
  // In the order of the page.
  for (const group of root.groups) drawGroup(group, { x: 75 * group.side, y: -HEIGHT / 2, isRoot: true }, lines, boxes);
  const box = centre.cloneNode(true);
  box.setAttribute("transform", `translate(-350 ${-centreY})`);
  svg.replaceChildren(lines, boxes, box);
  if (!view) fit(); else show();
}

function drawGroup(group, parent, lines, boxes) {
  const { side } = group;
  boxes.append(make("text", { class: "label", x: group.x + 2, y: group.y }, group.label));
  const start = parent.isRoot ? parent.x : side > 0 ? parent.x + WIDTH : parent.x;
  const startY = parent.y + HEIGHT / 2;
  for (const node of group.nodes) {
    const end = side > 0 ? node.x : node.x + WIDTH, endY = node.y + HEIGHT / 2, middle = (start + end) / 2;
    const line = make("g", { class: group.isLoose ? "loose" : "" });
    line.append(make("path", { d: `M${start} ${startY}C${middle} ${startY} ${middle} ${endY} ${end} ${endY}` }));
    lines.append(line);
    const link = make("a", { href: node.href });
    link.append(make("title", {}, node.name), make("rect", { x: node.x, y: node.y, width: WIDTH, height: HEIGHT, rx: 8 }), make("text", { x: node.x + (node.side > 0 ? 12 : 20), y: node.y + 20 }, node.text));
    boxes.append(link, makeExpander(node));
    bounds = [Math.min(bounds[0], node.x - 12), Math.min(bounds[1], group.y - 15, node.y), Math.max(bounds[2], node.x + WIDTH + 12), Math.max(bounds[3], node.y + HEIGHT, group.hiddenY ?? 0)];
    if (node.isOpen) for (const inner of node.groups) drawGroup(inner, node, lines, boxes);
  }
  if (group.hidden > 0) boxes.append(make("text", { class: "label", x: group.x + 2, y: group.hiddenY }, `and ${group.hidden.toLocaleString("en")} more`));
}

function makeExpander(node) {
  const x = node.side > 0 ? node.x + WIDTH : node.x, y = node.y + HEIGHT / 2;
  const label = `${node.isOpen ? "Collapse" : "Expand"} ${node.name}`;
  const button = make("g", { class: "expander", role: "button", tabindex: 0, "aria-label": label, "aria-expanded": Boolean(node.isOpen), "data-node": node.href });
  button.append(make("circle", { cx: x, cy: y, r: 12 }), make("path", { d: `M${x - 5} ${y}h10${node.isOpen ? "" : `M${x} ${y - 5}v10`}` }));
  button.addEventListener("click", () => toggle(node));
  button.addEventListener("keydown", event => {
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); toggle(node); }
  });
  return button;
}

function show() { svg.setAttribute("viewBox", view.map(value => value.toFixed(1)).join(" ")); }

function fit() {
  const [left, top, right, bottom] = bounds;
  view = [left - MARGIN, top - MARGIN, right - left + 2 * MARGIN, bottom - top + 2 * MARGIN];
  show();
}

function move(dx, dy) {
  view[0] += dx * view[2];
  view[1] += dy * view[3];
  show();
}

// Zoom around a point, given as shares of the width and the height.
function zoom(factor, atX = 0.5, atY = 0.5) {
  const width = Math.min(Math.max(view[2] * factor, 150), 20000), height = view[3] * width / view[2];
  view = [view[0] + (view[2] - width) * atX, view[1] + (view[3] - height) * atY, width, height];
  show();
}

function say(text) { status.textContent = text; }

function toPoint(event) {
  const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
  return [point.x, point.y];
}

const KEYS = {
  ArrowLeft: () => move(-0.1, 0), ArrowRight: () => move(0.1, 0), ArrowUp: () => move(0, -0.1), ArrowDown: () => move(0, 0.1),
  "+": () => zoom(0.8), "=": () => zoom(0.8), "-": () => zoom(1.25), "0": fit,
};

const centreY = svg.viewBox.baseVal.height / 2;
const status = figure.querySelector(".status"), tools = figure.querySelector(".tools");
for (const button of tools.children) button.addEventListener("click", KEYS[button.dataset.key]);
// Keep the size until more has to fit in.
svg.style.height = `${svg.getBoundingClientRect().height}px`;
tools.hidden = status.hidden = false;
figure.classList.add("live");
svg.setAttribute("tabindex", "0");

svg.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey || !KEYS[event.key]) return;
  event.preventDefault();
  KEYS[event.key]();
});
svg.addEventListener("wheel", event => {
  if (!event.ctrlKey && !event.metaKey) return;
  event.preventDefault();
  const [x, y] = toPoint(event);
  zoom(event.deltaY < 0 ? 0.8 : 1.25, (x - view[0]) / view[2], (y - view[1]) / view[3]);
}, { passive: false });

let drag = null;
svg.addEventListener("pointerdown", event => {
  if (event.button === 0) drag = { x: event.clientX, y: event.clientY, view: [...view], hasMoved: false };
});
svg.addEventListener("pointermove", event => {
  if (!drag) return;
  const dx = event.clientX - drag.x, dy = event.clientY - drag.y;
  if (!drag.hasMoved && Math.hypot(dx, dy) < 5) return;
  if (!drag.hasMoved) svg.setPointerCapture(event.pointerId);
  drag.hasMoved = true;
  svg.classList.add("moving");
  const scale = 1 / svg.getScreenCTM().a;
  view = [drag.view[0] - dx * scale, drag.view[1] - dy * scale, view[2], view[3]];
  show();
});
for (const name of ["pointerup", "pointercancel"]) {
  svg.addEventListener(name, () => {
    svg.classList.remove("moving");
    if (drag?.hasMoved) svg.addEventListener("click", event => { event.preventDefault(); event.stopPropagation(); }, { capture: true, once: true });
    drag = null;
  });
}
svg.addEventListener("dragstart", event => event.preventDefault());
svg.addEventListener("focusin", event => {
  if (event.target === svg) return;
  const box = event.target.getBBox();
  const isOut = box.x < view[0] || box.y < view[1] || box.x + box.width > view[0] + view[2] || box.y + box.height > view[1] + view[3];
  if (isOut) { view[0] = box.x + box.width / 2 - view[2] / 2; view[1] = box.y + box.height / 2 - view[3] / 2; show(); }
});

draw();
