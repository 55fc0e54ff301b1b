/** The repository's pages as their readers have them. */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** The folder of the repository, with a slash behind it. */
export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

export interface Page {
  /** Its path in the repository. */
  readonly name: string;
  readonly text: string;
}

/** The text of a file, by its path in the repository. */
export const textOf = (name: string): string => readFileSync(`${ROOT}${name}`, 'utf8');

/** The pages among so many paths, of which one that ends in a slash stands for what is in that folder. */
export const pagesOf = (...paths: readonly string[]): readonly Page[] =>
  paths
    .flatMap((path) => (path.endsWith('/') ? readdirSync(`${ROOT}${path}`).map((name) => `${path}${name}`) : path))
    .filter((name) => name.endsWith('.md'))
    .map((name) => ({ name, text: textOf(name) }));

/** The blocks of code of a page that are in a language, in order. */
export const blocksOf = (name: string, language = 'sh'): readonly string[] =>
  [...textOf(name).matchAll(new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\`$`, 'gm'))].map(([, block = '']) =>
    block.trim(),
  );

/** What the headings of a page are called in links: `## 9. Versioning` is `#9-versioning`. */
export function anchorsOf(text: string): ReadonlySet<string> {
  const headings = [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => heading.toLowerCase());
  return new Set(headings.map((heading) => heading.replace(/[^\p{L}\p{N}_ -]/gu, '').replaceAll(' ', '-')));
}
