// A link to a situation: #t=3&s=ice&c=5 has its time, the label of its state (percent-encoded) and its cumulative costs; n=2 in place of s is the number of a state whose label another one shares, or that no address can hold.
const SETTLED = 400; // milliseconds without a move after which a situation becomes a step of the history
let settling = null;

/* The state of each label; a label that two states share names none of them. */
const labelled = new Map();
Object.entries(DATA.states).forEach(([s, label]) => labelled.set(label, labelled.has(label) ? undefined : Number(s)));

/* Quotes and brackets too, which end a link in many texts. */
const encoded = (label) => encodeURIComponent(label).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
const wellFormed = (label) => { try { return encoded(label) !== ""; } catch { return false; } }; // not with half a character
const nameOf = (state) => (labelled.get(DATA.states[state]) === state && wellFormed(DATA.states[state]) ? `s=${encoded(DATA.states[state])}` : `n=${state}`);
const address = () => `#t=${open.t}&${nameOf(open.record[STATE])}${M ? `&c=${open.record[SPENT].join(",")}` : ""}`;

/* The time, state and cumulative costs that an address names, or null if the page has no situation with this time and state. */
function named(hash) {
  const found = /^#t=(\d+)&([sn])=([^&]*)(?:&c=([-+0-9.e,]+))?$/.exec(hash);
  if (!found) return null;
  let label;
  try { label = decodeURIComponent(found[3]); } catch { return null; } // a broken percent-encoding
  const t = Number(found[1]), spent = (found[4] || "").split(",").filter((x) => x).map(Number);
  const number = /^\d+$/.test(label) ? Number(label) : null, state = found[2] === "n" ? number : (labelled.get(label) ?? number);
  return t < H && groups[t].has(state) && spent.length === M && spent.every(Number.isFinite) ? { t, state, spent } : null;
}

/* Open the situation that the address names, or the nearest one with its time and state, and show it; `otherwise` says what is shown if there is none. */
function openNamed(otherwise) {
  if (location.hash.length < 2 || byId(location.hash.slice(1))) return; // no address, or that of a section
  const place = named(location.hash);
  if (place) openNearest(place.t, place.state, place.spent);
  if (!place) fill("not-here", `The situation of the link is not in this page. ${otherwise}`);
  else if (place.spent.some((c, m) => c !== open.record[SPENT][m])) fill("not-here", "The situation of the link is not in this page; the nearest one is shown.");
  clearTimeout(settling);
  byId("situation").scrollIntoView({ behavior: "instant" });
}

/* Put the open situation into the address, once it has stayed open for a while. A page inside another one leaves the history alone. */
function remember() {
  clearTimeout(settling);
  if (window !== window.top) return;
  settling = setTimeout(() => { if (location.hash !== address()) location.hash = address(); }, SETTLED);
}

addEventListener("hashchange", () => { if (location.hash !== address()) openNamed("The situation shown before is still shown."); });

function linkButton() {
  return copyButton(() => `${location.href.split("#")[0]}${address()}`, "Copy a link to this situation", "copy-link");
}
