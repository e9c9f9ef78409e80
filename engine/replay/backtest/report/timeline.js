// Draws the detections of one key. Every text is set as text, never as markup.
(() => {
  "use strict";
  const DRAWN_MAX = 200; // detections at once
  const KEYS_MAX = 200; // in the list; what is typed narrows it
  const NEAR = 22, FAR = 90, LABEL = 190, LEFT = 12, LANE = 40, TOP = 30, COLOURS = 6;
  const at = (name) => document.getElementById(name);
  const all = JSON.parse(at("timelines").textContent);
  const [find, list, out, told] = ["find", "key", "timeline", "told"].map(at);

  const make = (tag, attributes, text) => {
    const svg = ["svg", "g", "path", "line", "text", "title"].includes(tag);
    const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag)
      : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const number = (value) => value.toLocaleString("en");

  // Where instants stand: what is longer apart stands wider apart, by the logarithm.
  const places = (instants) => {
    const sorted = [...new Set(instants)].sort((a, b) => a - b);
    const gaps = sorted.slice(1).map((t, n) => t - sorted[n]);
    const least = gaps.reduce((a, b) => Math.min(a, b), Infinity);
    const x = new Map();
    let place = LEFT;
    sorted.forEach((t, n) => {
      x.set(t, place);
      place += Math.min(FAR, NEAR + 9 * Math.log2(1 + (gaps[n] ?? 0) / least));
    });
    return { x, width: Math.max(place, LEFT + LABEL) };
  };

  const mark = (x, y, fate) => {
    const diamond = `M${x - 6} ${y} l6 -6 l6 6 l-6 6 z`;
    const cross = fate === 3 ? ` M${x - 6} ${y - 6} l12 12 m0 -12 l-12 12` : "";
    const bar = fate === 2 ? ` M${x - 9} ${y} h18` : "";
    return make("path", { class: `mark f${fate}`, d: (fate === 3 ? "" : diamond) + cross + bar });
  };

  const picture = (rows) => {
    const lanes = [...new Set(rows.map((n) => all.rule[n]))].sort((a, b) => a - b);
    const { x, width } = places(rows.flatMap((n) => [all.start[n], all.end[n]]));
    const height = TOP + lanes.length * LANE + 8;
    const svg = make("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img",
      "aria-label": "The same as the table below, as a picture" });
    lanes.forEach((rule, lane) => {
      const y = TOP + lane * LANE + 26;
      svg.append(make("line", { class: "lane", x1: 0, y1: y, x2: width, y2: y }));
      svg.append(make("text", { x: 0, y: y - 14 }, all.rules[rule]));
    });
    let free = 0;
    for (const n of rows) {
      const lane = lanes.indexOf(all.rule[n]), y = TOP + lane * LANE + 26;
      const [from, to] = [x.get(all.start[n]), x.get(all.end[n])];
      const group = make("g", { class: `arc c${all.rule[n] % COLOURS}` });
      group.append(make("title", {}, sentence(n)));
      group.append(make("path", { class: "span", d: `M${from} ${y - 4} V${y + 4} M${from} ${y} H${to}` }));
      group.append(mark(to, y, all.fate[n]));
      svg.append(group);
      if (to >= free && to + LABEL <= width + LABEL / 2) {
        svg.append(make("text", { class: "small", x: to - 6, y: 12 }, all.at[n]));
        svg.append(make("line", { class: "when", x1: to, y1: 16, x2: to, y2: height }));
        free = to + LABEL;
      }
    }
    const box = make("div", { class: "scroll", tabindex: 0, role: "region",
      "aria-label": "Timeline" });
    box.append(svg);
    return box;
  };

  const sentence = (n) => `${all.at[n]} ${all.rules[all.rule[n]]}: ${all.fates[all.fate[n]]}`
    + `, constituents: ${number(all.constituents[n])}, from ${all.from[n]}`;

  const table = (rows) => {
    const made = make("table", {}), head = make("tr", {}), body = make("tbody", {});
    for (const name of ["end", "rule", "what became of it", "constituents", "start"]) {
      head.append(make("th", { scope: "col" }, name));
    }
    for (const n of rows) {
      const row = make("tr", {});
      const cells = [all.at[n], all.rules[all.rule[n]], all.fates[all.fate[n]],
        number(all.constituents[n]), all.from[n]];
      cells.forEach((cell) => row.append(make("td", {}, cell)));
      body.append(row);
    }
    const top = make("thead", {}), box = make("div", { class: "wide", tabindex: 0 });
    top.append(head);
    made.append(top, body);
    box.append(made);
    return box;
  };

  const button = (text, act) => {
    const made = make("button", { type: "button" }, text);
    if (act) made.addEventListener("click", act);
    made.disabled = !act;
    return made;
  };

  const draw = (key, first) => {
    const begin = key ? all.ends[key - 1] : 0, count = all.ends[key] - begin;
    const last = Math.min(count, first + DRAWN_MAX);
    const rows = Array.from({ length: last - first }, (_, n) => begin + first + n);
    told.textContent = `${all.keys[key]}: detections ${number(first + 1)} to ${number(last)} of `
      + number(count);
    const go = make("p", {});
    if (count > DRAWN_MAX) {
      go.append(button("earlier", first ? () => draw(key, first - DRAWN_MAX) : null), " ",
        button("later", last < count ? () => draw(key, last) : null));
    }
    out.replaceChildren(go, picture(rows), table(rows));
  };

  const offer = () => {
    const wanted = find.value.toLowerCase(), chosen = list.value;
    const some = [];
    for (let n = 0; n < all.keys.length && some.length < KEYS_MAX; n += 1) {
      if (all.keys[n].toLowerCase().includes(wanted)) some.push(n);
    }
    list.replaceChildren(...some.map((n) => make("option", { value: n }, all.keys[n])));
    if (some.includes(Number(chosen)) && chosen !== "") list.value = chosen;
    else if (some.length) { list.value = some[0]; draw(some[0], 0); }
    else { told.textContent = "No key holds that text."; out.replaceChildren(); }
  };

  find.addEventListener("input", offer);
  list.addEventListener("change", () => draw(Number(list.value), 0));
  document.querySelectorAll("button[data-key]").forEach((one) => {
    one.hidden = false;
    one.addEventListener("click", () => {
      find.value = "";
      list.value = "";
      const key = Number(one.dataset.key);
      offer();
      if (![...list.options].some((o) => Number(o.value) === key)) {
        list.append(make("option", { value: key }, all.keys[key]));
      }
      list.value = key;
      draw(key, 0);
      told.focus();
    });
  });
  if (all.keys.length) { at("choose").hidden = false; offer(); }
})();
