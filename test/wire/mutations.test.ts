/** Valid requests, changed at random: what is valid then is decided, all else is refused, none is a server's fault. */
import test from 'ava';
import fc from 'fast-check';
import { type Answer, envelopeFault, json, VALID_BODY } from '../support/answers.ts';
import { DECIDE, frame, openSession, send, sendGrpc, sendH2, sendRaw, validMessage } from '../support/http.ts';
import { createScriptedEngine } from '../support/scripted-engine.ts';
import { startService } from '../support/service.ts';

const service = await startService({}, { engine: createScriptedEngine() });
const session = openSession(service.port);
test.after.always(async () => {
  session.destroy();
  await service.stop();
});

const text = JSON.stringify(VALID_BODY);
const RUNS = { numRuns: 200, endOnFailure: true, includeErrorInReport: true };

/** What is wrong with an answer that may be a decision or a refusal; undefined if nothing is. */
function fault(answer: Answer): string | undefined {
  if (answer.status === 200) return undefined;
  if (answer.status >= 500 || answer.status < 400) return `${answer.status}: ${answer.text}`;
  return envelopeFault(answer);
}

/** Strings of everything that JSON can carry, lone surrogates and control characters included. */
const anyString = fc.oneof(
  fc.string({ maxLength: 20 }),
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 8 }).map((units) => String.fromCharCode(...units)),
  fc.constantFrom('', ' ', '__proto__', 'constructor', 'minilm-l6', 'minilm-l6@r1', '[SEP]', '\u0000', '\ud800', '😀'),
);
const anyValue = fc.oneof(
  anyString,
  fc.array(anyString, { maxLength: 12 }),
  fc.jsonValue({ maxDepth: 4 }),
  fc.constantFrom(null, true, 0, -1, 1e300, [], {}),
);
const anyName = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom('model', 'input', 'instruction', 'choices') },
  { weight: 1, arbitrary: fc.constantFrom('catalog', '__proto__', 'Model', 'questions', '') },
  { weight: 1, arbitrary: anyString },
);
const change = fc.oneof(
  fc.record({ kind: fc.constant('set' as const), name: anyName, value: anyValue }),
  fc.record({ kind: fc.constant('delete' as const), name: anyName }),
  fc.record({ kind: fc.constant('choices' as const), value: fc.array(anyString, { maxLength: 20 }) }),
);

/** Contract 2.1 in its own words: whether a body without a catalog is a valid request, its tokens aside. */
function isValid(body: ReadonlyMap<string, unknown>): boolean {
  const names = new Set(['model', 'input', 'instruction', 'choices']);
  if ([...body.keys()].some((name) => !names.has(name)) || body.size !== 4) return false;
  const [model, input, instruction] = ['model', 'input', 'instruction'].map((name) => body.get(name));
  const choices = body.get('choices');
  const isText = (value: unknown): boolean => typeof value === 'string' && value !== '' && value.isWellFormed();
  if (model !== 'minilm-l6' && model !== 'minilm-l6@r1') return false;
  if (!isText(input) || !isText(instruction) || !Array.isArray(choices)) return false;
  return (
    choices.length >= 2 && choices.length <= 300 && choices.every(isText) && new Set(choices).size === choices.length
  );
}

test('a body whose properties are changed is decided exactly if the contract says that it is valid', async (t) => {
  const { port } = service;
  let decided = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 3 }), async (changes) => {
      const body = new Map<string, unknown>(Object.entries(VALID_BODY));
      for (const one of changes) {
        if (one.kind === 'delete') body.delete(one.name);
        else if (one.kind === 'choices') body.set('choices', one.value);
        else body.set(one.name, one.value);
      }
      const properties = [...body].map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`);
      const answer = await send(port, { body: `{${properties.join()}}` });
      const catalog = body.has('catalog');
      if (!catalog && isValid(body)) {
        decided += 1;
        if (answer.status !== 200) throw new Error(`refused: ${answer.text}`);
        const { output } = json(answer) as { output: { probabilities: object } };
        t.deepEqual(Object.keys(output.probabilities).toSorted(), (body.get('choices') as string[]).toSorted());
        return true;
      }
      if (answer.status !== 400 && !(catalog && answer.status === 401))
        throw new Error(`${answer.status}: ${answer.text}`);
      const wrong = envelopeFault(answer);
      if (wrong !== undefined) throw new Error(wrong);
      return true;
    }),
    RUNS,
  );
  t.true(decided > 0);
});

/** A change of bytes: cut out, put in, repeated or replaced. */
const byteChange = fc.record({
  at: fc.integer({ min: 0, max: 999 }).map((place) => place / 1000),
  remove: fc.integer({ min: 0, max: 12 }),
  insert: fc.oneof(
    fc.uint8Array({ maxLength: 12 }),
    fc
      .constantFrom(...'"\\{},:\ufeff\0e', '\\u0000', '\\ud800', '\r\n', '\r\n\r\n', '1e999')
      .map((each) => Buffer.from(each)),
  ),
});

function changed(bytes: Uint8Array, changes: readonly { at: number; remove: number; insert: Uint8Array }[]): Buffer {
  let result = Buffer.from(bytes);
  for (const { at, remove, insert } of changes) {
    const place = Math.floor(at * result.length);
    result = Buffer.concat([result.subarray(0, place), insert, result.subarray(place + remove)]);
  }
  return result;
}

const byteChanges = fc.array(byteChange, { minLength: 1, maxLength: 4 });

test('a body whose bytes are changed, over REST and Connect, HTTP/1.1 and HTTP/2', async (t) => {
  await fc.assert(
    fc.asyncProperty(byteChanges, async (changes) => {
      const body = changed(Buffer.from(text), changes);
      for (const answer of [await send(service.port, { body }), await sendH2(session, { body })]) {
        const wrong = fault(answer);
        if (wrong !== undefined) throw new Error(wrong);
      }
      const { status, text: said, headers } = await send(service.port, { path: DECIDE, body });
      if (status !== 200 && (status < 400 || status >= 500 || !/"reason":"[A-Z_]+"/.test(said)))
        throw new Error(`${status}: ${said}`);
      return /^req_/.test(String(headers['x-request-id']));
    }),
    RUNS,
  );
  t.pass();
});

test('a protobuf or a frame whose bytes are changed', async (t) => {
  // What is the caller's fault, or the deadline's; UNIMPLEMENTED is a compression that a changed flag asks for.
  const allowed = new Set(['0', '3', '4', '12', '16']);
  await fc.assert(
    fc.asyncProperty(byteChanges, fc.boolean(), async (changes, inFrame) => {
      const body = inFrame ? changed(frame(validMessage), changes) : frame(changed(validMessage, changes));
      const { status, trailers } = await sendGrpc(session, { body });
      if (status !== 200 || !allowed.has(String(trailers['grpc-status'])))
        throw new Error(JSON.stringify({ status, trailers }));
      const answer = await send(service.port, {
        path: DECIDE,
        headers: { 'content-type': 'application/proto' },
        body: changed(validMessage, changes),
      });
      if (answer.status >= 500) throw new Error(`${answer.status}: ${answer.text}`);
      return true;
    }),
    RUNS,
  );
  t.false(session.closed);
});

test('a whole HTTP request whose bytes are changed', async (t) => {
  const head =
    'POST /v1/decisions?x=1 HTTP/1.1\r\nHost: a\r\nContent-Type: application/json; charset=utf-8\r\nX-Request-ID: theirs\r\n' +
    `Expect: 100-continue\r\nConnection: close\r\nContent-Length: ${text.length}\r\n\r\n`;
  const one = async ([changes, wholly]: [Parameters<typeof changed>[1], boolean]): Promise<void> => {
    const request = wholly
      ? changed(Buffer.from(head + text), changes)
      : Buffer.concat([changed(Buffer.from(head), changes), Buffer.from(text)]);
    const { answers, bytes } = await sendRaw(service.port, request, { endAfter: 200 });
    for (const answer of answers) {
      const wrong = fault(answer);
      if (wrong !== undefined) throw new Error(wrong);
    }
    if (answers.length === 0)
      throw new Error(`no answer to ${request.toString('latin1')}: ${bytes.toString('latin1')}`);
  };
  // Cases that wait for each other's sockets, eight at a time.
  const eight = fc.array(fc.tuple(byteChanges, fc.boolean()), { minLength: 8, maxLength: 8 });
  await fc.assert(
    fc.asyncProperty(eight, async (cases) => {
      await Promise.all(cases.map(one));
    }),
    { ...RUNS, numRuns: 25 },
  );
  t.is((await send(service.port, { path: '/health/ready' })).status, 200);
});

test.after('the log has no fault of the server’s', (t) => {
  const found = service.log.filter(({ level }) => level === 'error' || level === 'fatal');
  t.deepEqual(found, []);
});
