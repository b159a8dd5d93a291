// Put the page together and open the first situation.
showSummary();
showAbout();
showMapControls();
showSearch();
listeners.push(() => fill("here-link", linkButton()));
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
document.documentElement.setAttribute("data-ready", "");
