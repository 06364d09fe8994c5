// Sends the forms of the page without leaving it, so that what was typed stays here until the server has kept it.
"use strict";
(() => {
  const page = document.getElementById("page");
  const trouble = document.getElementById("trouble");
  const told = document.getElementById("told");
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
      if (reply.ok) {
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

  function press(key) {
    const target = page.querySelector(`[data-key="${CSS.escape(key)}"]`);
    if (target === null || target.disabled) return false;
    if (target.matches("textarea")) target.focus();
    else target.click();
    return true;
  }

  document.addEventListener("submit", (event) => {
    event.preventDefault();
    send(event.target, event.submitter);
  });

  document.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    if (event.target.matches("textarea, input")) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const undo = (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey && event.key.toLowerCase() === "z";
    if (event.repeat || ((event.ctrlKey || event.metaKey || event.altKey) && !undo)) return;
    if (press(undo ? "U" : event.key.normalize("NFKC").toUpperCase())) event.preventDefault();
  });

  trouble.querySelector("button").addEventListener("click", () => again && again());
  addEventListener("popstate", () => location.reload());
  addEventListener("beforeunload", (event) => {
    if (edited()) event.preventDefault();
  });
})();
