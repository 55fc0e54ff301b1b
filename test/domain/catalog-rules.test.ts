/** The fields of a catalog, one by one, and which fault comes first. */
import test from 'ava';
import {
  catalogIdFault,
  draftFault,
  isCatalogId,
  versionFault,
  visibilityFault,
} from '../../src/domain/catalog-rules.ts';

test('ids that are fine', (t) => {
  for (const id of ['a', 'A', '0', '-', '_', '...', '.a', 'a.b_c-D', 'x'.repeat(128)])
    t.is(catalogIdFault(id), undefined, id);
});

test('ids that are not', (t) => {
  const ids = [
    '',
    'x'.repeat(129),
    'a b',
    'a/b',
    'é',
    'a\n',
    '\na',
    '.',
    '..',
    'a:b',
    '{a}',
    '{',
    'a\0',
    'а',
    '%2e',
    'a\u2028',
    '１',
  ];
  for (const id of ids) {
    t.like(catalogIdFault(id), { reason: 'INVALID_CATALOG_ID', param: 'id' }, JSON.stringify(id));
    t.false(isCatalogId(id));
  }
});

test('versions', (t) => {
  for (const fine of [undefined, '', '1', 'x'.repeat(128), '🟢'.repeat(128), 'v 1\n'])
    t.is(versionFault(fine), undefined);
  for (const wrong of ['x'.repeat(129), '🟢'.repeat(129), 'x'.repeat(1_000_000), '\udc00']) {
    t.like(versionFault(wrong), { reason: 'INVALID_VALUE', param: 'version' });
  }
});

test('visibility', (t) => {
  t.is(visibilityFault(undefined), undefined);
  t.is(visibilityFault('private'), undefined);
  for (const wrong of ['', 'public', 'Private', 'private ']) t.like(visibilityFault(wrong), { param: 'visibility' });
});

test('of several faults the first field is named', (t) => {
  const wrong = { id: '..', model: 'm', choices: [], version: 'x'.repeat(129), visibility: 'public' };
  t.is(draftFault(wrong)?.param, 'id');
  t.is(draftFault({ ...wrong, id: 'a' })?.param, 'choices');
  t.is(draftFault({ ...wrong, id: 'a', choices: ['a', 'b'] })?.param, 'version');
  t.is(draftFault({ ...wrong, id: 'a', choices: ['a', 'b'], version: '1' })?.param, 'visibility');
  t.is(draftFault({ id: 'a', model: 'm', choices: ['a', 'b'] }), undefined);
});
