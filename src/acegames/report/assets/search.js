// Search among the situations of the page: parts of a state's label, t = 3, and amounts such as risk >= 4.
// A name with blanks is found with them, without them, and in quotes.
const AT_ONCE = 30;
const COMPARE = { "=": (a, b) => a === b, "<": (a, b) => a < b, ">": (a, b) => a > b, "<=": (a, b) => a <= b, ">=": (a, b) => a >= b };
const CONDITION = (name) => `(^|\\s)(?:${name}|"\\s*${name}\\s*"|'\\s*${name}\\s*')\\s*(<=|>=|=|<|>)\\s*(-?[0-9.]+(?:e[-+]?[0-9]+)?)(?=\\s|$)`;
const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replace(/\s+/g, "\\s*");

/* What a text asks for: words of a state's label, conditions on time and amounts, and names in conditions that name nothing. */
function asked(text) {
  const conditions = [];
  let rest = text;
  const names = [...DATA.constraints.map((name, m) => [name, m]).sort((a, b) => b[0].length - a[0].length), ["t", null]];
  for (const [name, m] of names) {
    const form = new RegExp(CONDITION(escaped(name)), "gi");
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
  if (!found.length) { fill("found", hint(`No situation${where} fits.`)); return; }
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
