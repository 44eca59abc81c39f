/**
 * What stands out of a drawing while something is pointed at, drawn over it: Plotly would take too
 * long to draw anew under a moving pointer.
 */

const SVG = 'http://www.w3.org/2000/svg';

export function createHighlight() {
  const svg = node('svg', { class: 'plot-highlight', 'aria-hidden': 'true' });

  return {
    element: svg,

    /**
     * @param {import('../plot/grid.js').Highlight|null|undefined} highlight
     * @param {{left: number, top: number, width: number, height: number, axes: {x: [number, number], y: [number, number]}}} area of the plot, with the ends of its axes
     */
    show(highlight, area) {
      svg.classList.toggle('is-shown', Boolean(highlight));
      if (!highlight) {
        svg.replaceChildren();
        return;
      }
      const {
        left,
        top,
        width,
        height,
        axes: { x, y },
      } = area;
      svg.style.transform = `translate(${left}px, ${top}px)`;
      for (const [name, value] of Object.entries({ width, height })) svg.setAttribute(name, value);
      svg.setAttribute('viewBox', `0 0 ${width} ${height}`);
      const across = (value) => ((value - x[0]) / (x[1] - x[0])) * width;
      const down = (value) => ((value - y[0]) / (y[1] - y[0])) * height;
      svg.replaceChildren(...partsOf(highlight, across, down));
    },
  };
}

function partsOf({ veil, lines, numbers }, across, down) {
  return [
    node('rect', {
      class: 'veil',
      x: across(veil.x0),
      y: down(veil.y0),
      width: across(veil.x1) - across(veil.x0),
      height: down(veil.y1) - down(veil.y0),
    }),
    ...lines.map((line) =>
      node('line', {
        x1: across(line.x0),
        x2: across(line.x1),
        y1: down(line.y0),
        y2: down(line.y1),
        stroke: line.colour,
        'stroke-width': line.width,
      }),
    ),
    ...numbers.map(({ x, y, text, isStrong }) => {
      const number = node('text', { x: across(x), y: down(y), class: isStrong ? 'is-strong' : '' });
      number.textContent = text;
      return number;
    }),
  ];
}

function node(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}
