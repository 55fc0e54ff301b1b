/**
 * Products of matrices, in doubles and always in the same order, so that equal numbers in give equal numbers out, bit
 * for bit. Row-major.
 */

/**
 * out [rows, columns] = a [rows, inner] · b [columns, inner]ᵀ. Blocks of two rows by four columns: eight sums that do
 * not wait for each other, and each number that is read is used more than once.
 */
export function timesTransposed(
  a: Float64Array,
  b: Float64Array,
  out: Float64Array,
  { rows, columns, inner }: { readonly rows: number; readonly columns: number; readonly inner: number },
): void {
  const wholeRows = rows - (rows % 2);
  const wholeColumns = columns - (columns % 4);
  for (let row = 0; row < wholeRows; row += 2) {
    const a0 = row * inner;
    const a1 = a0 + inner;
    for (let column = 0; column < wholeColumns; column += 4) {
      const b0 = column * inner;
      const [b1, b2, b3] = [b0 + inner, b0 + 2 * inner, b0 + 3 * inner];
      let [s00, s01, s02, s03, s10, s11, s12, s13] = [0, 0, 0, 0, 0, 0, 0, 0];
      for (let i = 0; i < inner; i++) {
        const x = a[a0 + i] as number;
        const y = a[a1 + i] as number;
        const p = b[b0 + i] as number;
        const q = b[b1 + i] as number;
        const r = b[b2 + i] as number;
        const s = b[b3 + i] as number;
        s00 += x * p;
        s01 += x * q;
        s02 += x * r;
        s03 += x * s;
        s10 += y * p;
        s11 += y * q;
        s12 += y * r;
        s13 += y * s;
      }
      const top = row * columns + column;
      out[top] = s00;
      out[top + 1] = s01;
      out[top + 2] = s02;
      out[top + 3] = s03;
      const below = top + columns;
      out[below] = s10;
      out[below + 1] = s11;
      out[below + 2] = s12;
      out[below + 3] = s13;
    }
  }
  for (let row = 0; row < rows; row++) {
    for (let column = row < wholeRows ? wholeColumns : 0; column < columns; column++) {
      let sum = 0;
      for (let i = 0; i < inner; i++) sum += (a[row * inner + i] as number) * (b[column * inner + i] as number);
      out[row * columns + column] = sum;
    }
  }
}

/** The transpose [columns, rows] of a matrix [rows, columns]. */
export function transposed(matrix: Float64Array, rows: number, columns: number): Float64Array {
  const out = new Float64Array(matrix.length);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++)
      out[column * rows + row] = matrix[row * columns + column] as number;
  }
  return out;
}

/** The lower triangle L with L Lᵀ = a symmetric positive definite matrix [size, size]. */
export function cholesky(matrix: Float64Array, size: number): Float64Array {
  const lower = new Float64Array(size * size);
  for (let row = 0; row < size; row++) {
    for (let column = 0; column <= row; column++) {
      let rest = matrix[row * size + column] as number;
      for (let i = 0; i < column; i++) rest -= (lower[row * size + i] as number) * (lower[column * size + i] as number);
      lower[row * size + column] = row === column ? Math.sqrt(rest) : rest / (lower[column * size + column] as number);
    }
  }
  return lower;
}

/** The inverse of a lower triangle [size, size], which is a lower triangle too. */
export function inverseOfLower(lower: Float64Array, size: number): Float64Array {
  const inverse = new Float64Array(size * size);
  for (let row = 0; row < size; row++) {
    const own = lower[row * size + row] as number;
    for (let i = 0; i < row; i++) {
      const times = (lower[row * size + i] as number) / own;
      for (let column = 0; column <= i; column++)
        inverse[row * size + column] =
          (inverse[row * size + column] as number) - times * (inverse[i * size + column] as number);
    }
    inverse[row * size + row] = 1 / own;
  }
  return inverse;
}

/** The product a [rows, inner] · b [columns, inner]ᵀ, in a matrix of its own. */
export function product(
  a: Float64Array,
  b: Float64Array,
  sizes: { readonly rows: number; readonly columns: number; readonly inner: number },
): Float64Array {
  const out = new Float64Array(sizes.rows * sizes.columns);
  timesTransposed(a, b, out, sizes);
  return out;
}

/** The mean of rows [rows, width], and the rows less their mean. */
export function centredRows(rows: Float64Array, width: number) {
  const mean = new Float64Array(width);
  const count = rows.length / width;
  for (const [place, value] of rows.entries()) mean[place % width] = (mean[place % width] as number) + value / count;
  return { mean, centred: rows.map((value, place) => value - (mean[place % width] as number)) };
}

/** The mean of values; 0 of none. */
export function meanOf(values: Float64Array | readonly number[]): number {
  let sum = 0;
  for (const value of values) sum += value;
  return sum / Math.max(1, values.length);
}
