// Search among the situations of the page: parts of a state's label, t = 3, and amounts such as risk >= 4.
// A name with blanks, hyphens or underscores is found with them, with others, without them, and in quotes.
const AT_ONCE = 30;
const COMPARE = { "=": (a, b) => a === b, "<": (a, b) => a < b, ">": (a, b) => a > b, "<=": (a, b) => a <= b, ">=": (a, b) => a >= b };
const CONDITION = (name) => `(^|\\s)(?:${name}|"\\s*${name}\\s*"|'\\s*${name}\\s*')\\s*(<=|>=|=|<|>)\\s*(-?[0-9.]+(?:e[-+]?[0-9]+)?)(?=\\s|$)`;
const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replace(/\s+/g, "\\s*");
const loosely = (text) => escaped(text).replace(/([^\s_-])[_-]+(?=[^\s_-])|\\s\*/g, "$1[\\s_-]*");

/* What a text asks for: words of a state's label, conditions on time and amounts, and names in conditions that name nothing. */
function asked(text) {
  const conditions = [];
  let rest = text;
  const names = [...DATA.constraints.map((name, m) => [name, m]).sort((a, b) => b[0].length - a[0].length), ["t", null]];
  for (const [spelled, m] of [escaped, loosely].flatMap((way) => names.map(([name, m]) => [way(name), m]))) {
    const form = new RegExp(CONDITION(spelled), "gi");
    rest = rest.replace(form, (whole, before, how, value) => { conditions.push([m, COMPARE[how], Number(value)]); return before; });
  }
  const labels = Object.values(DATA.states).map((label) => label.toLowerCase()), unknown = [];
  rest.replace(/(?:"([^"]*)"|'([^']*)'|([^\s<>=]+))\s*(?:<=|>=|=|<|>)\s*-?[0-9.]+/g, (whole, ...names_) => {
    if (!labels.some((label) => label.includes(whole.toLowerCase()))) unknown.push(names_.slice(0, 3).find((name) => name !== undefined));
    return whole;
  });
  return { conditions, unknown, words: rest.toLowerCase().split(/\s+/).filter((word) => word) };
}

function situationsFor({ conditions, words }) {
  const fits = (t, record) => conditions.every(([m, compare, value]) => compare(m === null ? t : level(record[SPENT][m], m), value));
  const matching = new Map();
  const named_ = (state) => {
    if (!matching.has(state)) { const label = DATA.states[state].toLowerCase(); matching.set(state, words.every((word) => label.includes(word))); }
    return matching.get(state);
  };
  return DATA.situations.flatMap((at, t) => at.filter((record) => named_(record[STATE]) && fits(t, record)).map((record) => [t, record]));
}

/* How many letters must be put in, left out, replaced or swapped with their neighbour to make one word of the other. */
function distance(a, b) {
  const rows = [Array.from({ length: b.length + 1 }, (_, j) => j)];
  for (let i = 1; i <= a.length; i++) {
    rows.push([i]);
    for (let j = 1; j <= b.length; j++) {
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      rows[i].push(Math.min(rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1), swapped ? rows[i - 2][j - 2] + 1 : Infinity));
    }
  }
  return rows[a.length][b.length];
}

/* The word of a label that a word which is in no label may stand for; null if none comes near. */
function meant(word) {
  const known = new Set(Object.values(DATA.states).flatMap((label) => label.toLowerCase().split(/[\s,·()]+/)).filter((part) => part).slice(0, 20000));
  const [best] = [...known].map((part) => [distance(word, part), part]).sort((a, b) => a[0] - b[0]);
  return best && best[0] <= Math.max(1, word.length / 3) ? best[1] : null;
}

/* What may be wrong with a search that finds nothing. */
function advice({ conditions, words }) {
  const labels = Object.values(DATA.states).map((label) => label.toLowerCase());
  const missing = words.filter((word) => !labels.some((label) => label.includes(word)));
  const said = missing.map((word) => { const near = meant(word); return ` No state has "${word}" in its name${near ? `; did you mean ${near}?` : "."}`; });
  const times_ = Array.from({ length: H }, (_, t) => t);
  if (!times_.some((t) => conditions.every(([m, compare, value]) => m !== null || compare(t, value)))) said.push(` t goes from 0 to ${H - 1}.`);
  return said.join("");
}

function showFound() {
  const text = byId("search").value.trim();
  if (!text) { fill("found"); return; }
  const wanted = asked(text), hint = (words) => el("p", { class: "hint", role: "status" }, words);
  if (wanted.unknown.length) {
    const there = M ? `There ${M === 1 ? "is" : "are"} ${DATA.constraints.join(", ")}, and t for the time.` : "This game has none; t is the time.";
    fill("found", hint(`No constraint ${wanted.unknown.map((name) => `"${name}"`).join(", ")}. ${there}`));
    return;
  }
  const found = situationsFor(wanted), where = DATA.thinned ? " among those in this page" : "";
  if (!found.length) { fill("found", hint(`No situation${where} fits.${advice(wanted)}`)); return; }
  const line = ([t, record]) => el("li", {}, el("button", { type: "button", class: "quiet", on: { click: () => openSituation(t, record) } }, `t = ${t}, ${DATA.states[record[STATE]]}${M ? `, ${holding(record[SPENT])}` : ""}`));
  const list = el("ul", { class: "found" }), more = el("button", { type: "button", id: "more-found", class: "quiet", on: { click: () => add() } });
  const add = () => {
    list.append(...found.slice(list.children.length, list.children.length + AT_ONCE).map(line));
    const left = found.length - list.children.length;
    more.textContent = `Show ${Math.min(AT_ONCE, left)} more (${left.toLocaleString("en")} ${left === 1 ? "is" : "are"} not shown)`;
    if (!left) more.remove();
  };
  fill("found", hint(`${times(found.length, "situation")}${where}${found.length > AT_ONCE ? `; the first ${AT_ONCE}:` : ":"}`), list, more);
  add();
}

function showSearch() {
  const example = M ? `t=1 ${DATA.constraints[0].replace(/\s+/g, "")}>=1` : "t=1";
  const input = el("input", { type: "search", id: "search", placeholder: `a state, or ${example}`, autocomplete: "off", spellcheck: "false", on: { input: showFound } });
  fill("searching", el("div", { class: "control" }, el("label", { for: "search" }, "Find a situation"), input), el("div", { id: "found" }));
}
