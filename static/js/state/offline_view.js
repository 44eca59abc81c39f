/**
 * A view over what a saved page holds: what it would have to ask a server for is not offered.
 */

/**
 * @import { Ask, Trace } from '../data/trace.js'
 * @import { View, ViewState } from '../plot/figure.js'
 * @import { Control } from '../ui/controls.js'
 */

/** Stands for a text that the reader would type. */
const ANY_TEXT = '…';

/**
 * @param {View} view
 * @param {{holds: (ask: Ask) => boolean, leadsTo: (view: string) => boolean}} page `leadsTo`: is there such a view?
 * @returns {View} the same view, leading nowhere else
 */
export function offlineView(view, { holds, leadsTo }) {
  const texts = Object.entries(view.fields ?? {}).filter(([, { standard }]) => standard === '');
  /**
   * @param {Trace} trace
   * @param {ViewState} state
   */
  const isHeld = (trace, state) => {
    const typed = Object.fromEntries(texts.map(([name]) => [name, state[name] || ANY_TEXT]));
    return Object.values(view.asks?.(trace, { ...state, ...typed }) ?? {}).every(holds);
  };
  /**
   * The control with the options that are held; null if it changes nothing.
   * @param {Trace} trace
   * @param {ViewState} state
   * @param {Control} control
   * @returns {Control|null}
   */
  const offered = (trace, state, control) => {
    const { kind, name = '', value, options = [], most } = control;
    /** @param {any} wanted */
    const isHeldWith = (wanted) => isHeld(trace, { ...state, [name]: wanted });
    if (kind === 'choice')
      return { ...control, options: options.filter(({ id }) => id === value || isHeldWith(id)) };
    if (kind === 'flag') return isHeldWith(!value) ? control : null;
    if (kind === 'number' || kind === 'integer') return isHeldWith(most) ? control : null;
    return kind === 'text' ? null : control;
  };
  return {
    ...view,
    controls: (trace, state) =>
      (view.controls?.(trace, state) ?? []).flatMap(
        (control) => offered(trace, state, control) ?? [],
      ),
    figure: (trace, state) => {
      const figure = view.figure(trace, state);
      const actions = (figure.actions ?? []).filter(({ patch }) => leadsTo(patch.view ?? view.id));
      return { ...figure, actions };
    },
  };
}
