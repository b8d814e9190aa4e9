"use strict";
(() => {
  const tip = document.getElementById("tip");
  const space = "http://www.w3.org/2000/svg";

  function show(text, x, y) {
    tip.textContent = text;
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const left = x + 14 + box.width > innerWidth ? x - box.width - 14 : x + 14;
    const top = y + 16 + box.height > innerHeight ? y - box.height - 12 : y + 16;
    tip.style.left = Math.max(6, left) + "px";
    tip.style.top = Math.max(6, top) + "px";
  }
  const hide = () => { tip.hidden = true; };

  // --- tips of marks --------------------------------------------------------------------------

  const owner = (event) => event.target.closest ? event.target.closest("[data-tip]") : null;
  document.addEventListener("pointermove", (event) => {
    const mark = owner(event);
    if (mark) show(mark.dataset.tip, event.clientX, event.clientY);
    else if (!event.target.closest || !event.target.closest(".panel")) hide();
  });
  document.addEventListener("pointerdown", (event) => {
    const mark = owner(event);
    if (mark) show(mark.dataset.tip, event.clientX, event.clientY);
  });
  document.addEventListener("focusin", (event) => {
    const mark = owner(event);
    if (!mark || !mark.matches(":focus-visible")) return;
    const box = mark.getBoundingClientRect();
    show(mark.dataset.tip, box.left + box.width / 2, box.top + box.height / 2);
  });
  document.addEventListener("focusout", hide);
  document.addEventListener("scroll", hide, { passive: true });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });

  // --- coordinates under the pointer, and the regions they lie in ------------------------------

  function axis(text) {
    const [name, ...ends] = text.split("|");
    const [low, high, start, stop] = ends.map(Number);
    return { name, value: (at) => low + (at - start) / (stop - start) * (high - low), start, stop };
  }
  function line(x1, y1, x2, y2) {
    const made = document.createElementNS(space, "line");
    for (const [key, value] of Object.entries({ x1, y1, x2, y2 })) made.setAttribute(key, value);
    return made;
  }
  for (const panel of document.querySelectorAll(".panel")) {
    const x = axis(panel.dataset.x), y = axis(panel.dataset.y), cross = panel.querySelector(".cross");
    const read = (event) => {
      const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(panel.getScreenCTM().inverse());
      if (at.x < x.start || at.x > x.stop || at.y > y.start || at.y < y.stop) { cross.replaceChildren(); hide(); return; }
      cross.replaceChildren(line(at.x, y.stop, at.x, y.start), line(x.start, at.y, x.stop, at.y));
      const inside = [...panel.querySelectorAll("[data-region]")]
        .filter((shape) => shape.isPointInFill(at)).map((shape) => shape.dataset.region);
      const where = inside.length ? "inside: " + inside.join(", ") : "outside of every region";
      show(`${x.name} = ${x.value(at.x).toPrecision(4)}\n${y.name} = ${y.value(at.y).toPrecision(4)}\n${where}`,
        event.clientX, event.clientY);
    };
    panel.addEventListener("pointermove", read);
    panel.addEventListener("pointerdown", read);
    panel.addEventListener("pointerleave", () => { cross.replaceChildren(); hide(); });
  }

  function make(name, attributes, text) {
    const made = document.createElementNS(space, name);
    for (const [k, v] of Object.entries(attributes)) made.setAttribute(k, v);
    if (text !== undefined) made.textContent = text;
    return made;
  }
  function entry(text, ...marks) {
    const item = document.createElement("li"), swatch = make("svg", { class: "swatch", viewBox: "0 0 20 14", "aria-hidden": "true" });
    swatch.append(...marks);
    item.append(swatch, text);
    return item;
  }
  function select(text, options, current, change) {
    const label = document.createElement("label"), box = document.createElement("select");
    label.append(text, box);
    for (const [value, shown] of options) {
      const option = document.createElement("option");
      option.value = value; option.textContent = shown; option.selected = value === current;
      box.append(option);
    }
    box.addEventListener("change", () => { change(Number(box.value)); });
    return label;
  }

  // --- what if: values over one parameter, from a grid ------------------------------------------

  const grid = document.getElementById("whatif-data");
  if (grid) {
    const facts = JSON.parse(grid.textContent), map = document.getElementById("whatif-map");
    const says = document.getElementById("whatif-says"), place = document.querySelector(".whatif");
    const W = 640, H = 250, L = 72, R = 14, T = 10, B = 66;
    const strokes = ["var(--rectangular)", "var(--tied)"], dashes = ["", "7 4"];
    const digits = (v) => String(Number(v.toPrecision(4))).replace("-", "−");
    const word = (v) => v === null ? "no value" : v === "inf" ? "∞" : digits(v);
    let curve, slider;
    const ticks = (low, high) => { // round numbers
      const raw = (high - low) / 5 || 1, ten = 10 ** Math.floor(Math.log10(raw)), step = [1, 2, 5, 10].find((k) => k * ten >= raw) * ten, list = [];
      for (let k = Math.ceil(low / step); k * step <= high; k++) list.push(Number((k * step).toPrecision(10)));
      return list;
    };
    const finite = () => Object.values(curve.values).flat().filter((v) => typeof v === "number");
    const ends = () => {
      const all = facts.guarantee === null ? finite() : [...finite(), facts.guarantee];
      const low = Math.min(...all), high = Math.max(...all), room = (high - low || Math.abs(high) || 1) * 0.08;
      const probability = facts.quantity === "probability"; // no axis goes beyond what one can be
      return [probability ? Math.max(low - room, 0) : low - room, probability ? Math.min(high + room, 1) : high + room];
    };
    const across = (v) => L + (v - curve.grid[0]) / (curve.grid.at(-1) - curve.grid[0]) * (W - L - R);
    const up = (v, [low, high]) => T + (high - v) / (high - low) * (H - T - B);

    function tell() {
      const i = Number(slider.value), x = curve.grid[i], span = ends(), parts = [], marks = [];
      Object.entries(curve.values).forEach(([name, column], k) => {
        parts.push(`the ${name} policy ${word(column[i])}`);
        if (typeof column[i] === "number")
          marks.push(make("circle", { class: "now", cx: across(x), cy: up(column[i], span), r: 5, fill: strokes[k] }));
      });
      const others = Object.entries(curve.others[i]).slice(0, 3).map(([name, v]) => `${name} = ${digits(v)}`);
      const more = Object.keys(curve.others[i]).length > 3 ? ", …" : "", best = others.length ? ` (best fit: ${others.join(", ")}${more})` : "";
      const { robust, given } = curve.values;
      let gain = "";
      if (given && typeof robust[i] === "number" && typeof given[i] === "number") {
        const ahead = facts.maximises ? robust[i] - given[i] : given[i] - robust[i];
        const much = digits(Math.abs(ahead)), kind = facts.maximises ? "more" : "less";
        gain = Math.abs(ahead) < 1e-6 ? " Both are worth the same there."
          : ahead > 0 ? ` The robust policy has ${much} ${kind}.` : ` The given policy would be better there, by ${much}.`;
      }
      says.textContent = `${curve.name} = ${digits(x)}${best}: ${facts.quantity} of ${parts.join(", of ")}.${gain}`;
      slider.setAttribute("aria-valuetext", says.textContent);
      map.querySelector(".marks").replaceChildren(
        make("line", { class: "now", x1: across(x), x2: across(x), y1: T, y2: H - B, stroke: "var(--ink)", "stroke-width": 1.2 }), ...marks);
    }
    function plot() {
      const span = ends(), parts = [], bottom = H - B;
      map.setAttribute("viewBox", `0 0 ${W} ${H}`);
      parts.push(make("path", { d: `M${L} ${T}V${bottom}H${W - R}`, fill: "none", stroke: "var(--line)" }));
      for (const v of ticks(...span)) parts.push(make("text", { class: "tick", x: L - 8, y: up(v, span) + 4, "text-anchor": "end" }, String(v)));
      for (const x of ticks(curve.grid[0], curve.grid.at(-1)))
        parts.push(make("text", { class: "tick", x: across(x), y: bottom + 22, "text-anchor": "middle" }, String(x)));
      parts.push(make("text", { class: "label", x: (L + W - R) / 2, y: H - 10, "text-anchor": "middle" }, `${curve.name} (${facts.quantity} above it)`));
      const key = [];
      if (facts.guarantee !== null) {
        const y = up(facts.guarantee, span);
        parts.push(make("line", { x1: L, x2: W - R, y1: y, y2: y, stroke: "var(--truth)", "stroke-width": 1.2, "stroke-dasharray": "2 3" }));
        key.push(entry("guarantee", make("line", { x1: 0, x2: 20, y1: 7, y2: 7, stroke: "var(--truth)", "stroke-width": 1.6, "stroke-dasharray": "2 3" })));
      }
      Object.entries(curve.values).forEach(([name, column], k) => {
        let path = "";
        column.forEach((v, i) => {
          if (typeof v === "number") path += (typeof column[i - 1] === "number" ? "L" : "M") + across(curve.grid[i]).toFixed(1) + " " + up(v, span).toFixed(1);
        });
        const look = { fill: "none", stroke: strokes[k], "stroke-width": 2, "stroke-dasharray": dashes[k] };
        parts.push(make("path", { class: "curve", d: path || "M0 0", ...look }));
        key.push(entry(`${name} policy`, make("line", { x1: 0, x2: 20, y1: 7, y2: 7, ...look })));
      });
      map.replaceChildren(...parts, make("g", { class: "marks" }));
      map.setAttribute("aria-label", `${facts.quantity} of ${Object.keys(curve.values).join(" and ")} policy over ${curve.name}`);
      document.getElementById("whatif-legend").replaceChildren(...key);
    }
    function take(number) {
      curve = facts.curves[number];
      const middle = (curve.grid[0] + curve.grid.at(-1)) / 2, label = document.createElement("label");
      slider = document.createElement("input");
      Object.assign(slider, { type: "range", min: 0, max: curve.grid.length - 1, step: 1 });
      slider.value = curve.grid.reduce((best, x, i) => Math.abs(x - middle) < Math.abs(curve.grid[best] - middle) ? i : best, 0);
      slider.addEventListener("input", tell);
      label.className = "slide"; label.append(curve.name, slider);
      const parts = facts.curves.length > 1
        ? [select("parameter", facts.curves.map((one, i) => [i, one.name]), number, (v) => { take(v); })] : [];
      place.replaceChildren(...parts, label);
      plot();
      tell();
    }
    take(0);
  }

  // --- the policy as a heat map -----------------------------------------------------------------

  const source = document.getElementById("policy-data");
  if (!source) return;
  const data = JSON.parse(source.textContent);
  const picture = document.getElementById("policy-map");
  const controls = document.getElementById("policy-controls");
  const key = document.getElementById("policy-legend");
  const WIDTH = 480, LEFT = 76, RIGHT = 10, TOP = 26, BELOW = 56;
  const names = data.variables.map((variable) => variable.name);
  const chosen = { policy: 0, x: data.axes[0], y: data.axes[1], fixed: {} };
  for (const [index, bin] of Object.entries(data.fixed)) chosen.fixed[index] = bin;

  function colour(action) {
    if (action < 8) return `var(--a${action})`;
    return `hsl(${(action * 137.5) % 360} 55% 55%)`;
  }
  function counts() {
    const cells = new Map();
    const add = (x, y, action, n) => {
      const at = y * 100000 + x;
      if (!cells.has(at)) cells.set(at, new Map());
      const cell = cells.get(at);
      cell.set(action, (cell.get(action) || 0) + n);
    };
    const taken = data.rows[chosen.policy];
    const others = Object.entries(chosen.fixed).filter(([i]) => i != chosen.x && i != chosen.y);
    const x = data.variables[chosen.x].column, y = data.variables[chosen.y].column;
    for (let row = 0; row < taken.length; row++) {
      if (others.every(([i, bin]) => data.variables[i].column[row] === bin))
        add(x[row], chosen.x === chosen.y ? 0 : y[row], taken[row], 1);
    }
    return cells;
  }
  function labels(variable, single) { return single ? [""] : data.variables[variable].labels; }

  function draw() {
    const single = chosen.x === chosen.y;
    const across = labels(chosen.x, false), up = labels(chosen.y, single);
    const wide = WIDTH - LEFT - RIGHT;
    const tall = Math.min(Math.max(up.length * Math.min(wide / across.length, 40), 60), 360);
    const w = wide / across.length, h = tall / up.length, height = TOP + tall + BELOW;
    picture.setAttribute("viewBox", `0 0 ${WIDTH} ${height}`);
    const used = new Set(), marks = [];
    for (const [at, cell] of counts()) {
      const x = at % 100000, y = Math.floor(at / 100000);
      const ranked = [...cell].sort((a, b) => b[1] - a[1]);
      const total = ranked.reduce((sum, entry) => sum + entry[1], 0);
      const [action, most] = ranked[0];
      used.add(action);
      const where = `${names[chosen.x]} = ${across[x]}` + (single ? "" : `, ${names[chosen.y]} = ${up[y]}`);
      const lines = total === 1 ? [data.actions[action]] : ranked.map(([a, n]) => `${data.actions[a]}: ${n} of ${total} states`);
      marks.push(make("rect", {
        class: "cell", x: LEFT + x * w, y: TOP + tall - (y + 1) * h, width: w, height: h, fill: colour(action),
        "fill-opacity": (0.25 + 0.75 * most / total).toFixed(2), "data-tip": [where, ...lines].join("\n"),
      }));
    }
    const texts = [make("rect", { x: LEFT, y: TOP, width: wide, height: tall, fill: "none", stroke: "var(--line)" })];
    const each = (list, most) => list.map((text, i) => [text, i]).filter(([, i]) => i % Math.ceil(list.length / most) === 0);
    for (const [text, i] of each(across, across.some((t) => t.length > 3) ? 6 : 12))
      texts.push(make("text", { class: "tick", x: LEFT + (i + 0.5) * w, y: TOP + tall + 18, "text-anchor": "middle" }, text));
    for (const [text, i] of each(up, Math.max(2, Math.floor(tall / 18))))
      texts.push(make("text", { class: "tick", x: LEFT - 7, y: TOP + tall - (i + 0.5) * h + 4, "text-anchor": "end" }, text));
    texts.push(make("text", { class: "label", x: LEFT + wide / 2, y: height - 12, "text-anchor": "middle" }, `${names[chosen.x]} (state variable)`));
    if (!single) texts.push(make("text", { class: "label", x: 4, y: 16 }, `${names[chosen.y]} (state variable)`));
    if (!marks.length) texts.push(make("text", { class: "label", x: LEFT + wide / 2, y: TOP + tall / 2, "text-anchor": "middle" }, "no state with a choice here"));
    picture.replaceChildren(...marks, ...texts);
    const listed = [...used].sort((a, b) => a - b).map((action) => data.actions[action]);
    picture.setAttribute("aria-label", `${data.policies[chosen.policy]} policy over ${names[chosen.x]} and ${names[chosen.y]}: ${marks.length} cells; actions ${listed.join(", ")}`);
    key.replaceChildren(...[...used].sort((a, b) => a - b).map((action) =>
      entry(data.actions[action], make("rect", { x: 1, y: 1, width: 18, height: 12, fill: colour(action) }))));
  }

  function arrange() {
    const variables = names.map((name, i) => [i, name]);
    const parts = [];
    if (data.policies.length > 1)
      parts.push(select("policy", data.policies.map((name, i) => [i, name]), chosen.policy, (v) => { chosen.policy = v; draw(); }));
    const pick = (which, other) => (v) => {
      if (v === chosen[other]) chosen[other] = chosen[which];
      chosen[which] = v; arrange(); draw();
    };
    if (names.length > 1) {
      parts.push(select("across", variables, chosen.x, pick("x", "y")));
      parts.push(select("up", variables, chosen.y, pick("y", "x")));
    }
    data.variables.forEach((variable, i) => {
      if (i === chosen.x || i === chosen.y || variable.labels.length < 2) return;
      const options = [[-1, "any"], ...variable.labels.map((text, bin) => [bin, text])];
      const current = i in chosen.fixed ? chosen.fixed[i] : -1;
      parts.push(select(variable.name, options, current, (v) => {
        if (v < 0) delete chosen.fixed[i]; else chosen.fixed[i] = v;
        draw();
      }));
    });
    controls.replaceChildren(...parts);
  }
  arrange();
  draw();
})();
