"use strict";
// Theme, language, figures as files, and open sections on paper. Without it the page loses nothing else.
{
  const find = (selector) => document.querySelector(selector);
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
  const press = () => find("#theme").setAttribute("aria-pressed", String(isDark()));
  dark.addEventListener("change", press);

  // Every figure can be taken away: as a file of its own, with the colours that it has here, or as the rows of its marks.
  const drawing = (chart) => {
    const copy = chart.cloneNode(true);
    const [own, copied] = [chart, copy].map((svg) => [svg, ...svg.querySelectorAll("*")]);
    own.forEach((mark, index) => {
      const { fill, stroke, strokeWidth, fontWeight } = getComputedStyle(mark);
      copied[index].setAttribute("style", `fill:${fill};stroke:${stroke};stroke-width:${strokeWidth};font-weight:${fontWeight}`);
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
    const plain = rows.map((row) => row.map((text = "", column) => cell(column ? text.replace(/(\d),(?=\d{3})/g, "$1") : text)));
    return `\ufeffmark,value,share\r\n${plain.map((row) => [...row, '""'].slice(0, 3).join(",")).join("\r\n")}\r\n`;
  };
  const taking = (figure, kind, type, text) => {
    const button = document.createElement("button");
    const title = figure.querySelector("figcaption").textContent;
    Object.assign(button, { className: "take", textContent: kind, type: "button", ariaLabel: `${title} ${kind}` });
    button.addEventListener("click", () => {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([text(figure.querySelector("svg"))], { type }));
      link.download = `${title.replace(/[^\p{L}\p{N}]+/gu, "-")}.${kind.toLowerCase()}`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    });
    return button;
  };

  // What belongs to the elements of one language, once each.
  const start = () => {
    for (const figure of document.querySelectorAll("figure:has(> svg):not(:has(.takes))")) {
      const takes = document.createElement("p");
      takes.className = "takes";
      takes.append(taking(figure, "SVG", "image/svg+xml", drawing), taking(figure, "CSV", "text/csv", listing));
      figure.append(takes);
    }
    find("#theme").hidden = false;
    find("#theme").onclick = () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      press();
    };
    if (find("#language")) Object.assign(find("#language"), { hidden: false, onclick: turn });
    press();
  };
  const turn = () => {
    const [page, next] = [find("#page"), find("#other").content.firstElementChild];
    const open = [...page.querySelectorAll("details[open]")].map((section) => section.id);
    page.replaceWith(next);
    find("#other").content.append(page);
    root.lang = next.lang;
    document.title = next.dataset.title;
    for (const section of next.querySelectorAll("details")) section.open = open.includes(section.id);
    start();
    find("#language").focus();
  };
  const sections = () => document.querySelectorAll("details");
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...sections()].filter((section) => !section.open);
    for (const section of closed) section.open = true;
  });
  addEventListener("afterprint", () => {
    for (const section of closed) section.open = false;
  });
  start();
}
