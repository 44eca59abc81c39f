/**
 * A call of the API as a script for Python, which needs nothing but Python.
 */

const WIDTH = 88;
const CONSTANTS = new Map([[true, 'True'], [false, 'False'], [null, 'None']]);

/**
 * @param {string} origin `http://127.0.0.1:8000`
 * @param {import('./call.js').Call} call
 * @param {string} quantity what the drawing shows
 * @returns {string} whatever a text holds stays within its quotes
 */
export function pythonOf(origin, { path, body }, quantity) {
  const name = NAMES.get(path.split('?')[0]) ?? 'answer';
  const url = literal(origin + path);
  const request = body
    ? [`body = ${literal(body)}`, 'request = urllib.request.Request(', `    ${url},`, '    json.dumps(body).encode(),', '    {"Content-Type": "application/json"},', ')']
    : [`request = ${url}`];
  return [
    `# ${quantity.replace(/\s+/g, ' ')}`,
    'import json',
    'import urllib.request',
    '',
    ...request,
    'with urllib.request.urlopen(request) as reply:',
    ...(name === 'event' ? READING_EVENTS : [`    ${name} = json.load(reply)`, '', ...(name === 'trace' ? READING : ['print(json.dumps(answer, indent=1))'])]),
    '',
  ].join('\n');
}

/** What comes is called; one is a stream of events. */
const NAMES = new Map([['/api/v1/trace', 'trace'], ['/api/v1/generate', 'event']]);

/** Server-Sent Events: the data of each is one line of JSON. */
const READING_EVENTS = [
  '    for line in reply:',
  '        if line.startswith(b"data: "):',
  '            event = json.loads(line.removeprefix(b"data: "))',
  '            if "alternatives" in event:',
  '                print(event["text"], event["probability"])  # and "attention", "experts"',
];

/** Every array as nested lists, by its name. */
const READING = [
  'arrays = dict(trace["tensors"])',
  'for analysis, parts in trace["analyses"].items():',
  '    for part, found in parts.items():',
  '        arrays[f"{analysis}.{part}"] = found',
  'for name, array in arrays.items():',
  '    if isinstance(array, dict) and "data" in array:',
  '        print(name, array["axes"], array["shape"])  # array["data"] holds the numbers',
];

/**
 * A plain value as Python writes it. What JSON escapes in a text Python reads in the same way.
 * @param {any} value
 * @param {string} [indent] of the line it stands in
 * @returns {string}
 */
function literal(value, indent = '') {
  if (CONSTANTS.has(value)) return CONSTANTS.get(value);
  if (typeof value !== 'object') return JSON.stringify(value);
  const [open, close] = Array.isArray(value) ? '[]' : '{}';
  const deeper = `${indent}    `;
  const parts = (inner) => (Array.isArray(value) ? value.map((each) => literal(each, inner)) : Object.entries(value).map(([key, each]) => `${JSON.stringify(key)}: ${literal(each, inner)}`));
  const line = open + parts('').join(', ') + close;
  if (indent.length + line.length <= WIDTH && !line.includes('\n')) return line;
  return `${open}\n${parts(deeper).map((part) => `${deeper}${part},\n`).join('')}${indent}${close}`;
}
