// The smallest budgets that suffice, and what a budget is worth.
const pareto = { x: 0, y: 1 };
const ownBudget = (m) => (DATA.reference[m] === undefined ? null : DATA.reference[m]);
const bounded = (m) => DATA.budgets.some((row) => row[m] !== null);

const capital = (text) => text[0].toUpperCase() + text.slice(1);

function showFrontierControls() {
  if (M <= 2 || DATA.frontier.rows.length < 2) return; // there is no chart
  const axisChooser = (label, own, other) => chooser(label, DATA.constraints, pareto[own], (k) => {
    if (k === pareto[other]) { pareto[other] = pareto[own]; byId(`pareto-${other}`).value = pareto[other]; }
    pareto[own] = k;
    showFrontier();
  }, `pareto-${own}`).node;
  fill("frontier-controls", axisChooser("Across", "x", "y"), axisChooser("Up", "y", "x"));
}

function frontierTable() {
  return table("The budgets of each line suffice; if one of them is smaller, they do not", DATA.constraints.map((_, m) => budgetOf(m)), DATA.frontier.rows.map((row) => row.map((x, m) => (x === null ? "no limit" : amount(x, m)))), DATA.constraints.map((_, m) => m));
}

function showFrontier() {
  const { rows } = DATA.frontier, notes = DATA.frontier.notes.map(noted("hint"));
  if (!rows.length) { showCharts("frontier-body", [], ...notes); return; }
  const called = (m) => (stored(m) ? budgetOf(m) : DATA.constraints[m]);
  const own = DATA.constraints.map((_, m) => `${called(m)} ${bounded(m) ? amount(ownBudget(m), m) : "no limit"}`).join(", ");
  if (M === 1 || rows.length === 1) {
    const least = rows.map((row) => row.map((x, m) => `${called(m)} ${x === null ? "no limit" : amount(x, m)}`).join(", ")).join("; ");
    showCharts("frontier-body", [], el("p", { id: "minimal" }, `The smallest budgets that suffice: ${least}. With less no play is feasible. The game's own: ${own}.`), ...notes);
    return;
  }
  const { x, y } = pareto;
  const points = rows.filter((row) => row[x] !== null && row[y] !== null).map((row) => [row[x], row[y]]).sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const stairs = points.filter((point, k) => points.slice(0, k).every((before) => before[1] > point[1]));
  const drawable = stairs.length && bounded(x) && bounded(y);
  const words = el("p", { id: "minimal" }, `Budgets suffice if each is at least as large as in one of these ${DATA.frontier.number.toLocaleString("en")} smallest combinations; otherwise no play is feasible. The game's own: ${own}.`);
  if (!drawable) { showCharts("frontier-body", [], words, ...notes, scrolling(frontierTable())); return; }
  showCharts("frontier-body", [frontierChart(stairs, x, y)], words, ...notes);
}

function frontierChart(stairs, x, y) {
  const own = [ownBudget(x), ownBudget(y)];
  const range = (k) => around(Math.min(own[k], ...stairs.map((p) => p[k])), Math.max(own[k], ...stairs.map((p) => p[k])), 0.12);
  const paint = (u) => {
    const { ctx, bbox } = u, ratio = devicePixelRatio;
    const px = (v) => u.valToPos(v, "x", true), py = (v) => u.valToPos(v, "y", true);
    ctx.save();
    ctx.beginPath();
    ctx.moveTo(px(stairs[0][0]), bbox.top);
    stairs.forEach((p, k) => { ctx.lineTo(px(p[0]), py(p[1])); if (k + 1 < stairs.length) ctx.lineTo(px(stairs[k + 1][0]), py(p[1])); });
    ctx.lineTo(bbox.left + bbox.width, py(stairs[stairs.length - 1][1]));
    ctx.strokeStyle = seriesColour(0);
    ctx.lineWidth = 2 * ratio;
    ctx.stroke();
    ctx.lineTo(bbox.left + bbox.width, bbox.top);
    ctx.globalAlpha = 0.12;
    ctx.fillStyle = seriesColour(0);
    ctx.fill();
    ctx.globalAlpha = 1;
    ctx.fillStyle = seriesColour(0);
    stairs.forEach((p) => { ctx.beginPath(); ctx.arc(px(p[0]), py(p[1]), 4.5 * ratio, 0, 7); ctx.fill(); });
    ctx.strokeStyle = ctx.fillStyle = colour("--bad");
    ctx.lineWidth = 2.5 * ratio;
    const s = 6 * ratio, ox = px(own[0]), oy = py(own[1]);
    ctx.beginPath();
    ctx.moveTo(ox - s, oy - s); ctx.lineTo(ox + s, oy + s); ctx.moveTo(ox - s, oy + s); ctx.lineTo(ox + s, oy - s);
    ctx.stroke();
    ctx.font = `${12 * ratio}px system-ui, sans-serif`;
    const text = "the game's own", wide = ctx.measureText(text).width;
    const middle = Math.min(Math.max(ox, bbox.left + wide / 2), bbox.left + bbox.width - wide / 2 - 2 * ratio), line = oy - 18 * ratio;
    ctx.textAlign = "center";
    ctx.textBaseline = "middle";
    ctx.fillStyle = colour("--card");
    ctx.fillRect(middle - wide / 2 - 3 * ratio, line - 8 * ratio, wide + 6 * ratio, 16 * ratio);
    ctx.fillStyle = colour("--bad");
    ctx.fillText(text, middle, line);
    ctx.restore();
  };
  const draw = (width) => [{
    height: Math.min(340, Math.max(240, width * 0.6)),
    axes: [xAxis(budgetOf(x), stairs.map((p) => p[0])), yAxis(budgetOf(y), stairs.map((p) => p[1]))],
    scales: { x: { time: false, range: () => range(0) }, y: { range: () => range(1) } },
    cursor: { drag: { x: false, y: false }, points: { show: false } },
    hooks: { draw: [paint] },
    series: [{}, { stroke: "transparent", points: { show: false } }],
  }, [range(0), [null, null]]];
  const kind = stored(x) ? "Capacities" : "Budgets";
  const both = stored(x) === stored(y) ? `${kind} of ${DATA.constraints[x]} and ${DATA.constraints[y]}` : `${capital(budgetOf(x))} and ${budgetOf(y)}`;
  const shadow = M > 2 ? ", the others being as large as needed" : "";
  return new Chart(`${both} that suffice (shaded)${shadow}`, `Staircase of ${stairs.length} smallest budgets: ${stairs.slice(0, 8).map((p) => `${amount(p[0], x)} and ${amount(p[1], y)}`).join("; ")}${stairs.length > 8 ? "; and more" : ""}. The game's own: ${amount(own[0], x)} and ${amount(own[1], y)}.`, draw, frontierTable);
}

let curveShown = 0;
function showCurveControls() {
  if (DATA.curves.length < 2) return;
  fill("curve-controls", chooser("Budget that varies", DATA.curves.map((c) => DATA.constraints[c.constraint]), 0, (k) => { curveShown = k; showCurve(); }, "curve-what").node);
}

/* A dot for each player's value at the game's own budget. */
function dots(u, curve) {
  const at = curve.budgets.indexOf(ownBudget(curve.constraint));
  (curve.values[at] || []).forEach((v, i) => {
    if (v === null) return;
    u.ctx.beginPath();
    u.ctx.arc(u.valToPos(curve.budgets[at], "x", true), u.valToPos(v, "y", true), 5 * devicePixelRatio, 0, 7);
    u.ctx.fillStyle = seriesColour(i);
    u.ctx.fill();
  });
}

function showCurve() {
  if (!DATA.curves.length) { showCharts("curve-body", [], el("p", { class: "hint" }, "This game has no budgets.")); return; }
  const curve = DATA.curves[curveShown], name = budgetOf(curve.constraint);
  const notes = curve.notes.map(noted("hint"));
  if (!curve.budgets.length) { showCharts("curve-body", [], ...notes); return; }
  const all = curve.values.flat().filter((v) => v !== null);
  const draw = () => [{
    height: 270,
    axes: [xAxis(name, curve.budgets), yAxis("value", [0.5])],
    scales: { x: { time: false, range: () => around(curve.budgets[0], curve.budgets[curve.budgets.length - 1]) }, y: { range: () => around(all.reduce((a, b) => Math.min(a, b)), all.reduce((a, b) => Math.max(a, b)), 0.12) } },
    cursor: { drag: { x: false, y: false } },
    hooks: { drawAxes: [(u) => mark(u, "x", ownBudget(curve.constraint), "the game's own")], draw: [(u) => dots(u, curve)] }, // the dashed line below, the dots above
    series: [{}, ...DATA.players.map((p, i) => series(p, i, { paths: STEPPED, points: { show: curve.budgets.length < 40, size: 5, fill: colour("--card"), stroke: seriesColour(i) } }))],
  }, [curve.budgets, ...DATA.players.map((_, i) => curve.values.map((row) => row[i]))]];
  const numbers = () => table("", [name, ...DATA.players], curve.budgets.map((b, k) => [amount(b, curve.constraint), ...curve.values[k].map((v) => (v === null ? "infeasible" : number(v)))]), DATA.players.map((_, i) => i + 1));
  const key = () => DATA.players.map((p, i) => lineKey(p, seriesColour(i), DASHES[i % DASHES.length]));
  const others = M > 1 ? ", the other budgets being the game's own" : "";
  const first = curve.values[0], last = curve.values[curve.values.length - 1];
  const ends = DATA.players.map((p, i) => `${p} from ${number(first[i])} to ${number(last[i])}`).join(", ");
  showCharts("curve-body", [new Chart(`Values by the ${name}${others}`, `As the ${name} grows from ${amount(curve.budgets[0], curve.constraint)} to ${amount(curve.budgets[curve.budgets.length - 1], curve.constraint)}: ${ends}.`, draw, numbers, key)], ...notes);
}
