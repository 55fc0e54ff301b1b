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
  ['bridge --url http://a --port 65536', /--port: must be a whole number from 0 to 65535/],
  ['bridge --url http://a --alias jev-latest', /--alias jev-latest: must be such as/],
  ['bridge --url http://a --keys some', /--keys: must be pass, require or drop/],
  ['mcp', /--url is missing/],
  ['mcp --url http://a --port x', /--port: must be a whole number from 0 to 65535/],
  ['models pack x mine', /'mine' is not MODEL@REVISION/],
  ['models pack x mine@r1 --pooling max', /--pooling: 'max' is none of/],
  ['models pack x mine@r1 --choices 2.5', /--choices: '2.5' is not a whole number/],
  ['models pack x mine@r1 --temperature hot', /--temperature: 'hot' is not a number/],
  ['catalogs import --owner a --from wit x', /--from: 'wit' is none of luis, clu, dialogflow, rasa, csv/],
  ['catalogs import --owner a --from clu x', /--from needs --catalog ID, --out FILE/],
  ['catalogs import --owner a x y', /unexpected argument 'y'/],
  ['catalogs describe --owner a --catalog c', /FILE or --remove is needed/],
  ['learn --owner a --catalog c', /either a file, --refresh or --forget is needed/],
  ['learn --owner a --catalog c --forget x', /either a file, --refresh or --forget is needed/],
  ['learn --owner a x', /--catalog ID is needed/],
  ['evaluate --url http://a --owner a --catalog c x', /--catalog with --owner or --url, or --model and --choices/],
  ['ask', /TEXT is missing/],
  ['ask text a b', /--question TEXT is needed/],
  ['ask --question q text', /either choices or --catalog ID are needed/],
  ['ask --question q --catalog c text a', /either choices or --catalog ID are needed/],
  ['ask --question q --url http://a:b@c text a b', /--url: must not hold a user/],
  ['decide', /--model MODEL is needed/],
  ['decide --url ftp://a --model m --catalog c', /--url: must be http/],
  ['decide --url http://a:b@c --model m --catalog c', /--url: must not hold a user/],
  ['decide --url http://a --model m', /either --catalog or --choices is needed/],
  ['decide --url http://a --model m --catalog c --choices f', /either --catalog or --choices is needed/],
  ['decide --url http://a --model m --catalog c --resume', /--resume needs the file of --out/],
  ['decide --url http://a --model m --catalog c --at-once 0', /--at-once: must be a whole number from 1 to 512/],
  ['decide --url http://a --model m --catalog c --format xml', /--format: 'xml' is neither json nor csv/],
  ['decide --url http://a --model m --catalog c --key not\na-key', /this is not a key: it must be what/],
] as const) {
  test(args.trim(), async (t) => {
    const { status, err, out } = await runUmpire(args.split(' '));
    t.is(status, 2);
    t.regex(err, problem);
    t.is(out, '');
    // What looks like a key is not repeated.
    t.false(err.includes('a-key'));
  });
}
