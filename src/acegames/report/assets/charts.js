// Charts by uPlot, each in a figure with a caption, a description for those who do not see it, and its numbers in a table.
const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3], [5, 5], [1, 5]];
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const seriesColour = (k) => colour(`--series-${k % 6}`);
const FONT = "12px system-ui, sans-serif";

/* `draw(width)` gives [options, data] for uPlot; it is called again when the room or the colours change. */
class Chart {
  constructor(caption, description, draw, numbers, key) {
    this.draw = draw;
    this.plot = el("div", { class: "plot", role: "img", "aria-label": description });
    this.key = el("ul", { class: "key", "aria-hidden": "true" });
    this.makeKey = key;
    this.numbers = el("div", { class: "tall" });
    const behind = el("details", {}, el("summary", {}, "The same in numbers"), this.numbers);
    behind.addEventListener("toggle", () => { if (behind.open) this.numbers.replaceChildren(scrolling(numbers())); });
    this.behind = behind;
    this.tableOf = numbers;
    this.figure = el("figure", {}, el("figcaption", {}, caption), this.plot, this.key, behind);
    this.width = 0;
    this.observer = new ResizeObserver(() => this.fit());
    this.observer.observe(this.plot);
    Chart.all.add(this);
  }

  fit() {
    const width = Math.floor(this.plot.clientWidth);
    if (width > 0 && width !== this.width) { this.width = width; this.render(); }
  }

  render() {
    if (!this.width) return;
    if (this.chart) this.chart.destroy();
    const [options, data] = this.draw(this.width);
    this.chart = new uPlot({ width: this.width, legend: { show: false }, ...options }, data, this.plot);
    if (this.makeKey) this.key.replaceChildren(...this.makeKey());
  }

  describe(text) { this.plot.setAttribute("aria-label", text); }

  remove() {
    this.observer.disconnect();
    if (this.chart) this.chart.destroy();
    Chart.all.delete(this);
  }
}
Chart.all = new Set();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => Chart.all.forEach((chart) => chart.render()));

/* Put charts in place of those that a holder showed before. */
const held = {};
function showCharts(id, charts, ...before) {
  (held[id] || []).forEach((chart) => chart.remove());
  held[id] = charts;
  fill(id, ...before, charts.length > 1 ? el("div", { class: "columns" }, charts.map((c) => c.figure)) : charts.map((c) => c.figure));
  charts.forEach((chart) => chart.fit());
}

function axis(label, more = {}) {
  return { label, labelSize: 20, labelGap: 0, labelFont: FONT, font: FONT, stroke: colour("--soft"), grid: { stroke: colour("--grid"), width: 1 }, ticks: { stroke: colour("--line"), width: 1, size: 5 }, ...more };
}
const WHOLE_STEPS = [1, 2, 2.5, 5].flatMap((k) => Array.from({ length: 12 }, (_, e) => k * 10 ** e)).filter(Number.isInteger).sort((a, b) => a - b);
/* An axis along x; where all amounts are whole, so are its ticks. */
function xAxis(label, amounts) {
  return axis(label, { size: 34, values: tickNumbers, ...(amounts.every(Number.isInteger) ? { incrs: WHOLE_STEPS } : {}) });
}
function yAxis(label, amounts) {
  return axis(label, { size: 52, space: 24, values: tickNumbers, ...(amounts.every(Number.isInteger) ? { incrs: WHOLE_STEPS } : {}) });
}
const tickNumbers = (u, ticks) => ticks.map((x) => written(x, largest(ticks)));

const STEPPED = uPlot.paths.stepped({ align: 1 });
function series(label, k, more = {}) {
  return { label, stroke: seriesColour(k), width: 2, dash: DASHES[k % DASHES.length], points: { show: true, size: 6, fill: colour("--card"), stroke: seriesColour(k) }, ...more };
}

function lineKey(label, stroke, dash) {
  const line = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  line.setAttribute("width", 34);
  line.setAttribute("height", 8);
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  for (const [k, v] of Object.entries({ d: "M0 4H34", stroke, "stroke-width": 2.5, "stroke-dasharray": dash.join(" "), fill: "none" })) path.setAttribute(k, v);
  line.append(path);
  return el("li", {}, line, label);
}

/* A dashed line with a word beside it, along x or along y, drawn over the chart. */
function mark(u, scale, at, text, strong) {
  const { ctx, bbox } = u;
  const p = u.valToPos(at, scale, true);
  const along = scale === "x";
  if (along ? p < bbox.left - 1 || p > bbox.left + bbox.width + 1 : p < bbox.top - 1 || p > bbox.top + bbox.height + 1) return;
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = colour(strong ? "--ink" : "--bad");
  ctx.lineWidth = (strong ? 1.5 : 2) * devicePixelRatio;
  ctx.setLineDash(strong ? [2 * devicePixelRatio, 3 * devicePixelRatio] : [7 * devicePixelRatio, 4 * devicePixelRatio]);
  ctx.beginPath();
  if (along) { ctx.moveTo(p, bbox.top); ctx.lineTo(p, bbox.top + bbox.height); }
  else { ctx.moveTo(bbox.left, p); ctx.lineTo(bbox.left + bbox.width, p); }
  ctx.stroke();
  ctx.font = `${12 * devicePixelRatio}px system-ui, sans-serif`;
  const gap = 4 * devicePixelRatio, wide = ctx.measureText(text).width;
  if (along) {
    ctx.textBaseline = "top";
    const right = p + gap + wide < bbox.left + bbox.width;
    ctx.textAlign = right ? "left" : "right";
    ctx.fillText(text, right ? p + gap : p - gap, bbox.top + gap);
  } else {
    ctx.textAlign = "right";
    const above = p - 16 * devicePixelRatio > bbox.top;
    ctx.textBaseline = above ? "bottom" : "top";
    ctx.fillText(text, bbox.left + bbox.width - gap, above ? p - gap / 2 : p + gap / 2);
  }
  ctx.restore();
}

/* A range that leaves some air around values. */
function around(least, most, share = 0.06) {
  const air = most > least ? (most - least) * share : Math.max(1, Math.abs(most)) * 0.5;
  return [least - air, most + air];
}
