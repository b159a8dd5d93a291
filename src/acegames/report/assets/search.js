// Search among the situations of the page: parts of a state's label, t = 3, and amounts such as risk >= 4.
const MOST_FOUND = 30;
const COMPARE = { "=": (a, b) => a === b, "<": (a, b) => a < b, ">": (a, b) => a > b, "<=": (a, b) => a <= b, ">=": (a, b) => a >= b };
const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

/* What a text asks for: words of a state's label, and conditions on time and amounts. */
function asked(text) {
  const conditions = [];
  let rest = text;
  const names = [...DATA.constraints.map((name, m) => [name, m]).sort((a, b) => b[0].length - a[0].length), ["t", null]];
  for (const [name, m] of names) {
    const form = new RegExp(`(^|\\s)${escaped(name)}\\s*(<=|>=|=|<|>)\\s*(-?[0-9.]+(?:e[-+]?[0-9]+)?)(?=\\s|$)`, "gi");
    rest = rest.replace(form, (whole, before, how, value) => { conditions.push([m, COMPARE[how], Number(value)]); return before; });
  }
  return { conditions, words: rest.toLowerCase().split(/\s+/).filter((word) => word) };
}

function situationsFor(text) {
  const { conditions, words } = asked(text);
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
  const found = situationsFor(text);
  const where = DATA.thinned ? " among those in this page" : "";
  const said = el("p", { class: "hint", role: "status" }, found.length ? `${times(found.length, "situation")}${where}${found.length > MOST_FOUND ? `; the first ${MOST_FOUND}:` : ":"}` : `No situation${where} fits.`);
  const line = ([t, record]) => el("li", {}, el("button", { type: "button", class: "quiet", on: { click: () => openSituation(t, record) } }, `t = ${t}, ${DATA.states[record[STATE]]}${M ? `, ${holding(record[SPENT], "spent")}` : ""}`));
  fill("found", said, found.length ? el("ul", { class: "found" }, found.slice(0, MOST_FOUND).map(line)) : null);
}

function showSearch() {
  const example = M ? `t=1 ${DATA.constraints[0]}>=1` : "t=1";
  const input = el("input", { type: "search", id: "search", placeholder: `a state, or ${example}`, autocomplete: "off", spellcheck: "false", on: { input: showFound } });
  fill("searching", el("div", { class: "control" }, el("label", { for: "search" }, "Find a situation"), input), el("div", { id: "found" }));
}
