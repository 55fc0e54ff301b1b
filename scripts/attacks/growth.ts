/**
 * Shows how what is held grows with the size of an attack, at 10, 100 and 1,000 connections or streams:
 * `node scripts/attacks/growth.ts [--checkout DIR]`. Memory is the serving process's: before, at most, and ten seconds
 * after the attacker has left.
 */
import { parseArgs } from 'node:util';
import { ATTACKS } from './attacks.ts';
import { startNeighbour } from './neighbour.ts';
import { ROOT, startTarget } from './target.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { checkout: { type: 'string', default: ROOT }, seconds: { type: 'string', default: '6' } },
});
const KINDS = ['watches', 'connections-kept', 'unread-http2', 'unfinished-http2'];
const sleep = (seconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, seconds * 1000));

console.log(
  '| attack | size | MiB before, most, 10 s after | connections, watches, requests held | decisions answered, p99 ms |',
);
console.log('|---|---|---|---|---|');
for (const name of positionals.length > 0 ? positionals : KINDS) {
  for (const size of [10, 100, 1000]) {
    const target = await startTarget(values.checkout);
    const neighbour = startNeighbour(target);
    await sleep(2);
    neighbour.read();
    const before = target.memory() ?? 0;
    let most = 0;
    const watch = setInterval(() => {
      most = Math.max(most, target.memory() ?? 0);
    }, 200);
    // The size is a number of streams, of which a connection carries a hundred, except for connections-kept.
    const scale = name === 'connections-kept' ? size : Math.ceil(size / 100);
    const attacking = ATTACKS[name]?.(target, Number(values.seconds), scale, Math.min(100, size));
    await sleep(Number(values.seconds) - 1);
    const held = await Promise.all(['umpire_connections', 'umpire_watches', 'umpire_requests_open'].map(target.metric));
    await attacking;
    const { decision } = neighbour.read();
    await sleep(10);
    clearInterval(watch);
    const after = target.memory() ?? 0;
    console.log(
      `| ${name} | ${size} | ${before.toFixed(0)}, ${most.toFixed(0)}, ${after.toFixed(0)} | ${held.join(', ')} | ${decision.answered}/${decision.asked}, ${decision.p99.toFixed(0)} |`,
    );
    await neighbour.stop();
    await target.stop();
  }
}
