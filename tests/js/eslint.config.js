/** ESLint finds faults here; layout is Prettier's. */

import js from '@eslint/js';
import { defineConfig } from 'eslint/config';
import globals from 'globals';

/** Lines of code of a function, without those of functions in it that have several. */
const MOST_LINES = 60;
/**
 * A closure may be longer than `MOST_LINES` for one reason: it holds several functions, each of which
 * is read, and measured, for itself. `max-lines-per-function` bounds the whole.
 */
const ownLines = {
  create({ report, sourceCode }) {
    const isCode = sourceCode.lines.map((line) => line.trim() !== '');
    for (const { loc } of sourceCode.getAllComments())
      for (let line = loc.start.line; line <= loc.end.line; line++)
        isCode[line - 1] &&= !sourceCode.lines[line - 1].trim().match(/^(\/\/|\/?\*)/);
    const around = [];
    const end = (node) => {
      const { start, end: last } = node.loc;
      const lines = isCode.slice(start.line - 1, last.line).filter(Boolean).length;
      const own = lines - around.pop();
      if (own > MOST_LINES)
        report({ node, message: `${own} lines of its own; at most ${MOST_LINES}` });
      if (around.length > 0 && lines > 1) around.push(around.pop() + lines);
    };
    return { ':function': () => around.push(0), ':function:exit': end };
  },
};

export default defineConfig(
  js.configs.recommended,
  {
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    rules: {
      'array-callback-return': 'error',
      'consistent-return': 'error',
      'default-case-last': 'error',
      eqeqeq: 'error',
      'no-alert': 'error',
      'no-caller': 'error',
      'no-constructor-return': 'error',
      'no-eval': 'error',
      'no-implicit-coercion': 'error',
      'no-implicit-globals': 'error',
      'no-implied-eval': 'error',
      'no-misleading-character-class': ['error', { allowEscape: true }],
      'no-new-wrappers': 'error',
      'no-param-reassign': 'error',
      'no-promise-executor-return': 'error',
      'no-return-assign': 'error',
      'no-self-compare': 'error',
      'no-sequences': 'error',
      'no-template-curly-in-string': 'error',
      'no-throw-literal': 'error',
      'no-unmodified-loop-condition': 'error',
      'no-unreachable-loop': ['error', { ignore: ['ForOfStatement'] }],
      'no-unused-expressions': 'error',
      'no-unused-vars': ['error', { ignoreRestSiblings: true }],
      'no-use-before-define': ['error', { functions: false, classes: false, variables: false }],
      'no-useless-computed-key': 'error',
      'no-useless-rename': 'error',
      'no-useless-return': 'error',
      'no-var': 'error',
      'object-shorthand': 'error',
      'prefer-const': 'error',
      'prefer-promise-reject-errors': 'error',
      'preserve-caught-error': 'error',
      radix: 'error',
    },
  },
  {
    files: ['static/js/**'],
    languageOptions: { globals: globals.browser },
    plugins: { headlight: { rules: { 'own-lines': ownLines } } },
    rules: { 'max-lines-per-function': ['error', { max: 120 }], 'headlight/own-lines': 'error' },
  },
  { files: ['tests/js/**'], languageOptions: { globals: globals.node } },
  {
    files: [
      'tests/js/browser.js',
      'tests/js/main.test.js',
      'tests/js/plot/renderer.test.js',
      'tests/js/ui/**',
    ],
    languageOptions: { globals: globals.browser },
  },
);
