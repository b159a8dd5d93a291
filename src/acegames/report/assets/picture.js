// Pictures of states. They are images: a browser runs no script in them and loads nothing for them.
const pictured = Object.keys(DATA.pictures).length > 0;

/* The picture of a state, or null. */
function picture(state) {
  const source = DATA.pictures[String(state)];
  return source === undefined ? null : el("img", { class: "picture", src: source, alt: `Picture of state ${DATA.states[state]}` });
}
