// Brings the page to life.

/** The page's app, once it runs. */
let app = null;

async function main() {
  if (typeof DecompressionStream === 'undefined') {
    return showProblem('This browser is too old for this page: it lacks DecompressionStream. Chrome 80, Firefox 113, Safari 16.4 and later have it.');
  }
  const data = byId('data');
  const profile = readProfile(await unpack(data.textContent));
  data.remove();
  app = new App(profile);
  fillSummary(profile);
  fillAbout(profile);
  fillHelp();
  fillProcessOptions(app);
  byId('lines-button').hidden = !profile.frames.line.some(line => line > 0);
  connectControls(app);
  connectMouse(app);
  connectKeys(app);
  app.systemDark.addEventListener('change', () => {
    if (!app.state.chosenTheme) {
      app.setTheme(null);
      showLegend(app);
      app.table.refresh();
    }
  });
  app.link.restore();
  new ResizeObserver(() => {
    app.relayout();
    // at once: the next frame would be one too late, and this one show a canvas of the old size
    app.graph.draw();
  }).observe(app.graph.scroller);
  app.graph.draw();
  document.documentElement.dataset.ready = 'true';
}

function showProblem(text) {
  const problem = byId('problem');
  problem.textContent = text;
  problem.hidden = false;
}

main().catch(error => showProblem(`The page cannot show its profile: ${error.message}`));
