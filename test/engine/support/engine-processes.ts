/** Engine processes, as the system sees them. */
import { execFileSync } from 'node:child_process';

/** The pids of the engine processes below a process. */
export function enginesOf(parent = process.pid): readonly number[] {
  const listing = execFileSync('ps', ['-e', '-o', 'pid=,ppid=,args='], { encoding: 'utf8' });
  return listing.split('\n').flatMap((line) => {
    const [, pid, ppid, args] = /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line) ?? [];
    return Number(ppid) === parent && args?.includes('worker/main.ts') ? [Number(pid)] : [];
  });
}
