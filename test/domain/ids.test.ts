import test from 'ava';
import { newId } from '../../src/domain/ids.ts';

test('identifiers match the contract and never repeat', (t) => {
  const seen = new Set<string>();
  for (let index = 0; index < 20_000; index += 1) {
    const id = newId(index % 2 === 0 ? 'dec_' : 'req_');
    t.regex(id, /^(dec|req)_[A-Za-z0-9_-]{22}$/);
    seen.add(id.slice(4));
  }
  t.is(seen.size, 20_000);
});
