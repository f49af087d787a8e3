// A chart of counts over time, and of the bound that one of them must not cross.

import {duration, fill, svg} from './dom.js';

const width = 360;
const height = 132;
const left = 34;
const bottom = 18;
const top = 8;

// chart returns a drawing of lines {kind, points: [[seconds, count]]}, with a bound. Steps draws counts as steps.
export function chart({lines, bound, total, label}) {
  const node = svg('svg', {class: 'chart', viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': label});
  draw(node, {lines, bound, total, label});
  return node;
}

export function draw(node, {lines, bound, total, label}) {
  const last = Math.max(1, ...lines.map((l) => l.points.length ? l.points.at(-1)[0] : 0));
  const first = Math.min(last - 1, ...lines.map((l) => l.points.length ? l.points[0][0] : 0));
  const most = Math.max(total, 1, ...lines.flatMap((l) => l.points.map((p) => p[1])));
  const x = (t) => left + (t - first) / (last - first) * (width - left - 4);
  const y = (n) => top + (1 - n / most) * (height - top - bottom);
  const shapes = [];
  for (const n of [0, most / 2, most]) {
    shapes.push(svg('line', {class: 'rule', x1: left, x2: width - 4, y1: y(n), y2: y(n)}));
    if (Number.isInteger(n)) shapes.push(svg('text', {x: left - 6, y: y(n) + 4, 'text-anchor': 'end'}, String(n)));
  }
  if (bound > 0) shapes.push(svg('line', {class: 'bound', x1: left, x2: width - 4, y1: y(bound), y2: y(bound)}));
  for (const l of lines) {
    if (!l.points.length) continue;
    const path = l.points.map(([t, n], i) => (i ? `H${x(t).toFixed(1)}V` : `M${x(t).toFixed(1)} `) + y(n).toFixed(1)).join('');
    if (l.kind === 'updated') {
      const from = x(l.points[0][0]);
      shapes.push(svg('path', {class: 'area', d: `${path}V${y(0)}H${from.toFixed(1)}Z`}));
    }
    shapes.push(svg('path', {class: 'line', 'data-kind': l.kind, d: path}));
  }
  shapes.push(svg('text', {x: left, y: height - 4}, duration(first)));
  shapes.push(svg('text', {x: width - 4, y: height - 4, 'text-anchor': 'end'}, duration(last)));
  fill(node, shapes);
  node.setAttribute('aria-label', label);
}

// thin drops every other point of a history that has grown long.
export function thin(points, most) {
  return points.length <= most ? points : points.filter((_, i) => i % 2 === 0 || i === points.length - 1);
}
