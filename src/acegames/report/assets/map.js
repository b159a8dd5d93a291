// Values and the recommended joint action over the cumulative costs, for the time and state that are open, or others if those have one situation only.
const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const view = { what: 0, x: 0, y: 1 };
const WHAT = [...DATA.players.map((p) => `Value of ${p}`), ...(N > 1 ? ["Sum of values"] : []), "Recommended joint action"];
const ACTION = WHAT.length - 1;

/* The ranges of amounts that cells stand for, [least, most], from low to high as they are shown; a range is one amount where no situation is left out. */
function ranges(map, m) {
  const shown = map.r ? map.r[m].map(([a, b]) => [level(a, m), level(b, m)].sort((x, y) => x - y)) : [...new Set(map.c[m])].map((c) => [level(c, m), level(c, m)]);
  return shown.sort((a, b) => a[0] - b[0]);
}
/* The number of the range that an amount lies in, or of the nearest. */
function rangeOf(sides, x) {
  const away = ([a, b]) => Math.max(a - x, x - b, 0);
  return sides.reduce((best, side, k) => (away(side) < away(sides[best]) ? k : best), 0);
}

/* The time and state whose map has the most different values. */
let richest = null;
function mostToSee() {
  const variety = (map) => new Set(map.a.map((_, k) => map.v.map((column) => number(column[k])).join())).size;
  richest ??= groups.flatMap((byState, t) => [...byState.keys()].map((state) => ({ t, state, seen: variety(DATA.maps[t][String(state)]) }))).reduce((a, b) => (b.seen > a.seen ? b : a));
  return richest;
}

/* The situation whose time and state are mapped: the open one; or, where that has one cell only, one at the time and state with the most to see. */
function mapped() {
  if (DATA.maps[open.t][String(open.record[STATE])].a.length > 1) return open;
  const best = mostToSee();
  if (best.seen === 1) return open;
  const records = groups[best.t].get(best.state), counts = new Map();
  const others = (record) => record[SPENT].filter((_, m) => hiddenAxes().includes(m)).join(); // the map shows those with the same
  records.forEach((record) => counts.set(others(record), (counts.get(others(record)) || 0) + 1));
  return { t: best.t, record: records.reduce((a, b) => (counts.get(others(b)) > counts.get(others(a)) ? b : a)) };
}
/* The constraints that no axis of the map shows. */
const hiddenAxes = () => DATA.constraints.map((_, m) => m).filter((m) => m !== view.x && (m !== view.y || M === 1));

/* The cells to draw: {x, y: numbers of ranges, values, value, action, p}, of the time and state of a situation; with more than two constraints those with the other amounts as they are. */
function cells(place) {
  const map = DATA.maps[place.t][String(place.record[STATE])], own = place.record[SPENT];
  const sides = DATA.constraints.map((_, m) => ranges(map, m)), found = [];
  const number_ = sides.map((side, m) => { const known = new Map(); return (c) => { if (!known.has(c)) known.set(c, rangeOf(side, level(c, m))); return known.get(c); }; });
  const hidden = hiddenAxes();
  const wanted = hidden.map((m) => number_[m](own[m]));
  for (let k = 0; k < map.a.length; k++) {
    if (M > 2 && hidden.some((m, j) => number_[m](map.c[m][k]) !== wanted[j])) continue; // of what no axis shows
    const values = map.v.map((column) => column[k]);
    const value = view.what < N ? values[view.what] : values.reduce((a, b) => a + b, 0);
    found.push({ x: number_[view.x](map.c[view.x][k]), y: M > 1 ? number_[view.y](map.c[view.y][k]) : 0, values, value, action: map.a[k], p: map.p[k] });
  }
  return { drawn: found, xs: borders(sides[view.x], view.x, place.t), ys: M > 1 ? borders(sides[view.y], view.y, place.t) : null };
}

/* What bounds a cumulative cost before the step at time t. */
const boundBefore = (m, t) => DATA.budgets[Math.max(0, t - 1)][m];

/* Where cells end: halfway to the neighbouring amounts, no further than half the usual gap; and where the axis ends: at the budget, or at what a reservoir holds. */
function borders(sides, m, t) {
  const gaps = sides.slice(1).map(([a], k) => a - sides[k][1]).sort((a, b) => a - b);
  const gap = gaps.length ? gaps[Math.floor(gaps.length / 2)] : 1;
  const of = sides.map(([a, b], k) => [a - Math.min(gap, k ? a - sides[k - 1][1] : gap) / 2, b + Math.min(gap, k + 1 < sides.length ? sides[k + 1][0] - b : gap) / 2]);
  const bound = boundBefore(m, t);
  const ends = stored(m) ? [0, DATA.capacities[m]] : bound === null ? [] : [bound];
  const low = sides[0][0], high = sides[sides.length - 1][1];
  return { of, sides, ends, least: Math.min(low, ...ends) - gap / 2, most: Math.max(high, ...ends) + gap / 2, cell: Math.max(gap, (high - low + gap) / sides.length) };
}
const spelledRange = ([a, b], m) => (a === b ? amount(a, m) : `${amount(a, m)} to ${amount(b, m)}`);

const channels = (hex) => [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16));
function ramp(share) {
  const low = channels(colour("--ramp-low")), high = channels(colour("--ramp-high"));
  return low.map((c, k) => Math.round(c + (high[k] - c) * share));
}
const dark = (rgb) => 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2] < 140;
const css = (rgb) => `rgb(${rgb.join()})`;

/* A pattern of its own for the k-th joint action: lines at an angle, more or less dense. */
function hatch(ctx, k, x, y, w, h) {
  ctx.save();
  ctx.beginPath();
  ctx.rect(x, y, w, h);
  ctx.clip();
  ctx.globalAlpha = 0.22;
  ctx.fillStyle = seriesColour(k);
  ctx.fillRect(x, y, w, h);
  ctx.globalAlpha = 0.55;
  ctx.strokeStyle = seriesColour(k);
  ctx.lineWidth = devicePixelRatio;
  const step = (5 + 3 * (Math.floor(k / 4) % 3)) * devicePixelRatio, kind = k % 4, size = Math.max(w, h);
  ctx.beginPath();
  for (let s = -size; s < 2 * size; s += step) {
    if (kind === 0) { ctx.moveTo(x + s, y); ctx.lineTo(x + s + h, y + h); }
    if (kind === 1) { ctx.moveTo(x + s + h, y); ctx.lineTo(x + s, y + h); }
    if (kind === 2) { ctx.moveTo(x, y + s); ctx.lineTo(x + w, y + s); }
    if (kind === 3) { ctx.moveTo(x + s, y); ctx.lineTo(x + s, y + h); }
  }
  ctx.stroke();
  ctx.restore();
}

function paint(u, place, drawn, xs, ys, range, letters) {
  const { ctx } = u, ratio = devicePixelRatio;
  ctx.save();
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  for (const cell of drawn) {
    const [a, b] = xs.of[cell.x], [c, d] = ys ? ys.of[cell.y] : [0, 1];
    const x = u.valToPos(a, "x", true), y = u.valToPos(d, "y", true);
    const w = u.valToPos(b, "x", true) - x, h = u.valToPos(c, "y", true) - y;
    let text, ink;
    if (view.what === ACTION) {
      const k = letters.get(cell.action);
      hatch(ctx, k, x, y, w, h);
      text = (LETTERS[k] || "…") + (cell.p < 1 ? "*" : "");
      ink = colour("--ink");
    } else {
      const rgb = ramp(range[1] > range[0] ? (cell.value - range[0]) / (range[1] - range[0]) : 0.5);
      ctx.fillStyle = css(rgb);
      ctx.fillRect(x, y, w, h);
      text = number(rounded(cell.value, 4));
      ink = dark(rgb) ? "#ffffff" : "#14181c";
    }
    ctx.strokeStyle = colour("--card");
    ctx.lineWidth = ratio;
    if (w > 6 * ratio && h > 6 * ratio) ctx.strokeRect(x, y, w, h);
    const size = view.what === ACTION ? 13 : 11.5;
    ctx.font = `${size * ratio}px system-ui, sans-serif`;
    if (ctx.measureText(text).width < w - 4 * ratio && h > 14 * ratio) {
      if (view.what === ACTION) {
        const wide = ctx.measureText(text).width + 6 * ratio;
        ctx.fillStyle = colour("--card");
        const high = Math.min(18 * ratio, h - 4 * ratio);
        ctx.fillRect(x + w / 2 - wide / 2, y + h / 2 - high / 2, wide, high);
      }
      ctx.fillStyle = ink;
      ctx.fillText(text, x + w / 2, y + h / 2);
    }
  }
  if (place === open) frame(u, drawn, xs, ys);
  ctx.restore();
}

/* The frame around the cell that the open situation belongs to. */
function frame(u, drawn, xs, ys) {
  const { ctx } = u, own = open.record[SPENT].map(level);
  const x = rangeOf(xs.sides, own[view.x]), y = ys ? rangeOf(ys.sides, own[view.y]) : 0;
  const cell = drawn.find((one) => one.x === x && one.y === y);
  if (!cell) return;
  const [a, b] = xs.of[x], [c, d] = ys ? ys.of[y] : [0, 1];
  ctx.strokeStyle = colour("--ink");
  ctx.lineWidth = 3 * devicePixelRatio;
  ctx.strokeRect(u.valToPos(a, "x", true), u.valToPos(d, "y", true), u.valToPos(b, "x", true) - u.valToPos(a, "x", true), u.valToPos(c, "y", true) - u.valToPos(d, "y", true));
}

function mapChart(place) {
  const { drawn, xs, ys } = cells(place), rows = rowsOf(place.t, place.record[STATE]);
  if (!drawn.length) return null;
  const counts = new Map();
  drawn.forEach((cell) => counts.set(cell.action, (counts.get(cell.action) || 0) + 1));
  const ordered = [...counts.keys()].sort((a, b) => counts.get(b) - counts.get(a) || a - b);
  const letters = new Map(ordered.map((action, k) => [action, k]));
  const least = drawn.reduce((a, cell) => Math.min(a, cell.value), Infinity), most = drawn.reduce((a, cell) => Math.max(a, cell.value), -Infinity);
  const draw = (width) => {
    const hooks = { draw: [(u) => paint(u, place, drawn, xs, ys, [least, most], letters)] };
    hooks.ready = [(u) => u.over.addEventListener("click", () => {
      if (u.cursor.left < 0) return;
      const wanted = place.record[SPENT].slice();
      wanted[view.x] = level(u.posToVal(u.cursor.left, "x"), view.x);
      if (M > 1) wanted[view.y] = level(u.posToVal(u.cursor.top, "y"), view.y);
      openSituation(place.t, nearest(groups[place.t].get(place.record[STATE]), wanted));
    })];
    const many = ys ? Math.round((ys.most - ys.least) / ys.cell) : 1;
    const height = M > 1 ? Math.min(420, Math.max(190, 80 + 34 * many), Math.max(220, width)) : 120;
    const axes = [xAxis(`${levelOf(view.x)} before the step`, xs.sides.flat()), M > 1 ? yAxis(DATA.constraints[view.y], ys.sides.flat()) : { show: false }];
    const scales = { x: { time: false, range: () => [xs.least, xs.most] }, y: { range: () => (M > 1 ? [ys.least, ys.most] : [-0.06, 1.06]) } };
    const options = { height, axes, scales, hooks, cursor: { drag: { x: false, y: false }, points: { show: false } }, series: [{}, { show: true, stroke: "transparent", points: { show: false } }] };
    return [options, [[xs.least, xs.most], [null, null]]];
  };
  const key = () => (view.what === ACTION ? [...actionKey(ordered, rows, drawn), ...signs(place)] : [rampKey(least, most), ...signs(place)]);
  const numbers = () => {
    const amounts = (M > 1 ? [view.x, view.y] : [view.x]).map(levelOf);
    const lines = drawn.map((cell) => [spelledRange(xs.sides[cell.x], view.x), ...(M > 1 ? [spelledRange(ys.sides[cell.y], view.y)] : []), ...cell.values.map(number), joint(rows[cell.action]) + (cell.p < 1 ? ` (${percent(cell.p)})` : "")]);
    return table("", [...amounts, ...DATA.players.map((p) => `value of ${p}`), "likeliest joint action"], lines, DATA.players.map((_, i) => amounts.length + i));
  };
  const about = view.what === ACTION ? `${ordered.length} different joint actions` : `from ${number(least)} to ${number(most)}`;
  const shown = M > 1 ? [view.x, view.y] : [view.x];
  const over = shown.map(levelOf).join(" and ");
  return new Chart(`${WHAT[view.what]} at t = ${place.t}, state ${DATA.states[place.record[STATE]]}`, `Map of ${WHAT[view.what].toLowerCase()} over ${over}: ${about}, ${times(drawn.length, "cell")}. The table below has the numbers.`, draw, numbers, key);
}

function actionKey(ordered, rows, drawn) {
  const entries = ordered.map((action, k) => {
    const swatch = el("canvas", { width: 26 * devicePixelRatio, height: 18 * devicePixelRatio, style: "width:26px;height:18px" });
    hatch(swatch.getContext("2d"), k, 0, 0, swatch.width, swatch.height);
    return el("li", {}, swatch, el("span", {}, el("strong", {}, LETTERS[k] || "…"), ` ${joint(rows[action])}`));
  });
  if (drawn.some((cell) => cell.p < 1)) entries.push(el("li", {}, "* drawn at random; the likeliest is shown"));
  return entries;
}

function rampKey(least, most) {
  const strip = el("span", { style: `display:inline-block;width:6rem;height:.8rem;border:1px solid ${colour("--line")};background:linear-gradient(90deg,${css(ramp(0))},${css(ramp(1))})` });
  return least === most ? el("li", {}, `everywhere ${number(least)}`) : el("li", {}, number(least), strip, number(most));
}

/* What the frame and the blanks mean. */
function signs(place) {
  const bounds = (M > 1 ? [view.x, view.y] : [view.x]).filter((m) => !stored(m) && boundBefore(m, place.t) !== null).map((m) => `${DATA.constraints[m]}: ${amount(boundBefore(m, place.t), m)}`);
  return [place === open ? el("li", {}, "thick frame: the situation above") : null, el("li", {}, "blank: not reachable under feasible play"), bounds.length ? el("li", {}, `axes end at the budget: ${bounds.join(", ")}`) : null].filter((x) => x);
}

/* With one constraint: the values as lines over what has been spent. */
function valueLines(place) {
  const { drawn, xs } = cells(place), at = (cell) => (xs.sides[cell.x][0] + xs.sides[cell.x][1]) / 2;
  drawn.sort((a, b) => a.x - b.x);
  const all = drawn.flatMap((cell) => cell.values);
  const draw = () => [{
    height: 220,
    axes: [xAxis(`${levelOf(0)} before the step`, xs.sides.flat()), yAxis("value", [0.5])],
    scales: { x: { time: false, range: () => [xs.least, xs.most] }, y: { range: () => around(all.reduce((a, b) => Math.min(a, b)), all.reduce((a, b) => Math.max(a, b))) } },
    hooks: { drawAxes: [(u) => { if (place === open) mark(u, "x", level(open.record[SPENT][0], 0), "here", true); }] }, // below the lines and points
    cursor: { drag: { x: false, y: false } },
    series: [{}, ...DATA.players.map((p, i) => series(p, i))],
  }, [drawn.map(at), ...DATA.players.map((_, i) => drawn.map((cell) => cell.values[i]))]];
  const numbers = () => table("", [levelOf(0), ...DATA.players], drawn.map((cell) => [spelledRange(xs.sides[cell.x], 0), ...cell.values.map(number)]), DATA.players.map((_, i) => i + 1));
  const key = () => DATA.players.map((p, i) => lineKey(p, seriesColour(i), DASHES[i % DASHES.length]));
  return new Chart(`Values by ${levelOf(0)}, at t = ${place.t}, state ${DATA.states[place.record[STATE]]}`, `Values of ${DATA.players.join(", ")} for each amount: ${levelOf(0)}. The table below has the numbers.`, draw, numbers, key);
}

/* The amounts of what no axis shows, in words. */
function otherAmounts(place) {
  const hidden = M > 2 ? hiddenAxes().map((m) => `${DATA.constraints[m]} ${amount(level(place.record[SPENT][m], m), m)}`) : [];
  return hidden.length ? `, ${hidden.join(", ")}` : "";
}

function showMap(changed) {
  if (!M) return;
  if (!changed && M <= 2 && held["map-body"]) { held["map-body"].forEach((chart) => chart.chart && chart.chart.redraw()); return; }
  const place = mapped(), here = DATA.maps[place.t][String(place.record[STATE])];
  const which = place === open ? "For the time and state chosen above." : `At t = ${open.t} in state ${DATA.states[open.record[STATE]]} there is one situation only, so the map shows t = ${place.t}, state ${DATA.states[place.record[STATE]]}${otherAmounts(place)}.`;
  const kept = here.a.length < here.of ? ` The map has ${times(here.a.length, "cell")} for ${here.of.toLocaleString("en")} situations of this time and state; a cell covers a range of amounts and shows one situation in it.` : "";
  byId("map-hint").textContent = `${which} Click a cell to open it.${kept}${DATA.alike ? " Lower amounts than the lowest shown are all alike." : ""}`;
  const main = mapChart(place);
  if (main === null) { showCharts("map-body", [], el("p", {}, "No situation in this page has just these amounts of the other constraints; move a slider above.")); return; }
  showCharts("map-body", M === 1 ? [main, valueLines(place)] : [main]);
}

function showMapControls() {
  if (!M) { byId("map-hint").textContent = "This game has no budgets, so there is nothing to map."; return; }
  const again = () => showMap(true);
  const nodes = [chooser("Show", WHAT, view.what, (k) => { view.what = k; again(); }, "map-what").node];
  if (M > 2) {
    const axisChooser = (label, own, other) => chooser(label, DATA.constraints, view[own], (k) => {
      if (k === view[other]) { view[other] = view[own]; byId(`map-${other}`).value = view[other]; }
      view[own] = k;
      again();
    }, `map-${own}`).node;
    nodes.push(axisChooser("Across", "x", "y"), axisChooser("Up", "y", "x"));
  }
  fill("map-controls", nodes);
}
