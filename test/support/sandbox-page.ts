import { TRAITS } from '../../src/sandbox/traits.ts';

/** The traits by what they are about: the numbers are those of the field notes. */
const TOPICS: readonly (readonly [string, number])[] = [
  ['Time', 8],
  ['Pages', 13],
  ['Identity and change', 18],
  ['Shape of the records', 20],
  ['Limits and errors', 25],
  ['Data', 27],
];

/** docs/sandbox.md: how to play the service, and every way in which it can be made to answer. */
export function sandboxPage(): string {
  const tables = TOPICS.map(([topic, last], index) => {
    const first = TOPICS[index - 1]?.[1] ?? 0;
    const rows = TRAITS.filter(({ note }) => note > first && note <= last).map(
      ({ name, values, bare, doc }) => `| \`${name}\` | ${code(values)} | ${bare ? code(bare) : ''} | ${cell(doc)} |`,
    );
    return [`### ${topic}`, '', '| trait | values | without a value | effect |', '|---|---|---|---|', ...rows].join(
      '\n',
    );
  });
  return [HEAD, ...tables].join('\n\n');
}

const cell = (text: string): string => text.replaceAll('|', '\\|');
const code = (text: string): string => `\`${cell(text)}\``;

const HEAD = `# The sandbox

\`tributary sandbox\` serves \`GET /events\` of the contract over HTTP on 127.0.0.1, on generated data. Use it to try a configuration, to test a client, or to
see what Tributary does on a service that answers oddly. It makes no request and keeps nothing on disk.

\`\`\`sh
tributary sandbox --port 8787 --clicks 20000 --days 10 --trait widenStart=day@-8 --trait shuffleTies
\`\`\`

- The history depends on \`--seed\` and on the date. It ends with yesterday, so a restart on the same day serves the same events. \`--live N\` adds N events a second.
- What a trait leaves to chance depends on the seed, the number of the request and the event: the same requests get the same answers.
- The rate limit is that of \`--plan\`; \`enterprise\` has none.
- \`GET /_sandbox/stats\` counts requests and rows, \`GET /_sandbox/truth\` lists id and time of all events that can be seen. \`POST /_sandbox/traits {"widen":"day","ties":null}\` changes traits while it runs (\`null\` takes one away),
  \`POST /_sandbox/events {"stream":"leads","generate":100}\` adds events, \`POST /_sandbox/faults [{"status":500,"times":3}]\` answers the next requests with a fault.
  All take the API key.

The tests of the reader use the same model in memory: \`src/sandbox/listing.ts\` turns rows and a question into a page, without I/O.

## Traits

A trait is a way in which deployed services differ from the contract. Give \`--trait NAME\`, \`--trait NAME=VALUE\`, and as many as you like; they combine.
\`@HOURS\` is a time zone, in hours ahead of UTC.`;
