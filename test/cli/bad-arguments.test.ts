/** Bad arguments end with status 2 before anything is opened, and with a message that says which they are. */
import test from 'ava';
import { runUmpire } from '../support/terminal.ts';

for (const [args, problem] of [
  ['keys create', /--owner NAME is needed/],
  ['keys create --owner a/b', /an owner's name/],
  ['keys create --owner {x}', /an owner's name/],
  ['keys create --owner a --rate fast', /--rate: 'fast' is not a rate/],
  ['keys create --owner a --quota 0', /--quota/],
  ['keys create --owner a --colour red', /--colour/],
  ['keys create --owner a surplus', /unexpected argument 'surplus'/],
  ['keys rotate', /KEY_ID is missing/],
  ['keys rotate key_1 --grace soon', /'soon' is not a duration/],
  ['catalogs list', /--owner NAME is needed/],
  ['catalogs delete --owner a', /delete: ID is missing/],
  ['catalogs delete --owner a ..', /cannot be the id/],
  ['keys', /'keys' is not a command by itself; these are:\n {2}umpire keys create/],
  ['conformance', /--url URL is needed/],
  ['keys create --owner a --label ', /--label: must be one line/],
  ['kesy create', /there is no command 'kesy'; 'umpire help' lists them/],
  ['keys destroy', /there is no command 'keys destroy'/],
  ['keys creat', /did you mean 'umpire keys create'/],
  ['catalog', /there is no command 'catalog'/],
  ['backup', /FILE is missing/],
  ['restore', /FILE is missing/],
  ['keys revoke', /KEY_ID is missing/],
  ['models pack', /EXPORT and MODEL@REVISION are missing/],
  ['models pack x', /pack: MODEL@REVISION is missing/],
  ['models add', /MODEL@REVISION is missing/],
  ['evaluate', /EXAMPLES is missing/],
  ['catalogs replace --owner a', /FILE is missing/],
  ['bridge', /--url is missing/],
  ['bridge --url localhost:8080', /--url localhost:8080: must be such as http:/],
  ['bridge --url http://a/path', /must be such as http:/],
  ['bridge --url http://a?key=b', /must be such as http:/],
  ['bridge --url http://a --port 65536', /--port 65536: must be a port/],
  ['bridge --url http://a --alias jev-latest', /--alias jev-latest: must be such as/],
  ['bridge --url http://a --keys some', /--keys: must be pass, require or drop/],
  ['mcp', /--url is missing/],
  ['mcp --url http://a --port x', /--port x: must be a port/],
] as const) {
  test(args.trim(), async (t) => {
    const { status, err, out } = await runUmpire(args.split(' '));
    t.is(status, 2);
    t.regex(err, problem);
    t.is(out, '');
  });
}
