// Sample episodes, played back, and the cumulative costs of many episodes at the end.
const playing = { episode: 0, step: 0, timer: null };
const PACE = 900; // milliseconds per step
const current = () => DATA.episodes[playing.episode];
const spentBefore = (t) => (t ? current().spent[t - 1] : DATA.start);

function showEpisodeControls() {
  const which = chooser("Episode", DATA.episodes.map((e) => e.title), 0, (k) => { pause(); playing.episode = k; playing.step = 0; showEpisode(true); }, "episode-which");
  const step = slider("Step", H, 0, (k) => (k < H ? `t = ${k}` : "the end"), (k) => { pause(); playing.step = k; showEpisode(false); }, "episode-at");
  const button = (id, text, label, act) => el("button", { type: "button", id, "aria-label": label, on: { click: act } }, text);
  const go = (k) => { pause(); move(k); };
  const buttons = el("div", { class: "control" }, el("span", { class: "label" }, "Play"), el("div", { class: "buttons" },
    button("episode-first", "|◀", "To the start", () => go(0)), button("episode-back", "◀", "One step back", () => go(playing.step - 1)),
    button("episode-play", "Play", "Play", () => (playing.timer ? pause() : play())), button("episode-next", "▶", "One step on", () => go(playing.step + 1)), button("episode-last", "▶|", "To the end", () => go(H))));
  playing.slider = step;
  which.node.style.gridColumn = "1 / -1"; // the titles are long
  fill("episode-controls", which.node, step.node, buttons);
}

function move(k) {
  playing.step = Math.max(0, Math.min(H, k));
  playing.slider.set(playing.step);
  showEpisode(false);
}

function play() {
  if (playing.step >= H) move(0);
  playing.timer = setInterval(() => { move(playing.step + 1); if (playing.step >= H) pause(); }, PACE);
  nameButton("Pause");
}

function pause() {
  clearInterval(playing.timer);
  playing.timer = null;
  nameButton("Play");
}

function nameButton(text) {
  byId("episode-play").textContent = text;
  byId("episode-play").setAttribute("aria-label", text);
}

function showEpisode(anew) {
  const e = current(), t = playing.step;
  const so = M ? ` (${holding(spentBefore(t), `${DATA.exact ? "" : "truly "}spent so far`)})` : "";
  const total = DATA.players.map((p, i) => `${p} ${number(e.reward.slice(0, t).reduce((sum, row) => sum + row[i], 0))}`).join(", ");
  let said = `The end: state ${DATA.states[e.state[H]]}${so}. Total reward: ${total}.${lost(e)}`;
  if (t < H) {
    const gain = DATA.players.map((p, i) => `${p} ${number(e.reward[t][i])}`).join(", ");
    said = `t = ${t}: in state ${DATA.states[e.state[t]]}${so}, they play ${joint(e.action[t])}.${M ? ` That ${changes(t)} and` : " That"} leads to ${DATA.states[e.state[t + 1]]}. Reward of this step: ${gain}; before it: ${total}.`;
  }
  byId("episode-step").textContent = said;
  if (pictured) byId("episode-picture").replaceChildren(picture(e.state[t]) || el("p", { class: "hint" }, "There is no picture of this state."));
  fill("episode-levels", DATA.constraints.map((name, m) => m).filter(stored).map((m) => el("div", { class: "control" },
    el("div", { class: "label" }, el("span", {}, DATA.constraints[m]), el("output", {}, ofWhole(spentBefore(t)[m], m))), battery(spentBefore(t)[m], m, reserveAt(Math.max(0, t - 1), m)))));
  if (!anew && held["episode-body"]) { held["episode-body"].forEach((chart) => chart.chart && chart.chart.redraw()); return; }
  playing.slider.set(t);
  const open_ = el("button", { type: "button", id: "episode-open", on: { click: openPlayed } }, "Open this situation above");
  showCharts("episode-body", DATA.constraints.map((name, m) => costChart(m)), el("p", {}, open_), steps());
}

/* What reservoirs wasted in an episode. */
function lost(e) {
  const some = DATA.constraints.map((_, m) => m).filter((m) => stored(m) && e.wasted[m] > 0);
  return some.length ? ` Wasted, because it was full: ${some.map((m) => `${amount(e.wasted[m], m)} of ${DATA.constraints[m]}`).join(", ")}.` : "";
}

/* Arrow keys step through the episode and the space bar plays it, wherever the focus is in this section but on a control of its own. */
byId("episode").addEventListener("keydown", (event) => {
  if (event.target.closest("input, select, button, summary, a") || event.ctrlKey || event.metaKey || event.altKey) return;
  const to = { ArrowRight: playing.step + 1, ArrowLeft: playing.step - 1, Home: 0, End: H }[event.key];
  if (to !== undefined) { pause(); move(to); event.preventDefault(); }
  else if (event.key === " ") { if (playing.timer) pause(); else play(); event.preventDefault(); }
});

/* The step that is shown, among the situations above. */
function openPlayed() {
  const e = current(), t = Math.min(playing.step, H - 1), before = e.counted || e.spent;
  openNearest(groups[t].size ? t : timesShown[0], e.state[t], t ? before[t - 1] : DATA.start);
  byId("situation").scrollIntoView();
  byId("time").focus({ preventScroll: true });
}

/* What a step takes of each budget, and drains from or fills into each reservoir. */
function changes(t) {
  const e = current(), by = (m) => e.spent[t][m] - spentBefore(t)[m], of = (m) => DATA.constraints[m];
  const plain = DATA.constraints.map((_, m) => m).filter((m) => !stored(m)).map((m) => `${amount(by(m), m)} of ${of(m)}`);
  const filled = DATA.constraints.map((_, m) => m).filter(stored).map((m) => (by(m) > 0 ? `drains ${of(m)} by ${amount(by(m), m)}` : by(m) < 0 ? `fills ${of(m)} by ${amount(-by(m), m)}` : `leaves ${of(m)} as it is`));
  return [...(plain.length ? [`takes ${plain.join(", ")}`] : []), ...filled].join(", ");
}

function steps() {
  const e = current();
  const lines = e.action.map((a, t) => [String(t), DATA.states[e.state[t]], joint(a), ...e.reward[t].map(number), ...DATA.constraints.map((_, m) => amount(level(e.spent[t][m], m), m))]);
  const headings = ["t", "state", "joint action", ...DATA.players.map((p) => `reward of ${p}`), ...DATA.constraints.map((_, m) => `${levelOf(m)} after`)];
  return el("details", {}, el("summary", {}, "The whole episode in a table"), el("div", { class: "tall" }, scrolling(table("", headings, lines, headings.map((_, k) => k).filter((k) => k > 2)))));
}

/* The cumulative cost after each step, against the budget. */
function costChart(m) {
  const e = current(), name = DATA.constraints[m];
  const over = (rows) => [DATA.start, ...rows].map((row) => level(row[m], m)); // time
  const spent = over(e.spent), counted = e.counted ? over(e.counted) : null;
  const budget = [null, ...DATA.budgets.map((row) => (row[m] === null ? null : level(row[m], m)))];
  const what = stored(m) ? "level" : "spent", limit = stored(m) ? "reserve" : "budget";
  const all = [...spent, ...(counted || []), ...budget.filter((b) => b !== null)];
  if (stored(m)) all.push(0, DATA.capacities[m]);
  const lines = [[what, spent, 0], ...(counted ? [["as the policy counts", counted, 2]] : []), [limit, budget, 1]];
  const shape = (label, k) => series(label, k, label === limit ? { stroke: colour("--bad"), dash: [7, 4], points: { show: H < 40, size: 5, stroke: colour("--bad"), fill: colour("--bad") } } : { paths: STEPPED });
  const draw = () => [{
    height: 200,
    axes: [xAxis("steps played", [H]), yAxis(name, all)],
    scales: { x: { time: false, range: () => [-0.03 * H, H * 1.03] }, y: { range: () => around(all.reduce((a, b) => Math.min(a, b)), all.reduce((a, b) => Math.max(a, b)), stored(m) ? 0.2 : 0.1) } },
    cursor: { drag: { x: false, y: false } },
    hooks: { draw: [(u) => { mark(u, "x", playing.step, "now", true); if (stored(m)) mark(u, "y", DATA.capacities[m], "full", true); }] },
    series: [{}, ...lines.map(([label, , k]) => shape(label, k))],
  }, [spent.map((_, k) => k), ...lines.map(([, values]) => values)]];
  const numbers = () => table("", ["steps played", ...lines.map(([label]) => label)], spent.map((_, k) => [String(k), ...lines.map(([, values]) => (values[k] === null ? (k ? "no limit" : "–") : amount(values[k], m)))]), lines.map((_, k) => k + 1));
  const key = () => lines.map(([label, , k]) => (label === limit ? lineKey(label, colour("--bad"), [7, 4]) : lineKey(label, seriesColour(k), DASHES[k])));
  const caption = stored(m) ? `${name}: level of ${amount(DATA.capacities[m], m)}, against its reserve` : `${name}: cumulative cost against the budget`;
  return new Chart(caption, `${stored(m) ? "Level" : "Cumulative cost"} of ${name} after each step: ${spent.slice(1).map((c) => amount(c, m)).join(", ")}; ${limit}: ${budget.slice(1).map((b) => (b === null ? "none" : amount(b, m))).join(", ")}.`, draw, numbers, key);
}

function showFinal() {
  const s = DATA.summary, kinds = new Set(DATA.constraints.map((_, m) => (stored(m) ? "left" : "spent")));
  if (kinds.has("left")) byId("spending-title").textContent = kinds.size > 1 ? "Cumulative costs and levels at the end" : "Levels at the end";
  const words = M ? `Of ${times(s.episodes, "simulated episode")}, ${s.violations === 0 ? "none" : s.violations.toLocaleString("en")} broke a budget${s.violations ? `, ${s.beyond.toLocaleString("en")} by more than the rounding allows` : ""}.` : "This game has no budgets.";
  showCharts("spending-body", DATA.final.map((final, m) => finalChart(final, m)), el("p", { id: "violations" }, words));
}

/* The amounts at the end as they are shown: levels of a reservoir from low to high. */
function asShown({ bars, mean, least, most }, m) {
  if (!stored(m)) return { bars, mean, least, most };
  return { bars: bars.map(([a, b, n]) => [level(b, m), level(a, m), n]).reverse(), mean: level(mean, m), least: level(most, m), most: level(least, m) };
}

function finalChart(final, m) {
  const { bars, mean, least, most } = asShown(final, m), what = `${levelOf(m)} at the end`, bound = stored(m) ? "reserve" : "budget";
  const name = DATA.constraints[m], single = bars.every(([a, b]) => a === b), limit = DATA.budgets[H - 1][m] === null ? null : level(DATA.budgets[H - 1][m], m);
  const align = !single ? 0 : stored(m) ? 1 : -1; // a bar of one amount ends at it, and that of a level begins at it, so that none is drawn beyond the bound
  const gap = single ? bars.slice(1).reduce((g, bar, k) => Math.min(g, bar[0] - bars[k][0]), bars.length > 1 ? Infinity : 1) : bars[0][1] - bars[0][0];
  const middle = bars.map(([a, b]) => (a + b) / 2), top = bars.reduce((a, bar) => Math.max(a, bar[2]), 0);
  const left = Math.min(least, limit === null ? least : limit) - gap * (align < 0 ? 1 : 0.3), right = Math.max(most, limit === null ? most : limit) + gap * (align > 0 ? 1 : 0.3);
  const draw = (width) => [{
    height: 210,
    axes: [xAxis(what, single ? middle : [0.5]), yAxis("episodes", [1])],
    scales: { x: { time: false, range: () => [left, right] }, y: { range: () => [0, top * 1.15] } },
    cursor: { drag: { x: false, y: false }, points: { show: false } },
    hooks: { draw: [(u) => { if (limit !== null) mark(u, "x", limit, bound); }] },
    series: [{}, { label: "episodes", stroke: seriesColour(0), fill: colour("--accent-soft"), width: 1.5, paths: uPlot.paths.bars({ align, size: [0.8, Math.max(4, (0.8 * gap / (right - left)) * (width - 70)), 2] }), points: { show: false } }],
  }, [middle, bars.map((bar) => bar[2])]];
  const between = ([a, b]) => (a === b ? amount(a, m) : `${amount(a, m)} to ${amount(b, m)}`);
  const numbers = () => table("", [what, "episodes", "share"], bars.map((bar) => [between(bar), bar[2].toLocaleString("en"), percent(bar[2] / DATA.summary.episodes)]), [1, 2]);
  const likely = bars.reduce((best, bar) => (bar[2] > best[2] ? bar : best), bars[0]);
  const against = limit === null ? "no limit at the end" : `${bound} ${amount(limit, m)}`;
  return new Chart(`${name}: mean ${amount(Math.max(least, Math.min(most, rounded(mean, 4))), m)}, from ${amount(least, m)} to ${amount(most, m)} (${against})`, `Distribution of ${what}: from ${amount(least, m)} to ${amount(most, m)}, most often ${between(likely)} (${percent(likely[2] / DATA.summary.episodes)} of episodes); ${against}.`, draw, numbers, () => (align ? [el("li", {}, align < 0 ? "A bar ends at its amount." : "A bar begins at its level.")] : []));
}
