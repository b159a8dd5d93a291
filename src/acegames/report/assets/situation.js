// One situation at a time: what is feasible, what is recommended, why nothing else is, and what deviations would lose.
// A record is [state, spent, values, [[row, probability]], [[row, worth...]] safe, [[row, kind, probability, next, after, over]] unsafe, deviations, alternatives].
const STATE = 0, SPENT = 1, VALUES = 2, PLAYED = 3, SAFE = 4, UNSAFE = 5, LEAVING = 6, WHY = 7;
const MOST_ROWS = 12, MOST_MATRIX = 8;

const open = { t: null, record: null };
const listeners = []; // called after another situation is opened: (t, record, whether time or state changed)

const timesShown = DATA.situations.map((at, t) => t).filter((t) => DATA.situations[t].length);
const groups = DATA.situations.map((at) => {
  const byState = new Map();
  at.forEach((record) => { if (!byState.has(record[STATE])) byState.set(record[STATE], []); byState.get(record[STATE]).push(record); });
  return byState;
});
const group = () => groups[open.t].get(open.record[STATE]);
const rowsOf = (t, state) => DATA.rows[`${DATA.layer_at[t]},${state}`];

const scaleOf = DATA.constraints.map((_, m) => {
  const amounts = DATA.situations.flat().map((record) => record[SPENT][m]);
  return amounts.reduce((a, b) => Math.max(a, b), -Infinity) - amounts.reduce((a, b) => Math.min(a, b), Infinity) || 1;
});
function nearest(records, spent, first) {
  const away = (record) => record[SPENT].reduce((sum, c, m) => sum + Math.abs(c - spent[m]) / scaleOf[m] * (m === first ? 1e6 : 1), 0);
  return records.reduce((best, record) => (away(record) < away(best) ? record : best), records[0]);
}

function openSituation(t, record) {
  const changed = t !== open.t || open.record === null || record[STATE] !== open.record[STATE];
  open.t = t;
  open.record = record;
  if (changed) showControls();
  else moveSliders();
  showSituation();
  listeners.forEach((listener) => listener(changed));
}

/* The situation with these cumulative costs, or the nearest one that is in the page. */
function openNearest(t, state, spent, first) {
  const at = groups[t];
  openSituation(t, nearest(at.get(state) || [...at.values()].flat(), spent, first));
}

function openFirst() {
  openNearest(timesShown[0], DATA.situations[timesShown[0]][0][STATE], DATA.start);
}

let sliders = [];
function showControls() {
  const focused = document.activeElement && document.activeElement.id;
  const at = groups[open.t], states = [...at.keys()].sort((a, b) => a - b);
  const time = slider("Time", timesShown.length - 1, timesShown.indexOf(open.t), (k) => `t = ${timesShown[k]} (of 0 … ${H - 1})`,
    (k) => openNearest(timesShown[k], open.record[STATE], open.record[SPENT]), "time");
  const state = chooser(states.length === 1 ? "State (the only one here)" : `State (${states.length} here)`, states.map((s) => DATA.states[s]), states.indexOf(open.record[STATE]),
    (k) => openNearest(open.t, states[k], open.record[SPENT]), "state");
  sliders = DATA.constraints.map((name, m) => {
    const amounts = [...new Set(group().map((record) => record[SPENT][m]))].sort((a, b) => level(a, m) - level(b, m));
    const limit = DATA.budgets[open.t][m] === null ? ", no limit yet" : ` of ${budgetAt(open.t, m)}`;
    const text = (k) => (stored(m) ? ofWhole(amounts[k], m) : `${amount(amounts[k], m)} spent${limit}`);
    const made = slider(name, amounts.length - 1, amounts.indexOf(open.record[SPENT][m]), text, (k) => {
      const wanted = open.record[SPENT].slice();
      wanted[m] = amounts[k];
      openSituation(open.t, nearest(group(), wanted, m));
    }, `spent-${m}`);
    made.amounts = amounts;
    return made;
  });
  sliders.forEach((made, m) => { if (stored(m)) made.node.append(battery(open.record[SPENT][m], m, reserveAt(open.t, m))); });
  fill("controls", time.node, state.node, sliders.map((made) => made.node));
  if (focused && byId("controls").contains(byId(focused))) byId(focused).focus();
}

function moveSliders() {
  sliders.forEach((made, m) => {
    made.set(made.amounts.indexOf(open.record[SPENT][m]));
    if (stored(m)) made.node.lastChild.replaceWith(battery(open.record[SPENT][m], m, reserveAt(open.t, m)));
  });
}

function showSituation() {
  const record = open.record, rows = rowsOf(open.t, record[STATE]);
  const spent = M ? ` (${holding(record[SPENT], DATA.exact ? "spent so far" : "counted as spent so far")})` : "";
  const safe = record[SAFE].length;
  const said = safe === rows.length ? `all ${times(rows.length, "legal joint action")} ${rows.length === 1 ? "is" : "are"} feasible` : `${safe} of ${times(rows.length, "legal joint action")} ${safe === 1 ? "is" : "are"} feasible`;
  const advice = record[PLAYED].length === 1 ? `Recommended: ${joint(rows[record[PLAYED][0][0]])}.` : `Recommended: a draw between ${record[PLAYED].length} joint actions.`;
  byId("here").textContent = `At t = ${open.t} in state ${DATA.states[record[STATE]]}${spent}, ${said.replace(/^all 1 legal/, "the only legal")}. ${advice}`;
  fill("situation-body",
    el("div", { class: "columns" },
      el("div", {}, el("h3", {}, "Values from here on"), scrolling(table("", ["player", "value"], DATA.players.map((p, i) => [p, el("span", { class: "situation-value", "data-player": i }, number(record[VALUES][i]))]), [1])), pictured ? [el("h3", {}, "State"), picture(record[STATE]) || el("p", { class: "hint" }, "There is no picture of this state.")] : null),
      N === 2 ? matrix(record, rows) : null),
    besideThis(record, rows),
    el("h3", {}, "Joint actions"), whyNotBest(record, rows), jointActions(record, rows),
    el("h3", {}, "What a player loses by a deviation"), leaving(record, rows));
}

/* Two players: a table with one's actions down and the other's across. */
function matrix(record, rows) {
  const used = [0, 1].map((i) => [...new Set(rows.map((row) => row[i]))].sort((a, b) => a - b));
  if (used[0].length > MOST_MATRIX || used[1].length > MOST_MATRIX) return null;
  const at = new Map(rows.map((row, r) => [row.join(), r]));
  const played = new Map(record[PLAYED]), safe = new Set(record[SAFE].map((entry) => entry[0]));
  const cell = (a, b) => {
    const r = at.get([a, b].join());
    if (r === undefined) return el("td", { class: "illegal" }, "not legal");
    if (!safe.has(r)) return el("td", { class: "unsafe" }, "✕ infeasible");
    return played.has(r) ? el("td", { class: "played" }, percent(played.get(r))) : el("td", {}, "feasible");
  };
  const head = el("tr", {}, el("th", { class: "corner", scope: "col" }, `${DATA.players[0]} ↓  ${DATA.players[1]} →`), used[1].map((b) => el("th", { scope: "col" }, DATA.actions[1][b])));
  const body = used[0].map((a) => el("tr", {}, el("th", { scope: "row" }, DATA.actions[0][a]), used[1].map((b) => cell(a, b))));
  return el("div", {}, el("h3", {}, "Which joint actions are feasible, and how likely each is recommended"), scrolling(el("table", { class: "matrix" }, el("thead", {}, head), el("tbody", {}, body))));
}

function jointActions(record, rows) {
  const played = new Map(record[PLAYED]);
  const safe = record[SAFE].slice().sort((a, b) => (played.get(b[0]) || 0) - (played.get(a[0]) || 0));
  const said = new Map(record[WHY].map(([r, ...rest]) => [r, rest]));
  const whole_ = record[PLAYED].length > 1 ? [drawLine(record)] : [];
  const lines = [...whole_, ...safe.map((entry) => safeLine(entry, rows, played, said, record)), ...record[UNSAFE].map((entry) => unsafeLine(entry, rows))];
  const head = el("tr", {}, el("th", { scope: "col" }, "joint action"), el("th", { scope: "col" }, "recommended"),
    DATA.players.map((p) => el("th", { scope: "col", class: "number" }, `worth to ${p}`)), OWN_COLUMN ? el("th", { scope: "col", class: "number" }, objective.name) : null, el("th", { scope: "col" }, "why not for sure?"));
  const body = el("tbody", {}, lines.slice(0, MOST_ROWS));
  const whole = scrolling(el("table", { class: "wide", id: "joint-actions" }, el("thead", {}, head), body));
  if (lines.length <= MOST_ROWS) return whole;
  const more = el("button", { type: "button", class: "quiet", on: { click: () => { body.append(...lines.slice(MOST_ROWS)); more.remove(); } } }, `Show all ${lines.length}`);
  return [whole, more];
}

const OWN_COLUMN = DATA.objective && DATA.objective.column && N > 1;
const numberCell = (x, label, more = {}) => el("td", { class: "number", "data-label": label, ...more }, number(x));

/* What the whole draw is worth. */
function drawLine(record) {
  return el("tr", { class: "draw" }, el("th", { scope: "row" }, "the recommended draw"), el("td", {}, ""),
    record[VALUES].map((v, i) => numberCell(v, `worth to ${DATA.players[i]}`)), OWN_COLUMN ? numberCell(aim(record[VALUES]), objective.name) : null, el("td", {}, ""));
}

function safeLine([r, ...worth], rows, played, said, record) {
  const p = played.get(r);
  const share = p === undefined ? "–" : [el("span", { class: "bar", style: `width:${Math.max(0.05, 3.5 * p)}rem`, "aria-hidden": "true" }), el("span", { class: "probability" }, percent(p))];
  return el("tr", { class: p === undefined ? "safe" : "safe played", "data-row": r }, el("th", { scope: "row" }, joint(rows[r])), el("td", { "data-label": "recommended" }, share),
    worth.map((q, i) => el("td", { class: "number worth", "data-player": i, "data-label": `worth to ${DATA.players[i]}` }, number(q))), OWN_COLUMN ? numberCell(aim(worth), objective.name) : null,
    el("td", { class: "why" }, el("span", { class: "tag good" }, record[PLAYED].length === 1 && p !== undefined ? "recommended for sure" : "feasible"), said.has(r) ? `: ${whyNot(said.get(r), worth, record)}.` : ""));
}

function unsafeLine([r, ...reason], rows) {
  return el("tr", { class: "unsafe", "data-row": r }, el("th", { scope: "row" }, joint(rows[r])),
    el("td", { colspan: N + (OWN_COLUMN ? 3 : 2), class: "reason" }, el("span", { class: "tag bad" }, reason[0] === 0 ? "infeasible now: " : "infeasible later: "), why(open.t, reason)));
}

/* Budgets with several limits: what is needed is counted from the last of them, so no amount can be told. */
const changing = DATA.constraints.map((_, m) => !stored(m) && new Set(DATA.budgets.map((row) => row[m]).filter((b) => b !== null)).size > 1);
const lacking = (x, left, m) => (stored(m) ? `${DATA.constraints[m]} needs ${amount(x, m)} and has ${amount(left, m)} left` : changing[m] ? `${DATA.constraints[m]} needs more than its budgets leave` : `${DATA.constraints[m]} needs ${amount(x, m)} more and has ${amount(left, m)} left`);

/* The outcome that breaks which budget, now or later. */
function why(t, [kind, probability, next, after, over]) {
  const chance = probability === 1 ? "for certain" : `with probability ${percent(probability)}`;
  if (kind === 0) {
    const below = (m) => (level(after[m], m) < 0 ? `${DATA.constraints[m]} below empty, by ${amount(-level(after[m], m), m)}` : `${DATA.constraints[m]} to ${amount(level(after[m], m), m)}, below its reserve of ${amount(reserveAt(t, m), m)}`);
    const each = over.map((m) => (stored(m) ? below(m) : `${DATA.constraints[m]} to ${amount(after[m], m)}, over its budget of ${budgetAt(t, m)}`));
    return `${chance} it brings ${each.join(" and ")}.`;
  }
  const left = after.map((c, m) => (DATA.reference[m] === null ? null : DATA.reference[m] - c));
  const place = `${chance} it leads to state ${DATA.states[next]} (${holding(after, "spent by then")})`;
  const needs = DATA.needs[`${t + 1},${next}`];
  if (!needs) return `${place}, from where no play keeps every budget with probability one.`;
  const ways = needs.filter((need) => need.length).map((need) => need.map((x, m) => [x, m]).filter(([x, m]) => x !== null && x > left[m] + ROUNDING * SIZES[m])
    .map(([x, m]) => lacking(x, left[m], m)).join(" and "));
  const listed = [...new Set(ways.filter((way) => way))];
  const rest = needs.some((need) => !need.length) ? "; other ways need too much as well" : "";
  return listed.length > 1 ? `${place}. Whatever is done from there, a budget can break: either ${listed.join("; or ")}${rest}.` : `${place}, where ${listed[0] || "no play keeps every budget with probability one"}${rest}.`;
}

function leaving(record, rows) {
  if (!record[LEAVING].length) return el("p", {}, "No player has another action here.");
  const interim = DATA.interim;
  const lines = record[LEAVING].map(([i, from, chance, to, loss, bar]) => {
    const when = interim ? `told ${DATA.actions[i][from]}${chance < 1 ? ` (${percent(chance)})` : ""}` : null;
    const effect = loss !== null ? el("span", { class: "loss" }, loss < -ROUNDING * WORTH ? `gains ${number(-loss)}` : number(loss)) : "–";
    const status = loss !== null ? el("span", { class: "tag good" }, "safe") : el("span", {}, el("span", { class: "tag bad" }, "not safe: "), bar < 0 ? "it can lead to a joint action that is not legal" : `it can lead to ${joint(rows[bar])}, which is infeasible`);
    return el("tr", { class: loss === null ? "unsafe" : "safe", "data-player": i, "data-told": from, "data-action": to },
      el("th", { scope: "row" }, DATA.players[i]), interim ? el("td", { "data-label": "when" }, when) : null, el("td", { "data-label": "plays instead" }, DATA.actions[i][to]), el("td", { class: "number", "data-label": "loses" }, effect), el("td", { class: "reason" }, status));
  });
  const headings = [["player"], ...(interim ? [["when"]] : []), ["plays instead"], ["loses", "number"], ["safe deviation?"]];
  const body = el("tbody", {}, lines.slice(0, 2 * MOST_ROWS));
  const caption = interim ? "Against a recommendation, as the average over what the others may have been told" : DATA.product ? "Whatever the others draw" : "Committing to the action beforehand, whatever is recommended";
  const whole = scrolling(el("table", { class: "wide", id: "deviations" }, el("caption", {}, caption), el("thead", {}, el("tr", {}, headings.map(([text, kind]) => el("th", { scope: "col", class: kind || null }, text)))), body));
  if (lines.length <= 2 * MOST_ROWS) return whole;
  const more = el("button", { type: "button", class: "quiet", on: { click: () => { body.append(...lines.slice(2 * MOST_ROWS)); more.remove(); } } }, `Show all ${lines.length}`);
  return [whole, more];
}
