/** "Did you mean …?": the name that somebody probably meant. */

/** Characters by which a name may differ from the one that was meant. */
const MOST_DISTANCE = 3;

/** The name that is most like `asked`, if one is. */
export function nearest(asked: string, names: readonly string[]): string | undefined {
  return (
    names
      .map((name) => ({ name, distance: editDistance(asked, name) }))
      // Where every character differs, a name is not like the other, however short it is.
      .filter(({ name, distance }) => distance <= MOST_DISTANCE && distance < name.length)
      .toSorted((a, b) => a.distance - b.distance)[0]?.name
  );
}

/** How many characters to insert, delete or replace to turn one text into the other (Levenshtein). */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, place) => place);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const exchanged = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(exchanged, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    row = next;
  }
  return row[b.length] as number;
}
