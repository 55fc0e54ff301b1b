/** Which tokens a model has no words for: by the shipped vocabulary, and by one of pieces of many languages. */
import { join } from 'node:path';
import test from 'ava';
import { loadTokenizer } from '../../../src/engine/text/tokenizer.ts';
import { unreadOfPieces } from '../../../src/engine/text/unread.ts';
import { shippedModels } from '../support/engine.ts';

const SHARES: readonly (readonly [text: string, share: number])[] = [
  ['I was charged twice for my order', 0],
  ['order ORD-123456 asap pls', 0],
  ['123 456 ... !', 0],
  ['', 0],
  ["Je n'ai pas reçu ma commande", 0],
  ['Hi Zbigniew', 0.8],
  ['recieve teh refund', 3 / 7],
  ['Wo bleibt mein Paket?', 3 / 7],
  ['Mir wurde die Rechnung doppelt abgebucht, bitte erstatten Sie den Betrag', 0.54],
  ['Где моя посылка?', 1],
  ['我的包裹在哪里', 1],
  ['सहायता', 1],
  ['សូមជួយ', 1],
];

test('spelt words, other scripts and unknown ones are unread; numbers and punctuation are no words', async (t) => {
  const { ids, unreadShare } = await loadTokenizer(join(shippedModels, 'minilm-l6/r2/tokenizer.json'));
  for (const [text, share] of SHARES) t.is(unreadShare?.(ids(text)).toFixed(2), share.toFixed(2), text);
});

const PIECES = [
  'special <unk>',
  '▁',
  '▁hello',
  'lo',
  '▁привет',
  'ก',
  '▁กา',
  '日',
  '▁日本',
  '語',
  '글',
  'ქ',
  '▁ქ',
  'ა',
  'e',
  '́',
  '!',
  '7',
];
const idsOf = (...found: readonly string[]) => found.map((piece) => PIECES.indexOf(piece));

const SPELT: readonly (readonly [ids: readonly number[], share: number])[] = [
  [[], 0],
  [idsOf('▁hello', 'special <unk>', 'lo', 'special <unk>'), 0.5],
  // Letters that are in words, too, Chinese characters and Korean syllables.
  [idsOf('▁', 'ก', '語', '日', '글', 'e'), 0],
  [idsOf('▁ქ', 'ა', 'ქ', 'ა'), 1],
  [idsOf('▁hello', '▁ქ', 'ა', '▁привет'), 0.5],
  // Marks, numbers and punctuation say nothing.
  [idsOf('▁ქ', '́', 'ა', '!', '7', '▁'), 1],
  [idsOf('!', '7', '▁'), 0],
];

test('of pieces in many languages unknown ones are unread, and letters of scripts without words', (t) => {
  const share = unreadOfPieces(PIECES, 0);
  for (const [ids, expected] of SPELT) t.is(share(ids), expected, ids.map((id) => PIECES[id]).join());
});
