/**
 * The defects that audits of the service found, D1 to D23, and P1 to P7, by which a few addresses shut others out of
 * the port: for each the attack that shows it, the test that guards against it, and whether a proxy in front would let
 * the attack through. One file: a table. One file: a table.
 */
import { ATTACKS } from './attacks.ts';
import { BODY_ATTACKS } from './bodies.ts';
import { CATALOG_ATTACKS } from './catalogs.ts';
import { FULL_STORE, showFullStore, showLooseText } from './contents.ts';
import { FLOODS } from './floods.ts';
import { showStalledLog, showUnread } from './holding.ts';
import { STEPPED_CLOCK, showClocks, showJunkKeys } from './keys.ts';
import { showOracle } from './oracle.ts';
import { showResets, showUpgrade, showVanished } from './peers.ts';
import { PLACE_ATTACKS } from './places.ts';
import type { Show } from './shown.ts';

/** A defect, and how it is shown. */
export interface Defect {
  readonly id: string;
  /** The defect in a few words. */
  readonly what: string;
  /** A file below the root, and a text in it: the title of a test or a part of it. */
  readonly test: readonly [file: string, title: string];
  /** The attack; undefined if the test alone shows the defect. */
  readonly show?: Show;
  /** Whether nginx, as `deploy/` configures it, passes the attack on, and why. */
  readonly proxy: readonly [passes: boolean, why: string];
  /** Whether the attack speaks HTTP/2. */
  readonly http2?: boolean;
  /** Settings of the attacked service beside the defaults. */
  readonly settings?: Readonly<Record<string, string>>;
  /** The service has a Redis of its own, with these options. */
  readonly redis?: readonly string[];
  /** Whether nobody reads the service's log. */
  readonly unreadLog?: boolean;
  /** Whether the attack itself ends the service, so that nothing can be asked afterwards. */
  readonly ends?: boolean;
}

/** An attack that reports only what it did; the neighbour's figures show whether it did harm. */
const plain =
  (name: string): Show =>
  async ({ target }, seconds) => {
    const attack = { ...ATTACKS, ...BODY_ATTACKS, ...CATALOG_ATTACKS, ...FLOODS, ...PLACE_ATTACKS }[name];
    if (attack === undefined) throw new Error(`no attack is called ${name}`);
    return { figure: await attack(target, seconds), defect: false };
  };

/** D1: shows how many segments it took to end the process. */
const showExpect: Show = async ({ target }, seconds) => {
  const did = await ATTACKS['expect-and-reset']?.(target, seconds);
  const dead = target.status !== null;
  return { figure: `${did}: ${dead ? `the process ended with ${target.status}` : 'it lives'}`, defect: dead };
};

/** D2: shows how many engine processes were killed because of a text. */
const showMarks: Show = async ({ target }, seconds) => {
  const did = await BODY_ATTACKS['combining-marks']?.(target, seconds);
  const killed = target.log().split('it made no progress').length - 1;
  return { figure: `bodies of 1 MiB: ${did}; engines killed: ${killed}`, defect: killed > 0 };
};

/** D16: shows whether another owner was refused. */
const showPreparation: Show = async ({ target }, seconds) => {
  const did = (await CATALOG_ATTACKS.preparation?.(target, seconds)) ?? '';
  const other = /of another owner: ([^;]*);/.exec(did)?.[1] ?? '';
  return { figure: did, defect: /\d+ × (503|429|no answer)/.test(other) };
};

/** The title of the tests in which four addresses hold all that they may. */
const TAKES = 'four addresses that send ';

/** The defects in their order. */
export const DEFECTS: readonly Defect[] = [
  {
    id: 'D1',
    what: 'One packet ends the process',
    show: showExpect,
    test: ['test/wire/crash.test.ts', 'every request with every frame behind it, in one segment with the preface'],
    proxy: [false, 'it does not forward `Expect`'],
  },
  {
    id: 'D2',
    what: 'Combining marks kill engines',
    show: showMarks,
    test: ['test/engine/text/tokens.test.ts', 'a long text has the tokens that it has at once, whatever it is made of'],
    proxy: [true, 'bodies up to 2 MiB pass'],
  },
  {
    id: 'D3',
    what: 'Bodies that are expensive to parse',
    show: plain('escaped-keys'),
    test: [
      'test/wire/http/strict-json.test.ts',
      'finds what JSON.parse finds in bodies of all kinds, unless it stops before',
    ],
    proxy: [true, 'bodies up to 2 MiB pass'],
  },
  {
    id: 'D4',
    what: 'Streams of gRPC Health.Watch',
    show: async ({ target }, seconds) => {
      const did = (await ATTACKS.watches?.(target, seconds, 300, 100)) as string;
      return { figure: `${did}; ${target.memory()?.toFixed(0) ?? '-'} MiB just after`, defect: false };
    },
    http2: true,
    test: ['test/wire/holdings/watches.test.ts', 'for one address: the oldest ends, those of others stay'],
    proxy: [true, 'streams of gRPC pass, one connection each'],
  },
  {
    id: 'D5',
    what: 'One address takes all connections',
    show: plain('connections-kept'),
    test: [
      'test/wire/holdings/connections.test.ts',
      'at the maximum the longest idle connection goes and the newcomer is served',
    ],
    proxy: [false, 'it ends the connections of callers and keeps few of its own'],
  },
  {
    id: 'D6',
    what: 'Private catalogs told by the time of a decision',
    show: showOracle,
    test: [
      'test/engine/caches.test.ts',
      '200 guesses at the choices of a private catalog find none, however often they are repeated',
    ],
    proxy: [true, 'plain decisions'],
  },
  {
    id: 'D7',
    what: 'Answers that nobody reads',
    show: showUnread,
    test: ['test/wire/holdings/unread.test.ts', 'HTTP/1.1: answers in a pipeline that is not read'],
    proxy: [false, 'it reads answers at once and keeps them itself'],
  },
  {
    id: 'D8',
    what: 'Junk keys push out good ones',
    show: showJunkKeys,
    redis: [],
    test: [
      'test/domain/authenticate.test.ts',
      'junk that passes the check sum never pushes a good key out, and hardly makes the store work',
    ],
    proxy: [true, 'headers of keys pass'],
  },
  {
    id: 'D9',
    what: 'Revocation on the wall clock',
    show: showClocks,
    settings: STEPPED_CLOCK,
    test: [
      'test/domain/authenticate.test.ts',
      'a clock that is set back neither keeps a revoked key alive nor brings it back',
    ],
    proxy: [true, 'nothing is sent but a key'],
  },
  {
    id: 'D10',
    what: 'What follows an Upgrade is read as a request',
    show: showUpgrade,
    test: ['test/wire/odd-pipelines.test.ts', 'what follows an Upgrade is no request'],
    proxy: [false, 'it takes the header away'],
  },
  {
    id: 'D11',
    what: 'Peers that vanish',
    show: showVanished,
    test: ['test/wire/listener/pings.test.ts', 'one that answers no ping goes, with its stream'],
    proxy: [false, 'it is the peer itself'],
  },
  {
    id: 'D12',
    what: 'A log that nobody reads',
    show: showStalledLog,
    unreadLog: true,
    ends: true,
    test: ['test/log-stream.test.ts', 'a server whose log nobody reads answers, and ends when it is told to'],
    proxy: [true, 'plain requests'],
  },
  {
    id: 'D13',
    what: 'A full store',
    show: showFullStore,
    redis: FULL_STORE,
    test: [
      'test/stores/redis/redis-stores.test.ts',
      'in a Redis that is full catalogs are refused and deleted, and keys are made and ended',
    ],
    proxy: [true, 'catalogs of keyed callers'],
  },
  {
    id: 'D14',
    what: 'Bytes that are not valid text, over Connect',
    show: showLooseText,
    test: ['test/wire/rpc/connect-faults.test.ts', 'invalid UTF-8'],
    proxy: [true, 'it does not look into bodies'],
  },
  {
    id: 'D15',
    what: 'Install scripts of packages run',
    test: ['test/install-scripts.test.ts', 'the install script of a dependency does not run'],
    proxy: [false, 'nothing is sent'],
  },
  {
    id: 'D16',
    what: "One owner's catalogs starve another's",
    show: showPreparation,
    test: [
      'test/engine/pool/preparation-lane.test.ts',
      'an owner with many preparations holds up another by its share alone',
    ],
    proxy: [true, 'catalogs of keyed callers'],
  },
  {
    id: 'D17',
    what: 'Resets over new connections',
    show: plain('rapid-reset'),
    test: ['test/wire/holdings/requests.test.ts', 'an address that takes back too many requests'],
    proxy: [false, 'it ends the streams of callers and opens few connections of its own'],
  },
  {
    id: 'D18',
    what: 'A session of many cancellations is cut off',
    show: showResets,
    http2: true,
    test: ['test/wire/holdings/requests.test.ts', 'a session may carry a hundred cancellations a second'],
    proxy: [true, 'a proxy over HTTP/2 sends them itself'],
  },
  {
    id: 'D19',
    what: 'Pipelines hold the serving thread',
    show: plain('pipelines'),
    test: ['test/wire/floods.test.ts', 'of a pipeline few requests are open at a time, and all are answered in order'],
    proxy: [true, 'it asks for one after another'],
  },
  {
    id: 'D20',
    what: 'Pipelines of eight addresses',
    show: plain('pipelines-of-eight'),
    test: ['test/wire/floods.test.ts', 'a neighbour is answered in the middle of a pipeline of thousands'],
    proxy: [true, 'it asks for one after another, and tells the addresses'],
  },
  {
    id: 'D21',
    what: 'Resets of a few addresses',
    show: plain('resets-of-few'),
    test: ['test/wire/floods.test.ts', 'HTTP/2: a session is ended that sends thousands at once'],
    proxy: [false, 'it ends the streams of callers'],
  },
  {
    id: 'D22',
    what: 'A stream of reflection without end',
    show: plain('reflection-stream'),
    settings: { UMPIRE_REFLECTION: 'on' },
    http2: true,
    test: ['test/wire/floods.test.ts', 'each message of a reflection stream counts as a look-up'],
    proxy: [true, 'messages of a stream pass'],
  },
  {
    id: 'D23',
    what: 'Large answers to small requests',
    show: plain('large-answers'),
    test: ['test/wire/floods.test.ts', 'bytes of answers are counted for their key, in every protocol'],
    proxy: [true, 'plain requests of keyed callers'],
  },
  {
    id: 'P1',
    what: 'Refusals that nobody reads take the places of all',
    show: plain('places-refused'),
    http2: true,
    test: [
      'test/wire/holdings/places.test.ts',
      'one that reads no refusal takes its own places and loses its connections',
    ],
    proxy: [false, 'it reads answers at once and keeps them itself'],
  },
  {
    id: 'P2',
    what: 'Slow bodies of four addresses take all connections',
    show: plain('places-slow-bodies'),

    test: ['test/wire/holdings/sieges.test.ts', TAKES],
    proxy: [true, 'it passes bodies of RPCs on as they come'],
  },
  {
    id: 'P3',
    what: 'Answers that twelve addresses do not read take the places of all',
    show: plain('places-unread'),
    http2: true,
    test: ['test/wire/holdings/places.test.ts', 'answers that nobody reads at eight addresses leave room for others'],
    proxy: [false, 'it reads answers at once and keeps them itself'],
  },
  {
    id: 'P4',
    what: 'Slow bodies of 64 addresses take all connections',
    show: plain('places-slow-bodies-of-64'),

    test: ['test/wire/holdings/sieges.test.ts', 'behind a trusted proxy, too, no few callers fill the port'],
    proxy: [true, 'it passes bodies of RPCs on as they come'],
  },
  {
    id: 'P5',
    what: 'Slow heads of four addresses take all connections',
    show: plain('places-slow-heads'),

    test: ['test/wire/holdings/sieges.test.ts', TAKES],
    proxy: [false, 'it waits for whole heads'],
  },
  {
    id: 'P6',
    what: 'Watches of 64 addresses take half of all connections',
    show: plain('places-watches'),
    http2: true,
    test: ['test/wire/holdings/places.test.ts', 'the watch that ends for another is of the address that has most'],
    proxy: [true, 'streams of gRPC pass, one connection each'],
  },
  {
    id: 'P7',
    what: 'Slow bodies of a keyed caller at four addresses',
    show: plain('places-keyed'),

    test: ['test/wire/holdings/sieges.test.ts', TAKES],
    proxy: [true, 'it passes bodies of RPCs on as they come'],
  },
];
