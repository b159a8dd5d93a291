// Another solution of the same game beside this one.
const other = DATA.against;
const thisName = other && other.names[0] ? `this solution (${other.names[0]})` : "this solution";
const otherName = other && other.names[1] ? `the other (${other.names[1]})` : "the other solution";

function comparisonTable() {
  if (!other) return null;
  const cell = (x) => (x === null ? "no limit" : typeof x === "number" ? number(x) : x);
  /* Exploitability that is a rounding error is said to be one, with the number that the certificate gives. */
  const told = (what, x) => (what === "exploitability" && x && cell(x) === "0" ? `0 (${Number(x.toPrecision(2))})` : cell(x));
  const lines = other.lines.map(([what, a, b]) => {
    const differs = cell(a) !== cell(b);
    return [what, told(what, a), differs ? el("strong", {}, told(what, b)) : told(what, b)];
  });
  return [el("h3", {}, "Compared with another solution"), scrolling(el("div", { id: "comparison" }, table("What differs is bold", ["", thisName, otherName], lines)))];
}

/* What the other solution recommends in the open situation. */
function besideThis(record, rows) {
  if (!other) return null;
  const title = el("h3", {}, "Both solutions here");
  if (open.t >= other.horizon) return [title, el("p", { id: "beside" }, `The other solution has ${times(other.horizon, "step")}, so it is over before this time.`)];
  const found = DATA.beside[open.t][DATA.situations[open.t].indexOf(record)];
  if (!found) return [title, el("p", { id: "beside" }, "This situation is not reachable under feasible play with the budgets of the other solution.")];
  const ours = new Map(record[PLAYED]), theirs = new Map(found[1]);
  const share = (played, r) => (played.has(r) ? percent(played.get(r)) : "–");
  const actions = [...new Set([...ours.keys(), ...theirs.keys()])].map((r) => [joint(rows[r]), share(ours, r), share(theirs, r)]);
  const worth = DATA.players.map((p, i) => [`value of ${p}`, number(record[VALUES][i]), number(found[0][i])]);
  return [title, scrolling(el("div", { id: "beside" }, table("Probability of each recommended joint action, and values from here on", ["", thisName, otherName], [...actions, ...worth], [1, 2])))];
}
