/**
 * A view over one trace and nothing else: what it would have to ask a server for is not offered.
 */

/**
 * @import { Trace } from '../data/trace.js'
 * @import { View, ViewState } from '../plot/figure.js'
 * @import { Control } from '../ui/controls.js'
 */

/**
 * Does a trace hold all of this?
 * @param {{capture?: string[], analyses?: string[]}} ask
 * @param {Trace} trace
 */
export function holds({ capture = [], analyses = [] }, { tensors, analyses: found }) {
  return (
    capture.every((site) => site in tensors) &&
    analyses.every((name) => Object.keys(found[name] ?? {}).length > 0)
  );
}

/**
 * @param {View} view
 * @param {Trace} trace the only one there is
 * @returns {View} the same view, leading nowhere else
 */
export function offlineView(view, trace) {
  /** @param {ViewState} state */
  const isHeld = (state) =>
    Object.values(view.asks?.(trace, state) ?? {}).every((ask) => holds(ask, trace));
  /**
   * @param {Control} control
   * @param {ViewState} state
   */
  const offered = (control, state) => ({
    ...control,
    options: (control.options ?? []).filter(({ id }) =>
      isHeld({ ...state, [control.name ?? '']: id }),
    ),
  });
  return {
    ...view,
    controls: (of, state) =>
      (view.controls?.(of, state) ?? []).map((control) =>
        control.kind === 'choice' ? offered(control, state) : control,
      ),
    figure: (of, state) => ({ ...view.figure(of, state), actions: [] }),
  };
}
