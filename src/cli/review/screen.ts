/**
 * A page on a terminal of any kind: on its second screen, by the few sequences that every terminal has. The terminal is
 * as it was before whenever the process ends, unless it is killed.
 */
import { on } from 'node:events';
import { emitKeypressEvents, type Key as Pressed } from 'node:readline';
import type { ReadStream, WriteStream } from 'node:tty';
import type { Page } from '../command.ts';

/** To the second screen, where what is pasted comes in brackets; and back. */
const [ENTER, LEAVE] = ['\u001b[?1049h\u001b[?2004h', '\u001b[?2004l\u001b[?1049l'];

/** UTF-16 code units that are taken of what is pasted at once. */
const MOST_PASTED = 1000;

/** Shows the page until it ends or the terminal is gone. Throws the signal's reason once it is aborted. */
export async function showPage(input: ReadStream, output: WriteStream, page: Page, signal: AbortSignal): Promise<void> {
  const draw = (): void => {
    // A terminal that does not know its size says 0.
    const lines = page.lines(output.columns || 80, output.rows || 24);
    output.write(`\u001b[H${lines.map((line) => `${line}\u001b[K`).join('\n')}\u001b[J`);
  };
  const restore = (): void => {
    output.write(LEAVE);
    input.setRawMode(false);
  };
  emitKeypressEvents(input);
  const keys = on(input, 'keypress', { signal, close: ['end'] });
  const hangUp = (): void => void keys.return?.();
  // A throw in a listener ends the process, too.
  process.once('exit', restore).once('SIGHUP', hangUp);
  output.on('resize', draw);
  input.setRawMode(true);
  output.write(ENTER);
  try {
    draw();
    let pasted: string | undefined;
    for await (const [text = '', { name = '', ctrl, meta }] of keys as AsyncIterable<[string | undefined, Pressed]>) {
      // The terminal sends no signals while every key is read as it is.
      if (ctrl === true && name === 'c') process.kill(process.pid, 'SIGINT');
      else if (name === 'paste-start') pasted = '';
      else if (pasted !== undefined && name !== 'paste-end') pasted = (pasted + text).slice(0, MOST_PASTED);
      else {
        const typed = { text: ctrl || meta ? '' : text, name: ctrl ? `ctrl-${name}` : name };
        if (!page.press(pasted === undefined ? typed : { text: pasted, name: 'paste' })) return;
        pasted = undefined;
        draw();
      }
    }
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    process.off('exit', restore).off('SIGHUP', hangUp);
    output.off('resize', draw);
    input.pause();
    restore();
  }
}
