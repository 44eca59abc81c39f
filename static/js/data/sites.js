/**
 * Site names: `decoder.layers.3.self_attention.weights`. One spelling, as the API has it.
 */

/**
 * Does a glob (`*` stands for anything) name this site?
 * @param {string} glob
 * @param {string} site
 */
export function matches(glob, site) {
  const pattern = glob
    .split('*')
    .map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'))
    .join('.*');
  return new RegExp(`^${pattern}$`).test(site);
}

/**
 * What to ask the API for, so that every view has what it needs and nothing else travels.
 * Globs that name no site of the model are left out: a dense model has no router.
 * @param {{needs: string[], also?: (card: Object) => string[]}[]} views
 * @param {{sites: {name: string}[]}} card
 * @returns {{capture: string[], analyses: string[]}}
 */
export function request(views, card) {
  const needs = [
    ...new Set(views.flatMap((view) => [...view.needs, ...(view.also?.(card) ?? [])])),
  ];
  const analyses = needs
    .filter((need) => need.startsWith('analyses.'))
    .map((need) => need.split('.')[1]);
  const capture = needs.filter((need) => card.sites.some(({ name }) => matches(need, name)));
  return { capture, analyses: [...new Set(analyses)] };
}

/**
 * The layers of a trace that hold a site, in order.
 * @param {Record<string, unknown>} tensors
 * @param {string} ending `self_attention.weights`
 * @param {string} [stack] `encoder` or `decoder`; of both where it is left out
 * @returns {{layer: number, site: string}[]}
 */
export function layersWith(tensors, ending, stack = '') {
  return Object.keys(tensors)
    .filter((site) => site.endsWith(`.${ending}`) && site.startsWith(stack))
    .map((site) => ({ layer: Number(site.match(/\.layers\.(\d+)\./)?.[1]), site }))
    .filter(({ layer }) => Number.isInteger(layer))
    .sort((a, b) => a.layer - b.layer);
}

/**
 * Is the future hidden from this attention? A decoder's self-attention sees only what came before.
 * @param {string} site
 */
export function isCausal(site) {
  return site.startsWith('decoder.') && site.includes('.self_attention.');
}
