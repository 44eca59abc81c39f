/** Of the API what the code of a request needs to know; `make openapi` makes it. */

/** Members of requests that choose which numbers are sent, and in which form. */
export const SELECTING = [
  'analyses',
  'capture',
  'dtype',
  'heads',
  'layers',
  'queries',
  'resolution',
  'triangle',
];

/** The paths that answer with nothing but Server-Sent Events. */
export const STREAMED = ['/api/v1/generate'];
