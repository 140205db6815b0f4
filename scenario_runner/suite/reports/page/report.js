"use strict";
// The page holds a row for each result, and the details of some in elements of their own that are parsed when opened.
// Only the rows in sight are elements. All text of others goes through textContent.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const ID = 0, VERDICT = 1, TIME = 2, DEVICE = 3, REASON = 4, HAS_DETAIL = 5, COMMAND = 6, CAUSE = 7;
  const UNCOMPARED = "compared with nothing";
  const STYLES = [
    [/^(Crash|UnexpectedImprovement)/, "worse"], [/^Timeout/, "late"], [/^(Fail|Missing$)/, "bad"], [/^(Flake|KnownFlake|Warn|MissingTool)/, "odd"],
    [/^ExpectedFail/, "known"], [/^Pass/, "good"], [/^/, "quiet"],
  ];
  const ORDER = ["Crash", "Timeout", "Fail", "MissingTool", "Missing", "Unexpected", "Flake", "Warn", "KnownFlake", "ExpectedFail", "Pass", "NotSupported", "Skip"];
  const $ = (name) => document.getElementById(name);
  const rows = data.rows, verdicts = data.verdicts;
  const style = verdicts.map((name) => STYLES.find(([pattern]) => pattern.test(name))[1]);
  const rank = verdicts.map((name) => { const at = ORDER.findIndex((each) => name.startsWith(each)); return at < 0 ? ORDER.length : at; });
  const inOrder = verdicts.map((_, at) => at).sort((a, b) => rank[a] - rank[b]);

  function make(tag, attributes, ...inside) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (name === "class") element.className = value;
      else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...inside.filter((each) => each !== null && each !== undefined));
    return element;
  }
  function timeText(ms) {
    if (ms < 1000) return `${ms < 10 ? Math.round(ms * 10) / 10 : Math.round(ms)} ms`;
    if (ms < 60000) return `${(ms / 1000).toFixed(2)} s`;
    return `${Math.floor(ms / 60000)} min ${Math.round(ms / 1000) % 60} s`;
  }
  const numberText = (value) => typeof value === "number" ? String(Number(value.toPrecision(7))) : String(value);
  // Where each scenario has a folder of its own, that folder names it, and is no group.
  function folderOf(id) {
    const parts = id.split("/");
    const inner = parts[parts.length - 1] === "scenario.json" ? 2 : 1;
    return parts.slice(0, -inner).join("/") || ".";
  }
  const nameInFolder = (id) => { const folder = folderOf(id); return id.startsWith(`${folder}/`) ? id.slice(folder.length + 1) : id; };

  // Colours of the page.
  const themes = ["auto", "light", "dark"];
  let theme = "auto";
  try { theme = localStorage.getItem("scenario-runner theme") || "auto"; } catch { /* not on this page */ }
  function showTheme() {
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    $("theme").textContent = { auto: "◐ Auto", light: "☀ Light", dark: "☾ Dark" }[theme];
    $("theme").setAttribute("aria-label", `Colours: ${theme}`);
  }
  $("theme").addEventListener("click", () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    try { localStorage.setItem("scenario-runner theme", theme); } catch { /* not kept then */ }
    showTheme();
  });
  showTheme();

  // What is above the list.
  const counts = verdicts.map(() => 0);
  for (const row of rows) counts[row[VERDICT]]++;
  document.querySelector("h1").textContent = data.title;
  $("about").textContent = data.about;
  $("incomplete").textContent = data.incomplete;
  $("incomplete").hidden = !data.incomplete;
  for (const [name, value] of data.environment) {
    document.querySelector("#environment table").append(make("tr", {}, make("th", { scope: "row" }, name), make("td", {}, value)));
  }
  const hidden = new Set();
  const chips = new Map();
  for (const at of inOrder) {
    const bar = make("span", { class: style[at], title: `${counts[at]} ${verdicts[at]}` });
    bar.style.flex = `${counts[at]} 0 0`;
    $("share").append(bar);
    const chip = make("button", { type: "button", class: `chip ${style[at]}`, "aria-pressed": "true", title: "Click: show or hide. Double click: show only these", onclick: () => {
      if (hidden.has(at)) hidden.delete(at); else hidden.add(at);
      filter();
    }, ondblclick: () => {
      hidden.clear();
      for (const other of inOrder) if (other !== at) hidden.add(other);
      filter();
    } }, make("span", { class: "word" }, `${verdicts[at]} ${counts[at]}`));
    chips.set(at, chip);
    $("verdicts").append(chip);
  }
  // Causes of NotSupported, the most frequent first. A click shows the results of a cause, and a second click all.
  let cause = -1;
  const ofCause = data.causes.map(() => 0);
  for (const row of rows) if (row[CAUSE] !== undefined) ofCause[row[CAUSE]]++;
  for (const at of data.causes.map((_, at) => at).sort((a, b) => ofCause[b] - ofCause[a])) {
    $("causeList").append(make("button", { type: "button", class: "link", onclick: () => { cause = cause === at ? -1 : at; filter(); } }, `${ofCause[at]}: ${data.causes[at]}`));
  }
  $("causes").hidden = !data.causes.length;
  $("share").setAttribute("aria-label", inOrder.map((at) => `${counts[at]} ${verdicts[at]}`).join(", "));
  const severalDevices = data.devices.filter(Boolean).length > 1;
  $("deviceLabel").hidden = !severalDevices;
  $("device").append(make("option", { value: "" }, "all"), ...data.devices.map((name, at) => name && make("option", { value: at }, name)).filter(Boolean));

  // The list: `shown` has numbers of rows, and folders where they are grouped.
  let shown = [], chosen = -1, current = -1, texts = null, matches = 0;
  const openFolders = new Set();
  const sorters = {
    verdict: (a, b) => rank[rows[a][VERDICT]] - rank[rows[b][VERDICT]] || byName(a, b),
    name: byName,
    slowest: (a, b) => rows[b][TIME] - rows[a][TIME] || a - b,
    order: (a, b) => a - b,
  };
  function byName(a, b) { return rows[a][ID] < rows[b][ID] ? -1 : rows[a][ID] > rows[b][ID] ? 1 : a - b; }

  function filter() {
    for (const [at, chip] of chips) chip.setAttribute("aria-pressed", String(!hidden.has(at)));
    const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    if (words.length && !texts) texts = rows.map((row) => `${row[ID]}\n${row[REASON]}\n${verdicts[row[VERDICT]]}`.toLowerCase());
    const device = severalDevices && $("device").value !== "" ? Number($("device").value) : -1;
    const slower = (Number($("slower").value) || 0) * 1000;
    const found = [];
    for (let at = 0; at < rows.length; at++) {
      const row = rows[at];
      if (cause >= 0 && row[CAUSE] !== cause) continue;
      if (hidden.has(row[VERDICT]) || row[TIME] < slower || (device >= 0 && row[DEVICE] !== device)) continue;
      if (words.length && !words.every((word) => texts[at].includes(word))) continue;
      found.push(at);
    }
    found.sort(sorters[$("sort").value]);
    matches = found.length;
    shown = $("group").checked ? grouped(found) : found;
    $("count").textContent = `${found.length === rows.length ? "" : `${found.length} of `}${rows.length === 1 ? "1 result" : `${rows.length} results`}`;
    $("nothing").hidden = found.length > 0;
    const still = current >= 0 ? shown.indexOf(current) : -1;
    chosen = still >= 0 ? still : shown.length ? Math.min(Math.max(chosen, 0), shown.length - 1) : -1;
    $("room").style.height = `${shown.length * rowHeight()}px`;
    draw();
  }
  function grouped(found) {
    const folders = new Map();
    for (const at of found) {
      const name = folderOf(rows[at][ID]);
      if (!folders.has(name)) folders.set(name, []);
      folders.get(name).push(at);
    }
    const all = [];
    for (const name of [...folders.keys()].sort()) {
      all.push({ name, items: folders.get(name) });
      if (openFolders.has(name)) all.push(...folders.get(name));
    }
    return all;
  }

  const rowHeight = () => parseFloat(getComputedStyle(document.documentElement).getPropertyValue("--row"));
  let waiting = false;
  function draw() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; drawNow(); });
  }
  function drawNow() {
    const list = $("list"), height = rowHeight();
    const first = Math.max(0, Math.floor(list.scrollTop / height) - 8);
    const end = Math.min(shown.length, Math.ceil((list.scrollTop + list.clientHeight) / height) + 8);
    const elements = [];
    for (let place = first; place < end; place++) elements.push(rowElement(place, height));
    $("room").replaceChildren(...elements);
    if (chosen >= first && chosen < end) list.setAttribute("aria-activedescendant", `row${chosen}`);
    else list.removeAttribute("aria-activedescendant");
  }
  function rowElement(place, height) {
    const each = shown[place], isGrouped = $("group").checked;
    const common = { id: `row${place}`, role: "treeitem", "aria-selected": String(place === chosen), "aria-setsize": shown.length, "aria-posinset": place + 1, "data-place": place };
    let element;
    if (typeof each === "number") {
      const row = rows[each], verdict = row[VERDICT];
      element = make("div", { ...common, class: `row${isGrouped ? " inner" : ""}`, "aria-level": isGrouped ? 2 : 1, title: row[REASON] ? `${row[ID]}\n${row[REASON]}` : row[ID] },
        make("span", { class: `verdict ${style[verdict]}` }, verdicts[verdict]),
        make("span", { class: "name" }, make("bdi", {}, isGrouped ? nameInFolder(row[ID]) : row[ID])),
        row[REASON] === UNCOMPARED ? make("span", { class: "note odd" }, UNCOMPARED) : make("span", { class: "reason" }, row[REASON]),
        severalDevices ? make("span", { class: "device" }, data.devices[row[DEVICE]] || "") : null,
        make("span", { class: "time" }, timeText(row[TIME])));
    } else {
      const numbers = verdicts.map(() => 0);
      for (const at of each.items) numbers[rows[at][VERDICT]]++;
      const isOpen = openFolders.has(each.name);
      element = make("div", { ...common, class: "row folder", "aria-level": 1, "aria-expanded": String(isOpen) },
        make("span", { "aria-hidden": "true" }, isOpen ? "▾" : "▸"), make("span", { class: "name" }, make("bdi", {}, each.name)),
        make("span", { class: "counts" }, ...inOrder.filter((at) => numbers[at]).map((at) => make("span", { class: style[at], title: verdicts[at] }, String(numbers[at]), make("span", { class: "word" }, ` ${verdicts[at]}`)))));
    }
    if (place === chosen) element.classList.add("chosen");
    element.style.top = `${place * height}px`;
    return element;
  }
  function choose(place, scroll = true) {
    if (!shown.length) return;
    chosen = Math.min(Math.max(place, 0), shown.length - 1);
    if (scroll) {
      const list = $("list"), height = rowHeight(), top = chosen * height;
      if (top < list.scrollTop) list.scrollTop = top;
      else if (top + height > list.scrollTop + list.clientHeight) list.scrollTop = top + height - list.clientHeight;
    }
    drawNow();
    if (!$("detail").hidden && typeof shown[chosen] === "number") open(shown[chosen], false);
  }
  function toggle(name, isOpen) {
    if (isOpen) openFolders.add(name); else openFolders.delete(name);
    const place = chosen;
    filter();
    choose(place);
  }
  function act(focus) {
    const each = shown[chosen];
    if (typeof each === "number") open(each, focus);
    else if (each) toggle(each.name, !openFolders.has(each.name));
  }
  $("list").addEventListener("scroll", draw, { passive: true });
  $("list").addEventListener("click", (event) => {
    const row = event.target.closest(".row");
    if (row) { current = -1; choose(Number(row.dataset.place), false); act(false); }
  });
  // Keys move in the list wherever they mean nothing else: the search field keeps those that edit text.
  const EDITING = ["Home", "End", "ArrowLeft", "ArrowRight", " "];
  document.addEventListener("keydown", (event) => {
    const target = event.target, isSearch = target === $("search");
    if (event.isComposing || (isSearch && EDITING.includes(event.key))) return;
    if (!isSearch && target.closest("#detail, a, input, select, textarea")) return;
    if (target.closest("button, summary") && ["Enter", " "].includes(event.key)) return;
    const page = Math.max(1, Math.floor($("list").clientHeight / rowHeight()) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    const each = shown[chosen];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in steps) choose(chosen + steps[event.key]);
    else if (event.key === "Enter" || event.key === " ") act(event.key === "Enter");
    else if (event.key === "ArrowRight" && each && typeof each === "object") toggle(each.name, true);
    else if (event.key === "ArrowLeft" && each !== undefined && $("group").checked) {
      let place = chosen;
      while (typeof shown[place] === "number") place--;
      chosen = place;
      toggle(shown[place].name, false);
    } else return;
    event.preventDefault();
  });
  for (const name of ["search", "slower", "device", "sort", "group"]) $(name).addEventListener("input", () => { $("list").scrollTop = 0; chosen = 0; filter(); });
  $("reset").addEventListener("click", () => {
    hidden.clear();
    cause = -1;
    for (const name of ["search", "slower", "device"]) $(name).value = "";
    filter();
    $("search").focus();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) { $("search").focus(); event.preventDefault(); }
    else if (event.key === "Escape" && !$("detail").hidden) { close(); event.preventDefault(); }
  });
  new ResizeObserver(() => { $("room").style.height = `${shown.length * rowHeight()}px`; draw(); }).observe($("list"));

  // One result.
  function address(at) { return `#${encodeURIComponent(rows[at][ID])}`; }
  function open(at, focus) {
    const wasOpen = !$("detail").hidden;
    if (current !== at || !wasOpen) {
      current = at;
      $("detail").hidden = false;
      show(at);
      try {
        if (wasOpen) history.replaceState(history.state, "", address(at));
        else history.pushState({ opened: true }, "", address(at));
      } catch { /* a page without an address */ }
    }
    if (focus || getComputedStyle($("detail")).position === "fixed") $("detail").focus();
  }
  function close() {
    if (history.state && history.state.opened) { history.back(); return; }
    closed();
    try { history.replaceState(null, "", "#"); } catch { /* as above */ }
  }
  function closed() {
    $("detail").hidden = true;
    current = -1;
    draw();
    $("list").focus();
  }
  function follow() {
    let id = "";
    try { id = decodeURIComponent(location.hash.slice(1)); } catch { /* not one of ours */ }
    const at = id ? rows.findIndex((row) => row[ID] === id) : -1;
    if (at < 0) { if (!$("detail").hidden) closed(); return; }
    const place = shown.indexOf(at);
    if (place >= 0) choose(place);
    current = at;
    $("detail").hidden = false;
    show(at);
  }
  window.addEventListener("popstate", follow);
  $("close").addEventListener("click", close);
  const step = (by) => {
    let place = shown.indexOf(current) + by;
    while (shown[place] && typeof shown[place] === "object") place += by;
    if (typeof shown[place] === "number") choose(place);
  };
  $("previous").addEventListener("click", () => step(-1));
  $("next").addEventListener("click", () => step(1));

  function show(at) {
    const row = rows[at];
    document.querySelector("#detail h2").replaceChildren(make("span", { class: `badge ${style[row[VERDICT]]}` }, verdicts[row[VERDICT]]), ` ${row[ID]}`);
    document.querySelector("#detail .facts").textContent = [timeText(row[TIME]), data.devices[row[DEVICE]]].filter(Boolean).join(" · ");
    const content = $("content");
    content.replaceChildren();
    if (row[REASON]) content.append(make("div", { class: "what" }, row[REASON]));
    content.append(commandElement(row[COMMAND] || `${data.command} ${row[ID]}`));
    $("detail").scrollTop = 0;
    if (!row[HAS_DETAIL]) return;
    const source = $(`d${at}`);
    if (!source) {
      content.append(make("p", { class: "quiet" }, document.readyState === "loading" ? "Loading…" : "Its details are left out: the page would become too large. The journal has them."));
      if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", () => { if (current === at) show(at); }, { once: true });
      return;
    }
    const detail = JSON.parse(source.textContent);
    const attempts = detail.attempts;
    attempts.forEach((attempt, number) => {
      const [first, last] = attempt.numbers;
      const title = `${first === last ? `Attempt ${last}` : `Attempts ${first} to ${last}`} of ${detail.count}: ${attempt.status}, ${timeText(attempt.seconds * 1000)}`;
      if (attempt.same) content.append(make("p", { class: "quiet" }, `${title}; the same as the last one`));
      else if (detail.count === 1) content.append(...attemptElements(attempt, row));
      else content.append(make("details", { class: "part attempt", open: number === attempts.length - 1 || attempts[attempts.length - 1].status === "Pass" },
        make("summary", {}, title), ...attemptElements(attempt, row)));
    });
    if (detail.driver) content.append(make("p", { class: "quiet" }, `Driver: ${detail.driver}`));
  }
  function commandElement(command) {
    const button = make("button", { type: "button", onclick: async () => {
      button.textContent = (await copied(command)) ? "Copied" : "Select it by hand";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    } }, "Copy");
    return make("div", { class: "command" }, make("code", {}, command), button);
  }
  async function copied(text) {
    try { await navigator.clipboard.writeText(text); return true; } catch { /* pages from files may not, in some browsers */ }
    const area = make("textarea", { readonly: true });
    area.value = text;
    document.body.append(area);
    area.select();
    let done = false;
    try { done = document.execCommand("copy"); } catch { /* by hand then */ }
    area.remove();
    return done;
  }
  function attemptElements(attempt, row) {
    const all = [];
    if (attempt.reason && attempt.reason !== row[REASON]) all.push(make("div", { class: "what" }, attempt.reason));
    const outputs = attempt.outputs || [], wrong = outputs.filter((each) => each.status !== "Pass"), right = outputs.filter((each) => each.status === "Pass");
    for (const output of wrong) all.push(outputElement(output));
    if (attempt.diagnostics) {
      all.push(make("h3", {}, "Messages"), make("div", {}, ...attempt.diagnostics.map((each) => make("div", { class: "message" },
        make("strong", { class: each.severity === "error" ? "bad" : "odd" }, `${each.severity} ${each.code}`),
        ` ${[[each.path, each.line, each.column].filter((part) => part !== null && part !== undefined).join(":"), each.pointer].filter(Boolean).join(" ")}`,
        make("div", {}, each.message), each.help ? make("div", { class: "help" }, each.help) : null))));
    }
    if (attempt.stack) all.push(make("h3", {}, "Stack"), make("pre", { tabindex: 0 }, attempt.stack));
    if (attempt.python_stack) all.push(make("details", { class: "part" }, make("summary", {}, "Python stack"), make("pre", { tabindex: 0 }, attempt.python_stack)));
    if (attempt.output) all.push(make("h3", {}, "Written to standard error"), make("pre", { tabindex: 0 }, attempt.output));
    if (attempt.before) {
      const count = attempt.before_count, listed = attempt.before.length;
      const before = `${count === 1 ? "1 item" : `${count} items`} had run in this process before${count > listed ? `, at last these ${listed}` : ""}`;
      all.push(make("details", { class: "part" }, make("summary", {}, before),
        make("ol", { class: "before" }, ...attempt.before.map(beforeElement))));
    }
    if (right.length) {
      all.push(make("details", { class: "part" }, make("summary", {}, `${right.length === 1 ? "1 output" : `${right.length} outputs`} as expected`), ...right.map(outputElement)));
    }
    if (attempt.exit_code) all.push(make("p", { class: "quiet" }, `Exit code of the run: ${attempt.exit_code}`));
    return all;
  }
  function beforeElement(id) {
    return make("li", {}, make("button", { type: "button", class: "link", onclick: () => {
      const at = rows.findIndex((row) => row[ID] === id);
      if (at < 0) return;
      const place = shown.indexOf(at);
      if (place >= 0) choose(place); else open(at, true);
    } }, id));
  }
  function outputElement(output) {
    const element = make("div", { class: "output" }, make("h3", {}, `Output ${output.name}`));
    if (output.message) element.append(make("div", {}, output.message));
    const pictures = (output.files || []).filter((each) => each.picture);
    if (pictures.length) element.append(...pictureElements(pictures));
    const tables = make("div", { class: "tables" });
    if (output.worst) tables.append(table(["worst element", "expected", "actual"], output.worst, [0, 1, 2]));
    if (output.metrics) tables.append(table(["metric", "value"], Object.entries(output.metrics).map(([name, value]) => [name, numberText(value)]), [1]));
    element.append(tables);
    if (output.allowed) element.append(make("p", { class: "quiet" }, `Allowed: ${output.allowed}`));
    const links = (output.files || []).filter((each) => each.link);
    if (links.length) {
      element.append(make("p", {}, "Files: ", ...links.flatMap((each, at) => [at ? ", " : "", make("a", { href: each.link, target: "_blank", rel: "noopener" }, each.what)])));
    }
    return element;
  }
  function table(heads, lines, numbers) {
    return make("div", { class: "tablewrap" }, make("table", {}, make("thead", {}, make("tr", {}, ...heads.map((name) => make("th", { scope: "col" }, name)))),
      make("tbody", {}, ...lines.map((line) => make("tr", {}, ...line.map((value, at) => make("td", numbers.includes(at) ? { class: "number" } : {}, value)))))));
  }

  // Pictures side by side: one zoom, scrolled together, with the colours under the pointer.
  const captions = { expected: "The expected picture", actual: "The actual picture", error: "The errors, white where they are greatest" };
  function pictureElements(pictures) {
    const views = [], texel = make("div", { class: "texel" }), value = make("output", {});
    const slider = make("input", { type: "range", min: -3, max: 6, step: "any", "aria-label": "Zoom" });
    let scale = 1;
    function zoom(to) {
      scale = to > 1 ? Math.round(to) : to; // every texel has the same size then
      slider.value = Math.log2(scale);
      value.textContent = scale >= 1 ? `${scale}×` : `${Math.round(scale * 100)} %`;
      for (const { image } of views) if (image.naturalWidth) image.style.width = `${image.naturalWidth * scale}px`;
    }
    function fit() {
      const { image, view } = views.find((each) => each.image.naturalWidth) || {};
      if (!image) return;
      const most = Math.min(view.clientWidth / image.naturalWidth, parseFloat(getComputedStyle(view).maxHeight) / image.naturalHeight);
      zoom(Math.max(1 / 8, Math.min(64, most > 1 ? Math.floor(most) : most)));
    }
    function follow(view) {
      for (const other of views) {
        if (other.view === view) continue;
        other.view.scrollLeft = view.scrollLeft;
        other.view.scrollTop = view.scrollTop;
      }
    }
    function colorOf(image, x, y) {
      if (!image.naturalWidth || x >= image.naturalWidth || y >= image.naturalHeight) return "";
      const canvas = make("canvas", { width: 1, height: 1 }), context = canvas.getContext("2d");
      context.drawImage(image, -x, -y);
      try { return context.getImageData(0, 0, 1, 1).data.join(" "); } catch { return ""; } // a file of its own
    }
    for (const each of pictures) {
      const image = make("img", { src: each.picture, alt: `${each.what} picture`, decoding: "async" });
      const view = make("div", { class: `view ${each.what}`, tabindex: 0 }, image);
      const caption = make("figcaption", {}, captions[each.what] || each.what);
      image.addEventListener("load", () => {
        caption.textContent = `${captions[each.what] || each.what}, ${image.naturalWidth} × ${image.naturalHeight} texels`;
        if (!views.some((other) => other.fitted)) { views[0].fitted = true; fit(); } else zoom(scale);
      });
      image.addEventListener("error", () => { caption.textContent = `${each.what}: this picture cannot be shown`; });
      image.addEventListener("mousemove", (event) => {
        const x = Math.floor(event.offsetX / scale), y = Math.floor(event.offsetY / scale);
        texel.textContent = `x ${x}, y ${y}: ` + views.map((other) => [other.what, colorOf(other.image, x, y)]).filter(([, color]) => color).map(([what, color]) => `${what} ${color}`).join(" | ");
      });
      view.addEventListener("scroll", () => follow(view), { passive: true });
      views.push({ image, view, what: each.what, element: make("figure", {}, caption, view) });
    }
    slider.addEventListener("input", () => zoom(2 ** Number(slider.value)));
    return [make("div", { class: "pictures" }, ...views.map((each) => each.element)),
      make("div", { class: "zoom" }, make("label", {}, "Zoom "), slider, value, make("button", { type: "button", onclick: fit }, "Fit"), texel)];
  }

  filter();
  follow();
  document.documentElement.dataset.ready = "true";
})();
