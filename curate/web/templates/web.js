// Keys of every page; and on the pages with answers, forms that are sent without leaving the page, so that what was typed
// stays until the server has kept it. Without script all works but the keys and the copying of an address.
"use strict";
(() => {
  const page = document.getElementById("page");
  const told = document.getElementById("told");
  const all = (selector) => [...document.querySelectorAll(selector)];
  const keysOn = () => localStorage.getItem("keys") !== "off";

  const ready = () => {
    for (const element of all("[data-script]")) element.hidden = element.matches("[data-copy]") && !navigator.clipboard;
    for (const box of all("[data-keys]")) box.checked = keysOn();
  };
  document.addEventListener("change", ({ target }) => {
    if (target.matches("[data-keys]")) localStorage.setItem("keys", target.checked ? "on" : "off");
  });
  document.addEventListener("click", async ({ target }) => {
    if (!target.matches("[data-copy]")) return;
    await navigator.clipboard.writeText(location.origin + location.pathname);
    told.textContent = target.dataset.copy;
    target.textContent = target.dataset.copy;
  });

  // J and K go to the next pair of a list or, in a list, to its next row.
  const step = (forward) => {
    const rows = all("tbody tr td.text:last-of-type a, .hits a");
    const beside = rows.indexOf(document.activeElement) + (forward ? 1 : -1);
    rows[Math.min(Math.max(beside, 0), rows.length - 1)]?.focus();
  };
  const press = (key) => {
    const target = document.querySelector(`[data-key="${CSS.escape(key)}"]`);
    if (target === null && (key === "J" || key === "K")) step(key === "J");
    if (target === null || target.disabled) return false;
    if (target.matches("textarea, input")) target.focus();
    else target.click();
    return true;
  };
  document.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    if (event.target.matches("textarea, input:not([type=checkbox])")) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const undo = (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey && event.key.toLowerCase() === "z";
    if (!keysOn() || event.repeat || ((event.ctrlKey || event.metaKey || event.altKey) && !undo)) return;
    if (press(undo ? "U" : event.key.normalize("NFKC").toUpperCase())) event.preventDefault();
  });
  ready();
  const link = document.querySelector("[data-hash]");
  if (link && location.hash.length > 20) {
    document.getElementById("token").value = location.hash.slice(1);
    for (const element of all("[data-typed]")) element.hidden = true;
    link.hidden = false;
  }
  if (page === null) return;

  const trouble = document.getElementById("trouble");
  let busy = false;
  let again = null;

  const edited = () => {
    const note = document.getElementById("note");
    return note !== null && note.value !== note.defaultValue;
  };

  function show(html, address) {
    const next = new DOMParser().parseFromString(html, "text/html");
    page.replaceChildren(...next.getElementById("page").childNodes);
    document.title = next.title;
    history.pushState(null, "", address);
    scrollTo(0, 0);
    ready();
    const said = page.querySelector(".told");
    told.textContent = [said ? said.textContent : "", document.title].join(" ");
    const text = page.querySelector("article, h1");
    if (text) {
      text.tabIndex = -1;
      text.focus({ preventScroll: true });
    }
  }

  function complain(text, form, button) {
    trouble.querySelector("p").textContent = text;
    trouble.hidden = false;
    again = () => send(form, button);
  }

  async function send(form, button) {
    if (busy) return;
    busy = true;
    page.setAttribute("aria-busy", "true");
    const body = new URLSearchParams(new FormData(form));
    if (button) body.set(button.name, button.value);
    try {
      const reply = await fetch(form.action, { method: "POST", body, signal: AbortSignal.timeout?.(15000) });
      const html = await reply.text();
      if (reply.ok || reply.status === 409) {
        trouble.hidden = true;
        show(html, reply.url);
      } else {
        complain(trouble.dataset.refused, form, button);
      }
    } catch {
      complain(trouble.dataset.unreachable, form, button);
    } finally {
      busy = false;
      page.removeAttribute("aria-busy");
    }
  }

  document.addEventListener("submit", (event) => {
    if (event.target.matches("[data-plain]")) return;
    event.preventDefault();
    send(event.target, event.submitter);
  });
  trouble.querySelector("button").addEventListener("click", () => again && again());
  addEventListener("popstate", () => location.reload());
  addEventListener("beforeunload", (event) => {
    if (edited()) event.preventDefault();
  });
})();
