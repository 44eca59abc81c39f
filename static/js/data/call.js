/**
 * The call of the API that gives the numbers of a drawing.
 */

/**
 * @typedef {Object} Call
 * @property {string} path `/api/v1/trace`
 * @property {Object|null} [body] of a POST; none: the call is a GET
 */

const TRACE = '/api/v1/trace';

/**
 * @param {import('./trace.js').Trace} trace the page's
 * @param {import('../plot/grid.js').Grid} grid of a drawing; what it asks for goes before what the page asked for
 * @returns {Call}
 */
export function callOf({ asked }, { request = {}, call }) {
  if (call) return { body: null, ...call };
  const body = { ...asked, ...request, dtype: null }; // numbers as they are, not in 16 bits
  return {
    path: TRACE,
    body: Object.fromEntries(
      Object.entries(body).filter(([, value]) => value !== null && value !== undefined),
    ),
  };
}

/**
 * @param {import('./trace.js').Trace} trace the page's
 * @param {import('../plot/grid.js').Grid} grid of a drawing
 * @returns {Call[]} the one, and after it that of the pass it is compared with
 */
export function callsOf(trace, grid) {
  return [callOf(trace, grid), ...(grid.before ? [callOf(trace, { request: grid.before })] : [])];
}

/**
 * Where the numbers of a drawing come from.
 * @param {import('./trace.js').Trace} trace
 * @param {import('../plot/grid.js').Grid} grid
 * @param {Object[]} cards of all models: a drawing may be of another than the page's
 * @returns {{model?: string, revision?: string, text: string, target?: string, edits?: Object[]}}
 */
export function originOf(trace, grid, cards = []) {
  const call = callOf(trace, grid);
  if (!call.body) return { ...modelIn(call.path, cards), text: trace.text };
  const { body } = call;
  const model = body.model ?? trace.model;
  const text = body.text ?? trace.text;
  const isOwn = model === trace.model && text === trace.text;
  const target = body.target ?? (isOwn && trace.target_tokens ? trace.target : undefined);
  return {
    model,
    revision:
      model === trace.model
        ? trace.revision
        : (cards.find(({ id }) => id === model)?.revision ?? ''),
    text,
    ...(target !== undefined && { target }),
    ...(body.edits?.length > 0 && { edits: body.edits }),
  };
}

/** An encoding of positions comes without a text, and of a model only where it is one's own. */
function modelIn(path, cards) {
  const model = new URLSearchParams(path.split('?')[1]).get('model');
  return model ? { model, revision: cards.find(({ id }) => id === model)?.revision ?? '' } : {};
}
