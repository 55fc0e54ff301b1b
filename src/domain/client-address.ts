/**
 * The address by which an anonymous caller is counted: an IPv4 address as it is, also when it comes mapped into IPv6;
 * of an IPv6 address the /64, because one subscriber has at least that many. `X-Forwarded-For` is believed only from
 * trusted proxies: read from the right, it is the first address that is not itself a trusted proxy's. Whoever connects
 * by a Unix socket has the address `unix`.
 */
import { BlockList, isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import type { Parsed } from './settings.ts';

/** The address of peers on this machine that come by a Unix socket. */
export const LOCAL_PEER = 'unix';

/** Addresses of proxies whose `X-Forwarded-For` is believed. */
export class TrustedProxies {
  readonly #ranges: BlockList;
  readonly #local: boolean;

  /** `local`: whether whoever comes by a Unix socket is one of them. */
  constructor(ranges: BlockList, local: boolean) {
    this.#ranges = ranges;
    this.#local = local;
  }

  /** Whether an address, in any form that `isIP` accepts, is one of them. */
  has(address: string): boolean {
    const plain = unmap(address);
    const family = isIP(plain);
    if (family === 0) return this.#local && address === LOCAL_PEER;
    return this.#ranges.check(plain, family === 4 ? 'ipv4' : 'ipv6');
  }
}

/** No proxy is trusted. */
export const NO_PROXIES = new TrustedProxies(new BlockList(), false);

/** Reads a list of addresses, CIDR ranges and `unix`, separated by commas or spaces. */
export function parseTrustedProxies(text: string): Parsed<TrustedProxies> {
  const ranges = new BlockList();
  const items = text.split(/[\s,]+/).filter((part) => part !== '');
  const local = items.includes(LOCAL_PEER);
  for (const item of items) {
    if (item === LOCAL_PEER) continue;
    const [address = '', bits, ...rest] = item.split('/');
    const family = isIP(address);
    if (family === 0 || rest.length > 0) return { problem: `'${item}' is neither an IP address nor a CIDR range` };
    const type = family === 4 ? 'ipv4' : 'ipv6';
    if (bits === undefined) {
      ranges.addAddress(address, type);
      continue;
    }
    const width = /^\d{1,3}$/.test(bits) ? Number(bits) : Number.NaN;
    if (!(width <= (family === 4 ? 32 : 128))) return { problem: `'${item}' has no valid prefix length` };
    ranges.addSubnet(address, width, type);
  }
  return { value: new TrustedProxies(ranges, local) };
}

/**
 * The client's address: `peer` is the socket's, `forwarded` the value of `X-Forwarded-For` (several headers joined by
 * commas), if any. Never throws; an unreadable entry ends the search at the last address that was readable.
 */
export function clientAddress(
  peer: string | undefined,
  forwarded: string | readonly string[] | undefined,
  proxies: TrustedProxies,
): string {
  let address = unmap(peer ?? '');
  if (forwarded !== undefined && proxies.has(address)) {
    for (const hop of forwarded.toString().split(',').reverse()) {
      const readable = bare(hop.trim());
      if (readable === undefined) break;
      address = readable;
      if (!proxies.has(address)) break;
    }
  }
  return isIP(address) === 6 ? prefix64(address) : address;
}

/** An address without its port, brackets and zone, or undefined if the text is no address. */
function bare(text: string): string | undefined {
  const inner =
    /^\[(?<six>[^\]]*)\](?::\d+)?$/.exec(text)?.groups?.six ?? /^(?<four>[\d.]+):\d+$/.exec(text)?.groups?.four ?? text;
  const plain = unmap(inner);
  return isIP(plain) === 0 ? undefined : plain;
}

/** `::ffff:192.0.2.1` and its hexadecimal form become `192.0.2.1`; a zone (`%eth0`) is dropped. */
function unmap(address: string): string {
  const [plain = ''] = address.split('%', 1);
  return isIP(plain) === 6 ? ipaddr.process(plain).toString() : plain;
}

function prefix64(address: string): string {
  const groups = ipaddr.IPv6.parse(address).parts.slice(0, 4);
  return `${groups.map((group) => group.toString(16)).join(':')}::/64`;
}
