/**
 * The switches of how a text is searched for: where it ends, what is said against repeats, and
 * whether tokens are sampled one by one, or the best of several texts is written. They are folded
 * away.
 */

import { control, choice } from '../../ui/controls.js';
import { raterOf } from '../../ui/generation.js';
import { modelName } from '../../api/calls.js';

export const SEARCH_TERMS = {
  seed: 'the start of the random numbers: the same seed gives the same text',
  'repetition penalty':
    'above 1 it divides the positive logits of the tokens in the text so far, and multiplies their negative ones',
  'beam search':
    'keeps the likeliest texts of each length, as many as there are beams, and writes the best one; nothing is sampled',
  'best of': 'samples several texts and writes the one that a reward model rates highest',
};

/** @param {Trace} trace @param {ViewState} state @returns {Control[]} */
export function searchControls(trace, state) {
  const { generate_penalty: penalty, generate_stop: stop, generate_search: search } = state;
  const rater = raterOf(trace, state);
  const ways = [
    { id: 'sampling', title: 'sampling', help: 'Sample token by token' },
    { id: 'beams', title: 'beam search', help: 'The likeliest of the texts that are kept' },
    ...(rater
      ? [
          {
            id: 'best',
            title: 'best of several',
            help: `The text that ${modelName(rater)} rates highest`,
          },
        ]
      : []),
  ];
  const isSearching = search !== 'sampling' && ways.some(({ id }) => id === search);
  /** @type {Control[]} */
  const controls = [
    choice('generate_search', 'Tokens by', isSearching ? search : 'sampling', ways, {
      isSet: isSearching,
    }),
    ...(isSearching
      ? [
          control(
            'integer',
            'generate_width',
            search === 'beams' ? 'Beams' : 'Texts',
            Math.floor(state.generate_width),
          ),
        ]
      : []),
    control('text', 'generate_stop', 'Stop at', stop ?? '', {
      placeholder: 'a full stop, say',
      isSet: Boolean(stop),
    }),
    control('number', 'generate_penalty', 'Repetition penalty', penalty, {
      step: 0.05,
      shown: penalty === 1 ? 'none' : penalty.toFixed(2),
      isSet: penalty !== 1,
    }),
  ];
  return controls.map((control) => ({ ...control, isMore: true, fold: 'Search' }));
}
