/** The meaning of a pass that omits the division of scores by √d, and the way to the experiment on it. */

import { atRoot } from '../api/root.js';

/** The sentence on a trained model that is read without the division. */
export const UNSCALED =
  'Without the division by √d the scores are √d times as large, so rows are sharper. A trained model has learned its temperature with the division, and may predict better or worse with another. The division is there for training: without it the softmax saturates and gradients vanish.';

/** A button that opens the experiment in which the gradients vanish. */
export const TO_EXPERIMENT = {
  label: 'See the gradients: the experiment “Why √d”',
  href: atRoot('/experiments#experiment=scaling'),
};
