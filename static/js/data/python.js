/**
 * A call of the API as a script for Python, which needs nothing but Python.
 */

const WIDTH = 88;
const CONSTANTS = new Map([
  [true, 'True'],
  [false, 'False'],
  [null, 'None'],
]);

/**
 * @param {string} origin `http://127.0.0.1:8000`
 * @param {import('./call.js').Call[]} calls the second is of the pass that the first is compared with
 * @param {{quantity: string, made?: import('./steps.js').Made}} grid what the drawing shows
 * @returns {string} whatever a text holds stays within its quotes
 */
export function pythonOf(origin, calls, { quantity, made }) {
  const name = NAMES.get(calls[0].path.split('?')[0]) ?? 'answer';
  const lead = made?.steps ? '' : 'The arrays behind: ';
  return [
    `# ${lead}${quantity.replace(/\s+/g, ' ')}`,
    ...(made ? [`# ${made.said}`] : []),
    'import json',
    'import urllib.request',
    '',
    ...(name === 'event'
      ? [...asking(origin, calls[0]), ...READING_EVENTS]
      : calls.flatMap((call, at) => [
          ...asking(origin, call),
          `    ${at === 0 ? name : 'before'} = json.load(reply)`,
          '',
        ])),
    ...({
      trace: [...SHOW, ...(made?.steps ? [...made.steps, 'show(shown)'] : READING)],
      answer: ['print(json.dumps(answer, indent=1))'],
    }[name] ?? []),
    '',
  ].join('\n');
}

function asking(origin, { path, body }) {
  const url = literal(origin + path);
  return [
    ...(body
      ? [
          `body = ${literal(body)}`,
          'request = urllib.request.Request(',
          `    ${url},`,
          '    json.dumps(body).encode(),',
          '    {"Content-Type": "application/json"},',
          ')',
        ]
      : [`request = ${url}`]),
    'with urllib.request.urlopen(request) as reply:',
  ];
}

/** What comes is called; one is a stream of events. */
const NAMES = new Map([
  ['/api/v1/trace', 'trace'],
  ['/api/v1/generate', 'event'],
]);

/** Server-Sent Events: the data of each is one line of JSON. */
const READING_EVENTS = [
  '    for line in reply:',
  '        if line.startswith(b"data: "):',
  '            event = json.loads(line.removeprefix(b"data: "))',
  '            if "alternatives" in event:',
  '                print(event["text"], event["probability"])  # and "attention", "experts"',
];

/** Numbers in rows, as many as a window has room for. */
const SHOW = [
  'def rows_of(data):',
  '    """The innermost of nested lists, one after the other."""',
  '    if not any(isinstance(part, list) for part in data):',
  '        return [data]',
  '    return [row for part in data for row in rows_of(part)]',
  '',
  'def show(data, most=32):',
  '    """At most so many rows, and so many numbers of each."""',
  '    rows = rows_of(data)',
  '    for row in rows[:most]:',
  '        cells = [f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in row[:most]]',
  '        print(*(cell.rjust(9) for cell in cells), *(["..."] if len(row) > most else []))',
  '    if len(rows) > most:',
  '        print(f"... and {len(rows) - most} rows more")',
  '',
];

/** Every array as nested lists, by its name. */
const READING = [
  'arrays = dict(trace["tensors"])',
  'for analysis, parts in trace["analyses"].items():',
  '    for part, found in parts.items():',
  '        arrays[f"{analysis}.{part}"] = found',
  'for name, array in arrays.items():',
  '    if isinstance(array, dict) and "data" in array:',
  '        print(name, array["axes"], array["shape"])',
  '        show(array["data"])',
];

/**
 * A plain value as Python writes it. What JSON escapes in a text Python reads in the same way.
 * @param {any} value
 * @param {string} [indent] of the line it stands in
 * @returns {string}
 */
export function literal(value, indent = '') {
  if (CONSTANTS.has(value)) return CONSTANTS.get(value);
  if (typeof value !== 'object') return JSON.stringify(value);
  const [open, close] = Array.isArray(value) ? '[]' : '{}';
  const deeper = `${indent}    `;
  const parts = (inner) =>
    Array.isArray(value)
      ? value.map((each) => literal(each, inner))
      : Object.entries(value).map(
          ([key, each]) => `${JSON.stringify(key)}: ${literal(each, inner)}`,
        );
  const line = open + parts('').join(', ') + close;
  if (indent.length + line.length <= WIDTH && !line.includes('\n')) return line;
  return `${open}\n${parts(deeper)
    .map((part) => `${deeper}${part},\n`)
    .join('')}${indent}${close}`;
}
