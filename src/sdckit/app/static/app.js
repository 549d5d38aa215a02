(function () {
  "use strict";
  var root = document.body.dataset.root;
  var options = {
    mode: "vega-lite", renderer: "svg", actions: false, ast: true, defaultStyle: false,
    tooltip: { disableDefaultStyle: true, theme: "page" }
  };

  function at(id) { return document.getElementById(id); }
  function all(selector, inside) { return Array.prototype.slice.call((inside || document).querySelectorAll(selector)); }

  function say(text, kind) {
    var line = document.createElement("p");
    line.className = "message " + kind;
    if (kind === "error") { line.setAttribute("role", "alert"); }
    line.textContent = text;
    all("#messages .said").forEach(function (old) { old.remove(); });
    line.classList.add("said");
    at("messages").append(line);
  }

  // Ask the server; a refusal or a lost connection becomes a message on the page.
  function ask(address, settings) {
    return fetch(address, Object.assign({ credentials: "same-origin" }, settings)).then(function (answer) {
      if (answer.ok) { return answer; }
      return answer.text().then(function (text) { throw new Error(text || "the page refused this request"); });
    });
  }
  function failed(error) {
    var lost = error instanceof TypeError;
    say(lost ? "The page does not answer: sdckit app has ended. Start it again; nothing that was measured is lost." : error.message, "error");
  }

  // Charts -------------------------------------------------------------------------------------
  function draw(place, spec) {
    return vegaEmbed(place, spec, options).then(function (drawn) {
      all("svg", place).forEach(function (one) { one.setAttribute("aria-hidden", "true"); }); // the label says it in words
      place.classList.add("drawn");
      return drawn;
    });
  }
  function drawInside(part) {
    all(".chart[data-spec]", part).reduce(function (before, place) {
      return before.then(function () { return draw(place, JSON.parse(place.dataset.spec)); });
    }, Promise.resolve()).catch(failed);
  }

  var shownVersion = null, pending = false, again = false;
  function drawMap() {
    var place = at("map");
    if (!place) { return; }
    if (pending) { again = true; return; }
    pending = true;
    ask(place.dataset.points).then(function (answer) { return answer.json(); }).then(function (found) {
      if (at("points-text")) { at("points-text").textContent = found.text; }
      place.classList.toggle("empty", !found.spec);
      if (!found.spec || found.version === shownVersion) { return null; }
      shownVersion = found.version;
      found.spec.height = Math.round(Math.min(460, Math.max(300, 0.55 * place.clientWidth)));
      return draw(place, found.spec).then(function (drawn) {
        place.dataset.count = found.count;
        if (place.dataset.panel) {
          drawn.view.addEventListener("click", function (event, item) {
            if (item && item.datum && item.datum.id) { show(item.datum.id); }
          });
        }
      });
    }).catch(failed).then(function () {
      pending = false;
      if (again) { again = false; drawMap(); }
    });
  }

  // While a search runs, the map is drawn every three seconds at most: drawing must not slow the search down.
  var INTERVAL = 3000, planned = null, lastPlanned = 0, drawnShare = null;
  function drawMapSoon(share) {
    if (planned !== null || share === drawnShare) { return; }
    drawnShare = share;
    planned = setTimeout(function () {
      planned = null;
      lastPlanned = Date.now();
      drawMap();
    }, Math.max(0, lastPlanned + INTERVAL - Date.now()));
  }

  // The panel of a setting, and the comparison of two ---------------------------------------------
  function fill(address, head) {
    var panel = at("panel");
    panel.setAttribute("aria-busy", "true");
    panel.textContent = "Masking and measuring the file with this setting …";
    return ask(address).then(function (answer) { return answer.text(); }).then(function (text) {
      var parsed = new DOMParser().parseFromString(text, "text/html");
      panel.replaceChildren.apply(panel, Array.prototype.slice.call(parsed.body.childNodes));
      drawInside(panel);
      at("panel-head").textContent = head;
      at("panel-section").scrollIntoView({ block: "start" });
      at("panel-head").focus({ preventScroll: true });
    }).catch(function (error) { panel.textContent = ""; failed(error); }).then(function () {
      panel.setAttribute("aria-busy", "false");
    });
  }
  function show(id) {
    all("#points tbody tr").forEach(function (row) { row.classList.toggle("shown", row.dataset.id === id); });
    return fill(at("map").dataset.panel + "?id=" + encodeURIComponent(id), "What this setting does to the file");
  }
  all("button[data-show]").forEach(function (button) {
    button.addEventListener("click", function () { show(button.dataset.show); });
  });
  if (at("compare-form")) {
    at("compare-form").addEventListener("submit", function (event) {
      event.preventDefault();
      var pins = all("input[name=pin]:checked").map(function (box) { return box.value; });
      if (pins.length !== 2) { say("Pin exactly two settings to compare them; " + pins.length + " are pinned.", "error"); return; }
      fill(root + "/map/compare?a=" + encodeURIComponent(pins[0]) + "&b=" + encodeURIComponent(pins[1]), "Two settings side by side");
    });
  }

  // Checks while one types ------------------------------------------------------------------------
  function check(form, show) {
    var timer = null, latest = 0;
    function run() {
      var number = ++latest;
      ask(form.dataset.check, { method: "POST", body: new URLSearchParams(new FormData(form)) })
        .then(function (answer) { return answer.json(); })
        .then(function (found) { if (number === latest) { show(found); } }).catch(failed);
    }
    form.addEventListener("input", function () { clearTimeout(timer); timer = setTimeout(run, 250); });
  }
  var roles = at("roles-form");
  if (roles) {
    check(roles, function (found) {
      at("uniques").textContent = found.uniques;
      at("undecided").textContent = found.undecided;
    });
    roles.addEventListener("change", function (event) {
      var row = event.target.closest("tr");
      if (!row || !event.target.name.startsWith("role-")) { return; }
      row.classList.toggle("open", event.target.value === "");
      row.querySelector(".recode").hidden = event.target.value !== "recode";
    });
  }
  if (at("rules-form")) {
    check(at("rules-form"), function (found) {
      at("rule-errors").replaceChildren.apply(at("rule-errors"), found.checks.map(function (one) {
        var line = document.createElement("p");
        if (one.error) { line.className = "message error"; }
        line.textContent = one.text;
        return line;
      }));
    });
  }
  function shareOf(field) { // NaN for what is no number from 0 to 1
    var value = field.value.trim() === "" ? NaN : Number(field.value.replace(",", "."));
    return value >= 0 && value <= 1 ? value : NaN;
  }
  all("input[data-words]").forEach(function (field) {
    var other = field.dataset.tenthOf ? at(field.dataset.tenthOf) : null;
    function allowed(value) { return field.dataset.words.replace("#", String(Math.round(1e5 * value) / 1e3)); }
    function show() {
      var value = shareOf(field), empty = field.value.trim() === "", tenth = other && empty ? shareOf(other) / 10 : NaN;
      at(field.id.replace("risk-", "words-")).textContent = !isNaN(value) ? allowed(value)
        : !isNaN(tenth) ? field.dataset.default + ": " + allowed(tenth)
        : empty ? "no limit" : "a number from 0 to 1";
    }
    field.addEventListener("input", show);
    if (other) { other.addEventListener("input", show); }
  });

  // What goes on in the server ---------------------------------------------------------------------
  var running = !!at("search") && at("search").dataset.running === "yes", writing = !!at("write") && at("write").disabled;
  function showSearch(found) {
    if (!at("search")) { return; }
    if (!found.running && !running) { drawMap(); return; } // the page came with how the search ended
    at("search-text").textContent = found.text;
    at("search-bar").value = found.share;
    at("start").disabled = found.running;
    at("stop").disabled = !found.running;
    if (running && !found.running) { at("start").textContent = "Go on"; }
    at("search-warnings").replaceChildren.apply(at("search-warnings"), found.warnings.map(function (text) {
      var line = document.createElement("li");
      line.textContent = text;
      return line;
    }));
    at("search-methods").querySelector("tbody").replaceChildren.apply(
      at("search-methods").querySelector("tbody"), found.methods.map(function (one) {
        var row = document.createElement("tr"), name = document.createElement("th");
        name.scope = "row";
        name.textContent = one.title;
        row.append(name);
        [one.done + " of about " + one.expected, one.finished ? "done" : "searching"].forEach(function (text, place) {
          var cell = document.createElement("td");
          if (place === 0) { cell.className = "n"; }
          cell.textContent = text;
          row.append(cell);
        });
        return row;
      }));
    if (found.running) { drawMapSoon(found.share); } else { drawMap(); }
    running = found.running;
  }
  function listen() {
    var events = new EventSource(root + "/events");
    events.addEventListener("search", function (event) { showSearch(JSON.parse(event.data)); });
    events.addEventListener("release", function (event) {
      var found = JSON.parse(event.data);
      if (at("release-text")) { at("release-text").textContent = found.text; }
      if (at("write")) { at("write").disabled = found.running; }
      if (writing && !found.running && at("release-text")) { location.reload(); }
      writing = found.running;
    });
    events.addEventListener("state", function (event) {
      if (JSON.parse(event.data).version !== document.body.dataset.version) {
        say("The job was changed in another tab. Reload this page to see it as it is now.", "info");
      }
    });
  }
  if (document.body.dataset.screen) { listen(); }

  // Small things -----------------------------------------------------------------------------------
  all("form").forEach(function (form) {
    form.addEventListener("submit", function (event) {
      if (form.dataset.sent && !event.defaultPrevented) { event.preventDefault(); return; }
      if (form.method === "post") { form.dataset.sent = "yes"; }
    });
  });
  window.addEventListener("pageshow", function (event) {
    if (event.persisted) { location.reload(); }
  });
  all("button[data-copy]").forEach(function (button) {
    button.addEventListener("click", function () {
      navigator.clipboard.writeText(at(button.dataset.copy).textContent).then(function () {
        button.textContent = "Copied";
      }, function () { say("The browser does not allow to copy; mark the text and copy it by hand.", "error"); });
    });
  });
  drawMap();
  drawInside(document);
  document.body.dataset.ready = "yes";
})();
