// Why a feasible joint action is not recommended for sure: who would gain by leaving it, or that it is worth less.
// An entry is [row, [player, action, gain], ...], or [row, comparison] where nobody gains.
const LESS = 0, TIED = 1, SAME = 2, FREE = 3, MORE = 4;
const MOST_GAINERS = 3;
const objective = DATA.objective;

/* What the objective makes of the players' values. */
function aim(values) {
  if (objective.of === "lowest") return values.reduce((a, b) => Math.min(a, b));
  if (objective.of === "gap") return values.reduce((a, b) => Math.max(a, b)) - values.reduce((a, b) => Math.min(a, b));
  return values.reduce((sum, v, i) => sum + objective.weights[i] * v, 0);
}
const better = (a, b) => (objective.of === "gap" ? b - a : a - b) > ROUNDING * WORTH;

function gains([i, action, gain]) {
  const by = DATA.interim || DATA.product || N === 1 ? "by playing" : "by committing beforehand to";
  return `${DATA.players[i]} would gain ${written(gain, 0)} ${by} ${DATA.actions[i][action]}`;
}

function whyNot(said, worth, record) {
  if (N === 1 && (Array.isArray(said[0]) || said[0] === LESS)) return `allowed, but worth less: ${number(worth[0])}, not ${number(record[VALUES][0])}`;
  if (Array.isArray(said[0])) {
    const more = said.length > MOST_GAINERS ? `, and ${times(said.length - MOST_GAINERS, "other player")} would gain too` : "";
    return `no equilibrium on its own: ${said.slice(0, MOST_GAINERS).map(gains).join("; ")}${more}`;
  }
  const nobody = N === 1 ? "allowed" : "nobody would gain by leaving it";
  if (said[0] === LESS) return `${nobody}, but worth less: ${objective.name} ${number(aim(worth))}, not ${number(aim(record[VALUES]))}`;
  if (said[0] === TIED) return `${nobody}, and its ${objective.name} is the same; ties go to the value of ${DATA.players[0]} first, then to the others in order`;
  if (said[0] === SAME) return `${nobody}, and it is worth the same to everyone`;
  if (said[0] === FREE) return `${nobody}; no objective chooses between equilibria here`;
  return `${nobody}, and it is worth more: the recommendation is not the best equilibrium here`;
}

/* The feasible joint action that is worth most for the objective, where that is more than the recommendation, and why it is not recommended for sure. */
function whyNotBest(record, rows) {
  if (!objective || N === 1) return null;
  const played = new Map(record[PLAYED]), likely = record[SAFE].slice().sort((a, b) => (played.get(b[0]) || 0) - (played.get(a[0]) || 0));
  const best = likely.reduce((a, b) => (better(aim(b.slice(1)), aim(a.slice(1))) ? b : a));
  const said = new Map(record[WHY].map(([r, ...rest]) => [r, rest])).get(best[0]);
  if (!said || !Array.isArray(said[0]) || !better(aim(best.slice(1)), aim(record[VALUES]))) return null;
  const draw = record[PLAYED].length > 1 ? "the recommended draw" : "the recommendation";
  return el("p", { id: "why" }, `Why not always ${joint(rows[best[0]])}? Its ${objective.name} is ${number(aim(best.slice(1)))}, and that of ${draw} ${number(aim(record[VALUES]))}. But it is no equilibrium on its own: if it were recommended for sure, ${said.slice(0, MOST_GAINERS).map(gains).join(" and ")}.`);
}
