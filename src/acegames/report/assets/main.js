// Put the page together and open the first situation.
showSummary();
showAbout();
showMapControls();
listeners.push(showMap);
openFirst();
showFrontierControls();
showFrontier();
showCurveControls();
showCurve();
showEpisodeControls();
showEpisode(true);
showFinal();
document.documentElement.setAttribute("data-ready", "");
