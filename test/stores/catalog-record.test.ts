/** What of a stored catalog is broken, of another length or for something else, is corrupt and never decides. */
import test from 'ava';
import { basisOf, digestOf, type LearnedRecord } from '../../src/stores/catalog-additions.ts';
import { fromFields, toFields } from '../../src/stores/catalog-record.ts';
import { StoreCorrupt } from '../../src/stores/stores.ts';
import { record } from './catalog-store-suite.ts';

const CHOICES = ['a', 'b', 'c'];
const FIELDS = toFields(record('id', CHOICES));

/** A learned state that is what it says, whatever it says. */
function learned(change: Partial<LearnedRecord> = {}): LearnedRecord {
  const figures = { log_loss: 0.5, accuracy: 0.8, ece: 0.03 };
  const state = { model: 'minilm-l6@r1', basis: basisOf(CHOICES, undefined), rung: 'bias', scale: 1, bias: [0, 0, 5] };
  const facts = { examples: [4, 4, 4], before: figures, after: figures, learned_at: '2026-01-02T03:04:05.678Z' };
  return { ...facts, ...state, digest: digestOf({ ...state, ...change }), ...change };
}
const weights = (width: number, bytes: number, row_scales: readonly number[] = [1, 1, 1]) => ({
  weights: { width, row_scales, rows: Buffer.alloc(bytes, 1).toString('base64') },
});
const written = (state: unknown, more: object = {}): string => JSON.stringify({ ...more, learned: state });
const sound = written(learned());

test('one that is sound is read as it was written', (t) => {
  for (const additions of [sound, written(learned(weights(2, 6)), { descriptions: undefined }), '{}'])
    t.notThrows(() => fromFields('owner', 'id', { ...FIELDS, additions }));
});

/** Texts in place of a sound catalog's, by its field. */
const BROKEN: Readonly<Record<string, readonly string[]>> = {
  choices: ['', 'no json', '{"a":', '{}', '[]', '[1,2]', '["a","a"]', '[""]', 'null'],
  calibrations: ['', '[]', 'null', '{"m@r1":0}', '{"m@r1":"1"}'],
  additions: [
    ...['', '[]', '{"learned":null}', sound.slice(0, -5), sound.slice(0, 80)],
    ...['{"descriptions":{"other":"x"}}', '{"descriptions":{"a":""}}', '{"descriptions":{"a":"x","a: x":"y"}}'],
    // Too few numbers, too many, none, and counts of other choices.
    written(learned({ bias: [0, 5] })),
    written(learned({ bias: [0, 5, 0, 0] })),
    written(learned({ bias: [0, Number.NaN, 5] })),
    written(learned({ examples: [4, 4] })),
    // Weights for two choices, cut off, and of no width.
    written(learned(weights(2, 4, [1, 1]))),
    written(learned(weights(2, 5))),
    written(learned(weights(0, 0))),
    // For other choices, other descriptions, another model, and no revision.
    written(learned({ basis: basisOf(['a', 'b', 'd'], undefined) })),
    written(learned(), { descriptions: { a: 'the first' } }),
    written(learned({ model: 'umpire-mini@r1' })),
    written(learned({ model: 'minilm-l6' })),
    // Another revision, scale or digest than was written.
    written({ ...learned(), model: 'minilm-l6@r2' }),
    written({ ...learned(), scale: 2 }),
    written({ ...learned(), digest: '0123456789abcdef' }),
    written({ ...learned(), digest: undefined }),
  ],
};
for (const [field, texts] of Object.entries(BROKEN)) {
  test(`broken ${field} are corrupt, and the fault says nothing of what is inside`, (t) => {
    for (const text of texts) {
      const error = t.throws(
        () => fromFields('owner', 'id', { ...FIELDS, [field]: text }),
        { instanceOf: StoreCorrupt },
        text,
      );
      t.notRegex(error?.message ?? '', /minilm|scale|bias/, text);
    }
  });
}

test('a field that is missing is corrupt', (t) => {
  for (const field of ['stamp', 'model', 'choices', 'version', 'visibility', 'created_at'])
    t.throws(() => fromFields('owner', 'id', { ...FIELDS, [field]: undefined }), { instanceOf: StoreCorrupt }, field);
});
