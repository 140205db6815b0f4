// The functions of the page of the HTML report: it runs here in a frame, whose source is `page`. Failures are sent to the test.
const failures = [];
let frame, view, $;

const same = (what, actual, expected) => {
  if (JSON.stringify(actual) !== JSON.stringify(expected)) failures.push(`${what}: ${JSON.stringify(actual)}`);
};
const holds = (what, condition) => condition || failures.push(what);
const drawn = () => new Promise((done) => setTimeout(done, 50));
const all = (selector) => [...view.document.querySelectorAll(selector)];
const names = () => all(".row .name").map((each) => each.textContent);
const chosen = () => all(".chosen")[0]?.dataset.place;

async function opened(source, width, height) {
  frame?.remove();
  frame = document.createElement("iframe");
  Object.assign(frame.style, { width: `${width}px`, height: `${height}px`, border: 0 });
  // without a screen no frame is drawn by itself
  frame.srcdoc = source.replace("<head>", "<head><script>requestAnimationFrame = (draw) => setTimeout(draw);<\/script>");
  document.body.append(frame);
  await new Promise((done) => frame.addEventListener("load", done));
  view = frame.contentWindow;
  $ = (id) => view.document.getElementById(id);
  view.addEventListener("error", (event) => failures.push(event.message));
  same("ready", view.document.documentElement.dataset.ready, "true");
  await drawn();
}

async function fill(id, value) {
  $(id).value = value;
  $(id).dispatchEvent(new view.Event("input"));
  await drawn();
}

async function press(...keys) {
  for (const key of keys) {
    view.document.activeElement.dispatchEvent(new view.KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
    await drawn();
  }
}

async function click(element) {
  element.click();
  await drawn();
}

async function desktop() {
  await opened(page, 1400, 900);
  // few of the rows in the list are elements, failures first; scrolling brings the others
  same("count", $("count").textContent, "10015 results");
  same("first name", names()[0], "crash/scenario.json");
  holds("few rows", names().length < 100);
  holds("complete", $("incomplete").hidden);
  // keys work before anything was clicked, and in the search field
  same("chosen at first", chosen(), "0");
  await press("ArrowDown");
  same("chosen next", chosen(), "1");
  await press("Enter");
  holds("opened by Enter", !$("detail").hidden);
  await press("Escape");
  holds("closed by Escape", $("detail").hidden);
  await press("/");
  same("focus", view.document.activeElement.id, "search");
  await fill("search", "0");
  same("chosen by search", chosen(), "0");
  await press("ArrowDown", "ArrowDown");
  same("chosen below search", chosen(), "2");
  const name = all(".chosen .name")[0].textContent;
  await press("Enter");
  holds("detail of the chosen one", all("#detail h2")[0].textContent.endsWith(name));
  await press("Escape");
  // filters restrict the list, together further
  await fill("search", "sigSEGV crash/");
  same("searched", names(), ["crash/scenario.json"]);
  await fill("search", "");
  await fill("slower", "0.9995");
  same("slow", $("count").textContent, "6 of 10015 results");
  await fill("device", [...$("device").options].find((each) => each.text === "fast device").value);
  const slow = ["many/09995", "many/09997", "many/09999", "timeout"].map((each) => `${each}/scenario.json`);
  same("slow on a device", names().sort(), slow);
  for (const verdict of ["Pass", "Timeout"]) await click(all(".chip").find((each) => each.innerText.startsWith(verdict)));
  holds("nothing left", !$("nothing").hidden);
  await click($("reset"));
  same("reset", $("count").textContent, "10015 results");
  $("list").focus();
  await press("End");
  same("last name", names().at(-1), "skipped/scenario.json");
  // a cause of NotSupported shows its results alone, and all after a second click
  const byCause = all("#causeList button");
  same("causes", byCause.map((each) => each.textContent), ["1: no VK_ARM_tensors"]);
  await click(byCause[0]);
  same("of a cause", names(), ["unsupported/scenario.json"]);
  await click(byCause[0]);
  same("of all causes", $("count").textContent, "10015 results");
  // the slowest come first when asked for; folders open with the keyboard
  await fill("sort", "slowest");
  same("slowest", names().slice(0, 2), ["timeout/scenario.json", "many/09999/scenario.json"]);
  await click($("group"));
  const folders = names();
  same("folders", [0, 2, 3].map((at) => folders[at]), [".", "images.2d", "many"]);
  $("list").focus();
  await press("Home", "ArrowDown", "ArrowDown", "ArrowRight");
  same("open folder", names(), [...folders.slice(0, 3), "fail/scenario.json", "many"]);
  await click($("group"));
  // a failure has its pictures side by side, worst elements, metrics, and the command that repeats it
  await fill("search", "images.2d/fail");
  $("list").focus();
  await press("Enter");
  const images = all("#content img");
  await Promise.all(images.map((each) => each.decode()));
  same("pictures", images.map((each) => each.naturalWidth), [4, 4, 4]);
  same("pixels", view.getComputedStyle(images[0]).imageRendering, "pixelated");
  same("one row", new Set(all("figure").map((each) => each.getBoundingClientRect().top)).size, 1);
  for (const part of ["3 of 48 elements differ", "[0, 1, 2]\t0\t255", "rmse\t0.25", "scenario-runner test suite/images.2d/fail"])
    holds(part, $("content").innerText.includes(part));
  await press("Escape");
  same("focus after a detail", view.document.activeElement.id, "list");
  // the address leads to a result with its attempts; hostile text in it is text
  view.location.hash = encodeURIComponent("crash/scenario.json");
  await drawn();
  all("details.part").forEach((each) => (each.open = true));
  for (const part of ["Attempt 1 of 2: Crash, 500 ms", "line 3 in execute", "last words <\/script><script>alert(1)", "pass/scenario.json"])
    holds(part, $("content").innerText.includes(part));
}

async function phone() {
  await opened(page, 390, 844);
  for (const [theme, color] of [["light", "rgb(255, 255, 255)"], ["dark", "rgb(22, 24, 29)"]]) {
    while (view.document.documentElement.dataset.theme !== theme) await click($("theme"));
    same(theme, view.getComputedStyle(view.document.body).backgroundColor, color);
  }
  same("width", view.document.documentElement.scrollWidth, 390);
  await click(all(".row")[0]);
  const { width, height } = $("detail").getBoundingClientRect();
  same("detail covers the list", [width, height], [390, 844]);
  holds("nothing is wider", $("detail").scrollWidth <= 390);
  await click($("close"));
  holds("closed", $("detail").hidden);
}

async function incomplete() {
  await opened(page.replace('"incomplete":""', '"incomplete":"killed \\u003cb>"'), 1400, 900);
  same("incomplete", $("incomplete").innerText, "killed <b>");
}

desktop().then(phone).then(incomplete).catch((error) => failures.push(error.stack)).then(() => {
  const address = `http://127.0.0.1:${location.search.slice(1)}`;
  fetch(address, { method: "POST", mode: "no-cors", body: JSON.stringify(failures) });
});
