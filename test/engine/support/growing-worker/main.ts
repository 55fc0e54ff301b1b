/**
 * An engine process that takes 400 MiB more for each decision whose text is `grow`. For `litter` it takes as much in
 * small blocks, of which it uses one in ten from then on.
 */
import '../../../../src/engine/worker/main.ts';
import type { ToEngine } from '../../../../src/engine/worker/messages.ts';

const taken: Buffer[] = [];
process.on('message', (message: ToEngine) => {
  if (message.kind !== 'score') return;
  if (message.input === 'grow') taken.push(Buffer.alloc(400 * 2 ** 20, 1));
  if (message.input === 'litter') {
    const blocks = Array.from({ length: 12_800 }, () => Buffer.alloc(2 ** 15, 1));
    taken.push(...blocks.filter((_, i) => i % 10 === 0));
  }
});
