(function () {
  "use strict";
  var specs = JSON.parse(document.getElementById("specs").textContent);
  var options = {
    mode: "vega-lite", renderer: "svg", actions: false, ast: true, defaultStyle: false,
    tooltip: { disableDefaultStyle: true, theme: "page" }
  };

  function draw(name) {
    var place = document.getElementById("chart-" + name);
    var spec = specs[name];
    if (name === "map") {
      spec.height = Math.round(Math.min(460, Math.max(320, 0.6 * place.clientWidth)));
    }
    return vegaEmbed(place, spec, options).then(function (drawn) {
      place.classList.add("drawn");
      if (name === "map") { listen(drawn.view); }
    });
  }

  function listen(view) {
    var chips = document.querySelectorAll("input[name=shown]");
    function show() {
      var shown = Number(document.querySelector("input[name=shown]:checked").value);
      view.signal("shown", shown).runAsync();
      document.querySelectorAll("#points tbody tr").forEach(function (row) {
        row.hidden = shown >= 0 && Number(row.dataset.group) !== shown;
      });
    }
    chips.forEach(function (chip) { chip.addEventListener("change", show); });
    show();
  }

  // One after the other, the map first, so that the page can be read while the rest is drawn.
  Object.keys(specs).reduce(function (before, name) {
    return before.then(function () { return draw(name); }).then(function () {
      return new Promise(function (go) { setTimeout(go, 0); });
    });
  }, Promise.resolve()).then(function () { document.body.dataset.drawn = "all"; });

  var closed = [];
  window.addEventListener("beforeprint", function () {
    closed = Array.prototype.slice.call(document.querySelectorAll("details:not([open])"));
    closed.forEach(function (part) { part.open = true; });
  });
  window.addEventListener("afterprint", function () {
    closed.forEach(function (part) { part.open = false; });
  });
})();
