/**
 * Reads the TypeScript files of a checkout with the compiler's own parser: their size, imports, exports and functions.
 */
import { globSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { type Node, type SourceFile, SyntaxKind } from 'typescript/unstable/ast';
import { API } from 'typescript/unstable/sync';
import type { Import } from './imports.ts';

/** Lines that a function may have: more cannot be read without scrolling. */
export const MAX_FUNCTION_LINES = 80;

/** A function, method or accessor with a body. */
export interface FunctionShape {
  /** Its own name, or the name of the variable or property that it is the value of. */
  readonly name: string;
  /** `file:line`. */
  readonly place: string;
  /** Lines from its first, without the doc comment, to its last. */
  readonly lines: number;
}

/** What is read of one file. */
export interface Source {
  /** Its path from the root of the checkout. */
  readonly file: string;
  /** The folder at the root: `src`, `test` and so on. */
  readonly layer: string;
  /** The folder in which it is counted: two levels below `src` in the layers that have rooms, one level elsewhere. */
  readonly room: string;
  readonly lines: number;
  /** Imports of other files of the checkout, including those of types and those at run time. */
  readonly imports: readonly Import[];
  /**
   * Names of the values that it declares and exports. Types are left out: they are exported so that callers can name
   * the parts of a signature.
   */
  readonly exportedValues: readonly string[];
  /** What it imports by name, as `file#name`; `file#*` if it may be any name. */
  readonly taken: readonly string[];
  /** Names of what it declares and exports without a doc comment. */
  readonly bareExports: readonly string[];
  readonly functions: readonly FunctionShape[];
}

/** The folders of the service and its tests. */
const SERVICE = ['src', 'test', 'conformance'];

/** Programs that are not part of the compiler's project, since they are compiled with a generated client. */
const OTHER_PROJECTS = 'scripts/sdk/**';

/**
 * Reads all files in these folders of a checkout. @throws Error if one of them is not part of the compiler's project.
 */
export function readSources(checkout: string, layers: readonly string[] = SERVICE): readonly Source[] {
  const api = new API({ cwd: checkout });
  try {
    const [project] = api.updateSnapshot({ openProject: join(checkout, 'tsconfig.json') }).getProjects();
    return globSync(
      layers.map((layer) => `${layer}/**/*.ts`),
      { cwd: checkout, exclude: [OTHER_PROJECTS] },
    )
      .sort()
      .map((file) => {
        const parsed = project?.program.getSourceFile(join(checkout, file));
        if (parsed === undefined) throw new Error(`${file} is not part of the project`);
        return readSource(checkout, file, parsed);
      });
  } finally {
    api.close();
  }
}

function readSource(checkout: string, file: string, parsed: SourceFile): Source {
  const [layer = '', folder, inner] = file.split('/').slice(0, -1);
  const depth = ['src/engine', 'src/wire'].includes(`${layer}/${folder}`) ? [layer, folder, inner] : [layer, folder];
  const imports: Import[] = [];
  const taken: string[] = [];
  const functions: FunctionShape[] = [];
  const visit = (node: Node): void => {
    const specifier = importedBy(node);
    if (specifier?.startsWith('.')) {
      const to = relative(checkout, resolve(checkout, dirname(file), specifier));
      if (to.endsWith('.ts') && !to.startsWith('gen/')) {
        imports.push({ from: file, to });
        taken.push(...namesTaken(node).map((name) => `${to}#${name}`));
      }
    }
    if (FUNCTIONS.has(node.kind) && 'body' in node && node.body !== undefined) {
      const [first, last] = [node.getStart(), node.end].map((at) => parsed.getLineAndCharacterOfPosition(at).line);
      const line = (first as number) + 1;
      functions.push({ name: nameOf(node), place: `${file}:${line}`, lines: (last as number) - line + 2 });
    }
    node.forEachChild(visit);
  };
  visit(parsed);
  return {
    file,
    layer,
    room: depth.filter((part) => part !== undefined).join('/'),
    lines: parsed.text.split('\n').length - 1,
    imports,
    exportedValues: parsed.statements.filter(exportsValue).flatMap(namesOf),
    taken,
    bareExports: parsed.statements.filter(isBareExport).map(nameOf),
    functions,
  };
}

/** Kinds of nodes that are functions. */
const FUNCTIONS: ReadonlySet<SyntaxKind> = new Set([
  SyntaxKind.FunctionDeclaration,
  SyntaxKind.FunctionExpression,
  SyntaxKind.ArrowFunction,
  SyntaxKind.MethodDeclaration,
  SyntaxKind.Constructor,
  SyntaxKind.GetAccessor,
  SyntaxKind.SetAccessor,
]);

/** The module that an import, a re-export or a call of `import()` names. */
function importedBy(node: Node): string | undefined {
  if (node.kind === SyntaxKind.ImportDeclaration || node.kind === SyntaxKind.ExportDeclaration) {
    return /['"]([^'"]+)['"];?$/.exec(node.getText().trim())?.[1];
  }
  return node.kind === SyntaxKind.CallExpression ? /^import\('([^']+)'\)$/.exec(node.getText())?.[1] : undefined;
}

/** The names that an import, a re-export or a call of `import()` takes from a file; `*` if it may be any name. */
function namesTaken(node: Node): readonly string[] {
  const isCall = node.kind === SyntaxKind.CallExpression;
  // In `const { a, b } = await import(…)` and `(await import(…)).a` the text around the call has the names.
  const text = isCall ? node.parent.parent.parent.getText() : node.getText();
  const member = /^\(await import\([^)]*\)\)\.(\w+)$/.exec(text)?.[1];
  if (member !== undefined) return [member];
  const list = (isCall ? /^\{([^}]*)\} = await import\(/ : /\{([^}]*)\}/).exec(text)?.[1];
  return list?.split(',').flatMap((part) => /^\s*(?:type\s+)?(\w+)/.exec(part)?.[1] ?? []) ?? ['*'];
}

/** Whether a statement declares a value and exports it. */
function exportsValue(statement: Node): boolean {
  return isExported(statement) && !TYPES.has(statement.kind);
}

/** Kinds of declarations that have no value at run time. */
const TYPES: ReadonlySet<SyntaxKind> = new Set([SyntaxKind.InterfaceDeclaration, SyntaxKind.TypeAliasDeclaration]);

function isExported(statement: Node): boolean {
  const { modifiers } = statement as { readonly modifiers?: readonly Node[] };
  return modifiers?.some(({ kind }) => kind === SyntaxKind.ExportKeyword) ?? false;
}

/** The names that a declaration declares; `const [A, B] = …` has several. */
function namesOf(statement: Node): readonly string[] {
  return nameOf(statement).match(/\w+/g) ?? [];
}

/** Whether a statement is an export without a doc comment. */
function isBareExport(statement: Node): boolean {
  if (!isExported(statement)) return false;
  const before = statement.getSourceFile().text.slice(statement.pos, statement.getStart());
  // A comment that is followed by an empty line belongs to the file.
  return !/^\/\*\*[\s\S]*?\*\/\n(?!\n)/.test(before.slice(before.lastIndexOf('/**')));
}

/** The name of a declaration, or of the variable or property that an expression is the value of. */
function nameOf(node: Node): string {
  const { name, declarationList } = node as {
    readonly name?: Node;
    readonly declarationList?: { readonly declarations: readonly Node[] };
  };
  if (declarationList !== undefined) return declarationList.declarations.map(nameOf).join(', ');
  if (name !== undefined) return name.getText();
  const parent = (node.parent ?? {}) as { readonly name?: Node };
  return parent.name?.getText() ?? '(anonymous)';
}
