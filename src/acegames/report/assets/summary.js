// The summary: what the answer is, in words and a few numbers.
function showSummary() {
  const s = DATA.summary;
  byId("title").textContent = DATA.name;
  byId("game").textContent = s.game;
  fill("notes", DATA.notes.map(noted("note")), s.counting ? el("p", { class: "note" }, s.counting) : null);
  const [verdict, ...details] = s.certificate;
  fill("summary-body",
    el("p", {}, el("strong", {}, `${s.concept}. `), s.meaning),
    el("div", { class: "columns" }, el("div", {}, el("h3", {}, "Values"), valuesTable(s)), el("div", {}, el("h3", {}, "Budgets, the tightest first"), budgetMeters(s))),
    comparisonTable(),
    el("h3", {}, "Certificate"),
    el("p", { class: `verdict ${s.ok ? "good" : "bad"}`, id: "verdict" }, el("span", { class: "mark" }, s.ok ? "✓ certified" : "✕ not certified"), el("span", {}, verdict)),
    details.map((line) => el("p", { class: "certificate" }, line)),
    el("h3", {}, "Guarantee"),
    el("p", { id: "guarantee" }, s.guarantee),
    el("h3", {}, "Where budgets change what players would do"),
    s.freedom.map((line) => el("p", { class: "freedom" }, line)),
  );
}

function valuesTable(s) {
  const headings = ["player", "value", "simulated mean"];
  if (s.without) headings.push("without budgets");
  const rows = DATA.players.map((player, i) => {
    const error = s.error[i] === null ? "" : ` ± ${number(rounded(2 * s.error[i], 2))}`;
    const row = [player, el("span", { class: "value", "data-player": i }, number(s.values[i])), number(rounded(s.mean[i], 4)) + error];
    if (s.without) row.push(number(s.without[i]));
    return row;
  });
  const what = `Expected total reward; the mean of ${times(s.episodes, "simulated episode")} ± two standard errors` + (s.without ? "; and the same kind of equilibrium if there were no budgets" : "");
  const ties = s.without && N > 1 && objective ? el("p", { class: "hint", id: "ties" }, `If several equilibria are equally good for the ${objective.name}, ties go to the value of ${DATA.players[0]} first, then to the others in order: that is why players who are alike can have different values.`) : null;
  return [scrolling(table(what, headings, rows, [1, 2, 3])), ties];
}

function budgetMeters(s) {
  if (!s.budgets.length) return el("p", {}, "This game has no budgets: every legal joint action is feasible.");
  return el("div", {}, s.budgets.map((b) => {
    const name = DATA.constraints[b.constraint];
    if (stored(b.constraint)) return reservoirMeter(b, name);
    const share = b.used === null ? null : Math.max(0, Math.min(1, b.used));
    const meter = share === null ? null : el("div", { class: "meter", role: "img", "aria-label": `${name}: largest cumulative cost ${amount(b.worst, b.constraint)} of ${amount(b.limit, b.constraint)}` }, el("span", { style: `width:${100 * share}%` }));
    const figures = b.used === null ? `budget ${b.budget}` : `${amount(b.worst, b.constraint)} of ${amount(b.limit, b.constraint)} (${percent(b.used)})`;
    return el("div", { class: "control", "data-constraint": b.constraint },
      el("div", { class: "label" }, el("span", {}, name), el("output", { class: "worst" }, figures)), meter, el("p", { class: "hint" }, b.words));
  }));
}

function reservoirMeter(b, name) {
  const m = b.constraint, reserves = DATA.budgets.map((_, t) => reserveAt(t, m));
  const same = reserves.every((r) => r === reserves[0]);
  return el("div", { class: "control", "data-constraint": m },
    el("div", { class: "label" }, el("span", {}, name), el("output", { class: "worst" }, b.level === null ? b.budget : `lowest level ${amount(b.level, m)} of ${amount(b.limit, m)}`)),
    b.level === null ? null : battery(b.worst, m, same ? reserves[0] : 0), el("p", { class: "hint" }, b.words), el("p", { class: "hint wasted" }, b.wasted));
}

function showAbout() {
  const s = DATA.summary;
  const shown = DATA.situations.reduce((sum, at) => sum + at.length, 0);
  const left = DATA.thinned ? "See the note at the top for what was left out." : "They are all that are reachable under feasible play.";
  fill("about-body",
    el("p", {}, `The page shows ${times(shown, "situation")} (time, state, cumulative cost). ${left} Times run from 0 to ${H - 1}. The cumulative cost of a situation is the total before the step at that time; a budget bounds the total after it.${DATA.capacities.some((c) => c !== null) ? " A reservoir is shown by its level: a cost drains it, a negative cost fills it, what does not fit is lost, and after each step at least its reserve is left." : ""}`),
    el("p", {}, "A joint action is feasible when after each of its outcomes, however unlikely, every budget is kept and can still be kept with probability one. A value is a player's expected total reward from there on. What a joint action is worth is its reward plus the value of what follows. A loss is what a player gives up by a deviation if everything after it is as recommended. A deviation that can lead to an infeasible joint action is not safe, so it does not count."),
    el("p", {}, `Episodes were simulated with the policy's own draws: ${times(s.episodes, "episode")}, of which ${s.violations.toLocaleString("en")} broke a budget${s.violations ? ` (${s.beyond.toLocaleString("en")} by more than the rounding allows)` : ""}.`),
    el("p", { class: "hint" }, `Game ${DATA.digest.slice(0, 12)}.`),
  );
}
