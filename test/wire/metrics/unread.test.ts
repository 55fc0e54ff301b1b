/**
 * What a text costs in confidence that its model has no words for, as the operator sees it: in the log and
 * in the metrics.
 */
import test from 'ava';
import { modelsFolder } from '../../engine/support/packages.ts';
import { decide } from '../../support/http.ts';
import { metricsPortOf, scrape } from '../../support/scrape.ts';
import { startService } from '../../support/service.ts';

// The small vocabulary has letters alone, so a word of three is spelt.
const QUESTION = { model: 'tiny', instruction: 'which', choices: ['ab', 'x y'] };

test('the log line has the share of unread tokens, and a metric counts what was made less sure', async (t) => {
  const modelsDir = await modelsFolder(t, { manifest: { unread: { bound: 0.5, pull: 3 } } });
  const service = await startService({ UMPIRE_METRICS_PORT: '0', UMPIRE_MODELS_DIR: modelsDir });
  t.teardown(() => service.stop());
  for (const input of ['a b c', 'abc', 'abc d e f g']) {
    t.is((await decide(service.port, { ...QUESTION, input })).status, 200);
  }
  const told = () => service.log.filter(({ msg, model }) => msg === 'request' && model === 'tiny@r1');
  while (told().length < 3) await new Promise((resolve) => setTimeout(resolve, 10));
  t.deepEqual(
    told().map(({ unreadShare }) => unreadShare),
    [0, 1, 0.43],
  );
  t.is((await scrape(metricsPortOf(service))).get('umpire_unread_decisions_total{model="tiny@r1"}'), 1);
});
