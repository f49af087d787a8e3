// Basic checks of accessibility. The value is a list of findings.
(() => {
  const found = [];
  const say = (node, what) => {
    const text = (node.textContent || '').trim().slice(0, 40);
    const line = `${what}: <${node.tagName.toLowerCase()}${node.className?.baseVal === undefined && node.className ? ' class=' + node.className : ''}> ${text}`;
    if (!found.includes(line) && found.length < 20) found.push(line);
  };
  const visible = (node) => node.checkVisibility({visibilityProperty: true, contentVisibilityAuto: true}) && node.getClientRects().length > 0;
  const idsOf = (node, name) => (node.getAttribute(name) || '').split(/\s+/).filter(Boolean).map((id) => document.getElementById(id));
  const nameOf = (node) => {
    const by = idsOf(node, 'aria-labelledby').map((n) => n?.textContent || '').join(' ').trim();
    if (by) return by;
    if (node.getAttribute('aria-label')?.trim()) return node.getAttribute('aria-label').trim();
    const labels = [...(node.labels || [])].map((l) => l.textContent.trim()).join(' ').trim();
    if (labels) return labels;
    return ['INPUT', 'SELECT', 'TEXTAREA'].includes(node.tagName) ? '' : node.textContent.trim();
  };

  // Names of controls and pictures.
  for (const node of document.querySelectorAll('a, button, input, select, textarea, summary, [tabindex="0"], [role=img], svg, dialog')) {
    if (visible(node) && !nameOf(node)) say(node, 'has no accessible name');
  }
  for (const node of document.querySelectorAll('img')) if (!node.hasAttribute('alt')) say(node, 'has no alt');
  for (const node of document.querySelectorAll('[id]')) {
    if (document.querySelectorAll('#' + CSS.escape(node.id)).length > 1) say(node, 'shares its id');
  }
  for (const name of ['aria-labelledby', 'aria-describedby', 'aria-controls']) {
    for (const node of document.querySelectorAll(`[${name}]`)) if (idsOf(node, name).some((n) => !n)) say(node, `${name} names nothing`);
  }

  // Structure.
  if (!document.documentElement.lang) found.push('the document has no language');
  if (!document.title) found.push('the document has no title');
  if (document.querySelectorAll('main').length !== 1) found.push('there is not one main');
  if ([...document.querySelectorAll('h1')].filter(visible).length !== 1) found.push('there is not one h1');
  let level = 0;
  for (const node of [...document.querySelectorAll('h1, h2, h3, h4')].filter(visible)) {
    const now = Number(node.tagName[1]);
    if (now > level + 1) say(node, `follows a heading of level ${level}`);
    level = now;
  }
  for (const node of document.querySelectorAll('th')) if (!node.scope) say(node, 'has no scope');
  for (const node of document.querySelectorAll('table')) if (!node.caption) say(node, 'has no caption');
  for (const node of document.querySelectorAll('ul, ol')) {
    for (const child of node.children) if (child.tagName !== 'LI') say(child, 'is no item of its list');
  }
  for (const node of document.querySelectorAll('[tabindex]')) if (node.tabIndex > 0) say(node, 'has a positive tabindex');
  if (document.documentElement.scrollWidth > innerWidth) found.push('the page scrolls sideways');

  // Contrast of texts.
  const canvas = new OffscreenCanvas(1, 1).getContext('2d', {willReadFrequently: true});
  const rgba = (color) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
  const ground = (node) => {
    const layers = [];
    for (let n = node; n; n = n.parentElement) layers.push(rgba(getComputedStyle(n).backgroundColor));
    return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255, 1]);
  };
  const light = (c) => {
    const [r, g, b] = c.map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => {
    const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
    return (x + 0.05) / (y + 0.05);
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !visible(node) || node.closest('.aloud, [disabled], option, .skip:not(:focus)')) continue;
    const style = getComputedStyle(node);
    const below = ground(node);
    const color = over(rgba(node instanceof SVGElement ? style.fill : style.color), below);
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && Number(style.fontWeight) >= 700);
    const ratio = contrast(color, below);
    if (ratio < (large ? 3 : 4.5)) say(node, `contrast ${ratio.toFixed(2)}`);
  }

  // Rings and borders that carry meaning.
  for (const node of document.querySelectorAll('.pod[data-state=unready], .pod[data-state=failing], .node[data-phase], input, select, textarea')) {
    if (!visible(node) || node.type === 'checkbox' || node.type === 'file') continue;
    const below = ground(node.parentElement);
    const ratio = contrast(over(rgba(getComputedStyle(node).borderTopColor), below), below);
    if (ratio < 3) say(node, `contrast of the border ${ratio.toFixed(2)}`);
  }
  return found;
})()
