"use strict";
// Search, filters and order of the table of queries, their pairs to read, the theme and the language. Without it the page
// shows all queries and nothing is lost but the pairs. Texts become text nodes, never markup.
{
  const STEP = 50;
  const find = (selector) => document.querySelector(selector);
  const make = (tag, style, ...content) => {
    const made = document.createElement(tag);
    made.className = style;
    made.append(...content);
    return made;
  };
  const plain = (text) => text.normalize("NFKC").toLowerCase();
  const { pairs, panel, words, classes } = JSON.parse(find("#data").textContent);
  const readings = new Map(Object.entries(pairs));
  const root = document.documentElement;
  const spoken = () => words[root.lang];

  const dark = matchMedia("(prefers-color-scheme: dark)");
  const said = () => {
    const chosen = root.dataset.theme;
    find("#theme").setAttribute("aria-pressed", String(chosen ? chosen === "dark" : dark.matches));
  };
  dark.addEventListener("change", said);

  const number = (cell) => Number(cell.textContent.replaceAll(",", ""));
  const queries = [...find("#queries table").tBodies[0].rows].map((row) => {
    const [id, text] = [row.cells[0].textContent, row.cells[1].textContent];
    return { row, own: readings.get(id) ?? [], text: plain(`${id} ${text}`), shown: null };
  });

  const badge = (verdict, labels) => {
    const [word, whose] = [spoken().verdicts[verdict], spoken().labels[labels]];
    const said = whose ? spoken().labelled.replace("{0}", word).replace("{1}", whose) : word;
    return make("span", `badge v-${verdict.replaceAll(" ", "-")}`, said);
  };
  const card = ([doc, verdict, passage, votes, published]) => {
    const badges = published ? [badge(verdict, "panel"), badge(published, "published")] : [badge(verdict)];
    const head = make("header", "", ...badges, make("span", "", `${spoken().passage} `, make("code", "", doc)));
    const given = votes.map((word, place) => make("li", "", panel[place], make("b", classes[word], spoken().grades[word])));
    const list = make("ul", "votes", ...given);
    list.setAttribute("aria-label", spoken().votes);
    return make("article", "pair", head, make("p", "passage", passage), list);
  };
  const openable = (query) => {
    const button = make("button", "open", ...query.row.cells[1].childNodes);
    button.type = "button";
    button.setAttribute("aria-expanded", "false");
    button.addEventListener("click", () => {
      if (query.shown) query.shown.remove();
      const cell = make("td", "opened", make("div", "cards", ...(query.shown ? [] : query.own.map(card))));
      cell.colSpan = query.row.cells.length;
      query.shown = query.shown ? null : make("tr", "", cell);
      if (query.shown) query.row.after(query.shown);
      button.setAttribute("aria-expanded", String(query.shown !== null));
    });
    query.row.cells[1].append(button);
  };
  queries.filter((query) => query.own.length).forEach(openable);

  // Every figure can be taken away: drawn as a file of its own, with the colours that it has here, or as the rows of its marks.
  const drawing = (chart) => {
    const copy = chart.cloneNode(true);
    const [own, copied] = [chart, copy].map((one) => [one, ...one.querySelectorAll("*")]);
    own.forEach((one, place) => {
      const { fill, stroke, strokeWidth, fontWeight } = getComputedStyle(one);
      copied[place].setAttribute("style", `fill:${fill};stroke:${stroke};stroke-width:${strokeWidth};font-weight:${fontWeight}`);
    });
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    copy.setAttribute("width", chart.clientWidth);
    copy.style.background = getComputedStyle(document.body).backgroundColor;
    return new XMLSerializer().serializeToString(copy);
  };
  const cell = (text) => `"${text.replaceAll('"', '""')}"`;
  const listing = (chart) => {
    const marks = [...chart.querySelectorAll("rect > title, circle > title, line > title")].map((title) => title.textContent);
    const rows = [...new Set(marks)].map((text) => /^(.*): (.*?)(?: \((.*)\))?$/su.exec(text)?.slice(1) ?? [text, ""]);
    const plain = rows.map((row) => row.map((text = "", place) => cell(place ? text.replace(/(\d),(?=\d{3})/g, "$1") : text)));
    return `\ufeffmark,value,share\r\n${plain.map((row) => [...row, '""'].slice(0, 3).join(",")).join("\r\n")}\r\n`;
  };
  const kept = (figure, kind, type, text) => {
    const button = make("button", "take", kind);
    const title = figure.querySelector("figcaption").textContent;
    button.type = "button";
    button.setAttribute("aria-label", `${title} ${kind}`);
    button.addEventListener("click", () => {
      const link = make("a", "");
      link.href = URL.createObjectURL(new Blob([text(figure.querySelector("svg"))], { type }));
      link.download = `${title.replace(/[^\p{L}\p{N}]+/gu, "-")}.${kind.toLowerCase()}`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    });
    return button;
  };
  const offer = () => {
    for (const figure of document.querySelectorAll("figure:has(> svg)")) {
      figure.append(make("p", "takes", kept(figure, "SVG", "image/svg+xml", drawing), kept(figure, "CSV", "text/csv", listing)));
    }
  };

  // What belongs to the elements of one language; the rows of queries belong to both.
  const start = () => {
    const [table, search, filter, readable, found, more] = ["#queries table", "#search", "#filter", "#readable", "#found", "#more"].map(find);
    const body = table.tBodies[0];
    let limit = STEP;
    let order = { column: -1, sign: 1 };

    const matches = (query, wanted) => {
      const value = filter.value;
      const counted = value && number(query.row.cells[Number(value.replace("!", ""))]) > 0;
      const passes = !value || (value.startsWith("!") ? !counted : counted);
      return passes && (!readable?.checked || query.own.length > 0) && wanted.every((word) => query.text.includes(word));
    };
    const compared = (one, other) => {
      const [a, b] = [one, other].map((query) => query.row.cells[order.column]);
      const apart = order.column < 2 ? a.textContent.localeCompare(b.textContent, root.lang, { numeric: true }) : number(a) - number(b);
      return order.sign * apart;
    };
    const show = () => {
      const wanted = plain(search.value).split(/\s+/).filter(Boolean);
      const left = queries.filter((query) => matches(query, wanted));
      if (order.column >= 0) left.sort(compared);
      const some = left.slice(0, limit);
      body.replaceChildren(...some.flatMap((query) => (query.shown ? [query.row, query.shown] : [query.row])));
      more.hidden = some.length === left.length;
      const counts = { found: left.length, all: queries.length, shown: some.length };
      found.textContent = spoken().matching.replace(/\{(\w+)\}/g, (_, name) => counts[name].toLocaleString("en"));
    };
    const again = () => {
      limit = STEP;
      show();
    };

    [...table.tHead.rows[0].cells].slice(0, -1).forEach((head, column) => {
      const button = make("button", "sort", ...head.childNodes);
      button.type = "button";
      button.addEventListener("click", () => {
        order = { column, sign: order.column === column ? -order.sign : column < 2 ? 1 : -1 };
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", order.sign > 0 ? "ascending" : "descending");
        again();
      });
      head.append(button);
    });

    search.addEventListener("input", again);
    filter.addEventListener("change", again);
    readable?.addEventListener("change", again);
    find("#controls").addEventListener("submit", (event) => event.preventDefault());
    more.addEventListener("click", () => {
      limit += STEP;
      show();
      if (more.hidden) search.focus();
    });
    find("#theme").addEventListener("click", () => {
      root.dataset.theme = find("#theme").getAttribute("aria-pressed") === "true" ? "light" : "dark";
      said();
    });
    offer();
    const menu = find("#menu");
    const opened = (open) => menu.setAttribute("aria-expanded", String(open));
    menu.addEventListener("click", () => opened(menu.getAttribute("aria-expanded") === "false"));
    find("#contents").addEventListener("click", (event) => event.target.closest("a") && opened(false));
    find("#language")?.addEventListener("click", turn);
    for (const each of ["#controls", "#theme", "#language", "#menu"]) if (find(each)) find(each).hidden = false;
    return (most) => {
      limit = most;
      show();
    };
  };

  const started = new Map();
  let list;
  const open = () => {
    if (!started.has(root.lang)) started.set(root.lang, start());
    list = started.get(root.lang);
    said();
    list(STEP);
  };
  const turn = () => {
    const [page, next] = [find("#page"), find("#other").content.firstElementChild];
    for (const query of queries) if (query.shown) query.row.querySelector(".open").click(); // its words are of one language
    page.replaceWith(next);
    find("#other").content.append(page);
    root.lang = next.lang;
    document.title = next.dataset.title;
    for (const each of ["#search", "#filter"]) next.querySelector(each).value = page.querySelector(each).value;
    if (find("#readable")) find("#readable").checked = page.querySelector("#readable").checked;
    open();
    find("#language").focus();
  };
  // Paper shows every query that matches, and all of the configuration.
  addEventListener("beforeprint", () => list(Infinity));
  addEventListener("afterprint", () => list(STEP));
  open();
}
