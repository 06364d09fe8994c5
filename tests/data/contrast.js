// The contrast of every text and control with what is painted behind it, as rendered; null where something hides it.
(() => {
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true}), known = new Map();
  const rgba = (color) => {
    if (!known.has(color)) {
      canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
      known.set(color, [r, g, b, a / 255]);
    }
    return known.get(color);
  };
  const over = (under, [r, g, b, a]) => under.map((value, place) => value + ([r, g, b][place] - value) * a);
  const light = (color) => {
    const [r, g, b] = color.map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const found = [], svg = (element) => element instanceof SVGElement && element.localName !== "svg";
  const measure = (owner, text, box) => {
    const stack = document.elementsFromPoint(box.left + box.width / 2, box.top + box.height / 2);
    const place = stack.indexOf(owner);
    if (place < 0) return found.push({text, ratio: null});
    let under = [255, 255, 255];
    for (const element of stack.slice(place).reverse()) {
      const style = getComputedStyle(element);
      if (svg(element) && element === owner) continue;
      under = over(under, rgba(svg(element) ? style.fill : style.backgroundColor));
    }
    const style = getComputedStyle(owner), letters = over(under, rgba(svg(owner) ? style.fill : style.color));
    const [low, high] = [light(under), light(letters)].sort((a, b) => a - b);
    found.push({text, ratio: (high + 0.05) / (low + 0.05)});
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), range = document.createRange();
  while (walker.nextNode()) {
    range.selectNodeContents(walker.currentNode);
    const box = range.getClientRects()[0];
    if (walker.currentNode.data.trim() && box && box.width > 0) measure(walker.currentNode.parentElement, walker.currentNode.data, box);
  }
  for (const control of document.querySelectorAll("input[type=search], select")) measure(control, control.id, control.getBoundingClientRect());
  return found;
})()
