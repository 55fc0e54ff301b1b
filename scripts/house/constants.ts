/**
 * Finds the constants of a module: declarations of plain data that is written out in its text, whose names are
 * `UPPER_CASE`.
 */
import { type Node, SyntaxKind } from 'typescript/unstable/ast';

const UPPER_CASE = /^[A-Z][A-Z0-9_]*$/;

/** The names of a statement's constants that are not `UPPER_CASE`. */
export function misnamedConstants(statement: Node): readonly Node[] {
  const { declarationList } = statement as {
    readonly declarationList?: Node & { readonly declarations: readonly Node[] };
  };
  if (declarationList === undefined || !declarationList.getText().startsWith('const')) return [];
  return declarationList.declarations.flatMap((declaration) => {
    const { name, initializer } = declaration as { readonly name?: Node; readonly initializer?: Node };
    if (name?.kind !== SyntaxKind.Identifier || UPPER_CASE.test(name.getText())) return [];
    return initializer !== undefined && isData(initializer) ? [name] : [];
  });
}

/**
 * Whether an expression is data: a primitive literal, a regular expression, a list or a table of values. An empty list
 * is state that fills, a table of functions has behaviour, and an awaited value is a result.
 */
function isData(expression: Node): boolean {
  const node = bare(expression);
  if (LITERALS.has(node.kind)) return true;
  if (awaits(node)) return false;
  switch (node.kind) {
    case SyntaxKind.PrefixUnaryExpression:
      return isData((node as Node & { readonly operand: Node }).operand);
    case SyntaxKind.BinaryExpression: {
      const { left, right } = node as Node & { readonly left: Node; readonly right: Node };
      return [left, right].every((side) => isData(side) || UPPER_CASE.test(side.getText()));
    }
    case SyntaxKind.ArrayLiteralExpression:
      return (node as Node & { readonly elements: readonly Node[] }).elements.length > 0;
    case SyntaxKind.ObjectLiteralExpression: {
      const { properties } = node as Node & { readonly properties: readonly Node[] };
      return properties.length > 0 && !properties.some(behaves);
    }
    case SyntaxKind.NewExpression:
      return /^new (?:Set|Map)(?:<.*>)?\(\[[\s\S]*\S[\s\S]*\]\)$/.test(node.getText());
    default:
      return false;
  }
}

/** Literals that are data by themselves. */
const LITERALS: ReadonlySet<SyntaxKind> = new Set([
  SyntaxKind.StringLiteral,
  SyntaxKind.NumericLiteral,
  SyntaxKind.BigIntLiteral,
  SyntaxKind.NoSubstitutionTemplateLiteral,
  SyntaxKind.RegularExpressionLiteral,
  SyntaxKind.TrueKeyword,
  SyntaxKind.FalseKeyword,
]);

/** Expressions around another that do not change its value. */
const WRAPPERS: ReadonlySet<SyntaxKind> = new Set([
  SyntaxKind.AsExpression,
  SyntaxKind.SatisfiesExpression,
  SyntaxKind.ParenthesizedExpression,
]);

function bare(node: Node): Node {
  return WRAPPERS.has(node.kind) ? bare((node as Node & { readonly expression: Node }).expression) : node;
}

function awaits(node: Node): boolean {
  let found = node.kind === SyntaxKind.AwaitExpression;
  if (!FUNCTIONS.has(node.kind)) {
    node.forEachChild((child) => {
      found ||= awaits(child);
    });
  }
  return found;
}

const FUNCTIONS: ReadonlySet<SyntaxKind> = new Set([SyntaxKind.ArrowFunction, SyntaxKind.FunctionExpression]);

/** Whether a member of an object is a function. */
function behaves(member: Node): boolean {
  const { initializer } = member as { readonly initializer?: Node };
  return member.kind === SyntaxKind.PropertyAssignment
    ? initializer !== undefined && FUNCTIONS.has(bare(initializer).kind)
    : METHODS.has(member.kind);
}

/** Members of an object that are functions. */
const METHODS: ReadonlySet<SyntaxKind> = new Set([
  SyntaxKind.MethodDeclaration,
  SyntaxKind.GetAccessor,
  SyntaxKind.SetAccessor,
]);
