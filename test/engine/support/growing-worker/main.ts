/** An engine process that takes 400 MiB more for each decision whose text is `grow`. */
import '../../../../src/engine/worker/main.ts';
import type { ToEngine } from '../../../../src/engine/worker/messages.ts';

const taken: Buffer[] = [];
process.on('message', (message: ToEngine) => {
  if (message.kind === 'score' && message.input === 'grow') taken.push(Buffer.alloc(400 * 2 ** 20, 1));
});
