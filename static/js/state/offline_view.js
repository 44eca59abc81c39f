/**
 * A view over one trace and nothing else: what it would have to ask a server for is not offered.
 */

/**
 * Does a trace hold all of this?
 * @param {{capture?: string[], analyses?: string[]}} ask
 * @param {import('../data/trace.js').Trace} trace
 */
export function holds({ capture = [], analyses = [] }, { tensors, analyses: found }) {
  return (
    capture.every((site) => site in tensors) &&
    analyses.every((name) => Object.keys(found[name] ?? {}).length > 0)
  );
}

/**
 * @param {import('../plot/figure.js').View} view
 * @param {import('../data/trace.js').Trace} trace the only one there is
 * @returns {import('../plot/figure.js').View} the same view, leading nowhere else
 */
export function offlineView(view, trace) {
  const isHeld = (state) =>
    Object.values(view.asks?.(trace, state) ?? {}).every((ask) => holds(ask, trace));
  const offered = (control, state) => ({
    ...control,
    options: control.options.filter(({ id }) => isHeld({ ...state, [control.name]: id })),
  });
  return {
    ...view,
    controls: (of, state) =>
      view
        .controls(of, state)
        .map((control) => (control.kind === 'choice' ? offered(control, state) : control)),
    figure: (of, state) => ({ ...view.figure(of, state), actions: [] }),
  };
}
