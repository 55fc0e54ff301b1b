/**
 * What it costs to read a body, compared with JSON.parse of the same text: milliseconds for an ordinary request, and
 * for bodies of 64 KiB, 256 KiB and 1 MiB that are made to cost more than their size suggests. Reading is all that REST
 * does up to the message: decoding, scanning, and making the values that are accepted. Protobufs are compared with
 * protobuf-es. The least of the rounds is shown. A body of 1 MiB blocks the serving thread for the time in its row,
 * which may be 10 ms at most.
 */
import { fromBinary } from '@bufbuild/protobuf';
import { CreateDecisionRequestSchema } from '../../gen/umpire/v1/decision_service_pb.ts';
import { MessageReader } from '../../src/wire/rest/message-json.ts';
import { MessageScan } from '../../src/wire/rpc/message-scan.ts';
import { hostileBodies, hostileMessages } from '../../test/support/hostile-bodies.ts';
import { printTable } from '../report/table.ts';
import { LARGE, SMALL } from '../shell/requests.ts';

/** Bytes of the hostile bodies: up to the most that the service reads. */
const SIZES = [1 << 16, 1 << 18, 1 << 20];
/** Milliseconds that reading the largest may take. */
const MOST = 10;

const reader = new MessageReader(CreateDecisionRequestSchema);
const scan = new MessageScan(CreateDecisionRequestSchema);
const NONE = new Map<string, string>();

/** Milliseconds that the work takes: the least of the rounds, each the mean of `times` repetitions. */
function time(work: () => unknown, rounds: number, times = 1): number {
  let least = Number.POSITIVE_INFINITY;
  for (let round = 0; round < rounds; round += 1) {
    const began = performance.now();
    for (let each = 0; each < times; each += 1) {
      try {
        work();
      } catch {
        // A refusal is timed like any other outcome.
      }
    }
    least = Math.min(least, (performance.now() - began) / times);
  }
  return least;
}

const shown = (ms: number): string => (ms < 0.1 ? ms.toFixed(4) : ms.toFixed(1));

/** Runs the benchmark and prints its table. `--rounds N`. */
export async function run({ rounds = 9 }: { readonly rounds?: number } = {}): Promise<void> {
  const rows: string[][] = [];
  for (const [what, body] of [
    ['a request with 5 choices', SMALL],
    ['a request with 300 choices', LARGE],
  ] as const) {
    const bytes = Buffer.from(JSON.stringify(body));
    const parsed = time(() => JSON.parse(bytes.toString()), rounds, 1000);
    const own = time(() => reader.read(bytes, NONE), rounds, 1000);
    rows.push([what, String(bytes.length), shown(parsed), shown(own), (own / parsed).toFixed(2), '']);
  }
  const kinds = [
    {
      of: hostileBodies,
      theirs: (bytes: Buffer) => JSON.parse(bytes.toString()),
      ours: (bytes: Buffer) => reader.read(bytes, NONE),
    },
    {
      of: hostileMessages,
      theirs: (bytes: Buffer) => fromBinary(CreateDecisionRequestSchema, bytes),
      ours: (bytes: Buffer) => scan.protobuf(bytes),
    },
  ];
  for (const { of, theirs, ours } of kinds) {
    for (const [what, make] of Object.entries(of)) {
      for (const size of SIZES) {
        const bytes = make(size);
        const parsed = time(() => theirs(bytes), Math.min(3, rounds));
        const own = time(() => ours(bytes), rounds);
        const most = size === SIZES.at(-1) ? (own <= MOST ? `${MOST}` : `${MOST} !`) : '';
        rows.push([what, String(bytes.length), shown(parsed), shown(own), (own / parsed).toFixed(2), most]);
      }
    }
  }
  printTable(['body', 'bytes', 'JSON.parse or protobuf-es, ms', 'read, ms', 'ratio', 'at most'], rows);
}
