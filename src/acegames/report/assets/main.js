// Put the page together and open the first situation.
showSummary();
showAbout();
showMapControls();
showSearch();
listeners.push(() => { fill("not-here"); fill("here-link", linkButton()); });
listeners.push(showMap);
openFirst();
listeners.push(remember);
showFrontierControls();
showFrontier();
showCurveControls();
showCurve();
showEpisodeControls();
showEpisode(true);
showFinal();
openNamed("The start is shown.");
document.documentElement.setAttribute("data-ready", "");
