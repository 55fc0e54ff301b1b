/**
 * A page on a terminal of any kind: on its second screen, by the few sequences that every terminal has. The terminal is
 * as it was before whenever the process ends, unless it is killed.
 */
import { emitKeypressEvents, type Key as Pressed } from 'node:readline';
import type { ReadStream, WriteStream } from 'node:tty';
import type { Page } from '../command.ts';

/** To the second screen, where what is pasted comes in brackets; and back. */
const [ENTER, LEAVE] = ['\u001b[?1049h\u001b[?2004h', '\u001b[?2004l\u001b[?1049l'];

/** Shows the page until it ends or the terminal is gone. Throws the signal's reason once it is aborted. */
export async function showPage(input: ReadStream, output: WriteStream, page: Page, signal: AbortSignal): Promise<void> {
  const ended = Promise.withResolvers<void>();
  const draw = (): void => {
    // A terminal that does not know its size says 0.
    const lines = page.lines(output.columns || 80, output.rows || 24);
    output.write(`\u001b[H${lines.map((line) => `${line}\u001b[K`).join('\n')}\u001b[J`);
  };
  const press = (text: string | undefined, { name = '', ctrl, meta }: Pressed): void => {
    // The terminal sends no signals while every key is read as it is.
    if (ctrl === true && name === 'c') process.kill(process.pid, 'SIGINT');
    else if (page.press({ text: ctrl || meta ? '' : (text ?? ''), name: ctrl ? `ctrl-${name}` : name })) draw();
    else ended.resolve();
  };
  const restore = (): void => {
    output.write(LEAVE);
    input.setRawMode(false);
  };
  const end = (): void => ended.resolve();
  const abort = (): void => ended.reject(signal.reason);
  // A throw in a listener ends the process, too.
  process.once('exit', restore);
  process.once('SIGHUP', end);
  input.once('end', end);
  signal.addEventListener('abort', abort);
  output.on('resize', draw);
  emitKeypressEvents(input);
  input.setRawMode(true);
  input.on('keypress', press);
  input.resume();
  output.write(ENTER);
  try {
    draw();
    await ended.promise;
  } finally {
    input.off('keypress', press).off('end', end).pause();
    output.off('resize', draw);
    signal.removeEventListener('abort', abort);
    process.off('SIGHUP', end).off('exit', restore);
    restore();
  }
}
