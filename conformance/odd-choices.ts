/** Choices that something on the way might trim, normalise, reorder or take for something else. */
export const ODD_CHOICES: readonly string[] = [
  ...['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'valueOf', 'model', 'choices', 'null', 'true', 'NaN'],
  ...['10', '9', '2', '0', '-1', '01', '1.0', '4294967295'],
  ...[' ', '  ', '\t', '\n', '\r\n', '\u00a0', '\u3000', 'billing', ' billing', 'billing ', 'Billing', 'BILLING'],
  ...[
    'caf\u00e9',
    'cafe\u0301',
    '\u{1f4e6} parcel',
    '👩‍👩‍👧‍👦',
    '🇩🇪',
    '☺',
    '☺\ufe0f',
    '\u{10ffff}',
    '\ue000',
    '\ud7ff',
  ],
  ...['[SEP]', '[CLS]', '[UNK]', '[PAD]', '[MASK]', '</s>', '<s>', '<|endoftext|>', '##ing'],
  ...['\0', '\u0000\u001f', '\u007f', '\u2028', '\u2029', '\ufeff', '\ufffd', '\uffff', 'line\nbreak\ttab'],
  ...['"', "'", '\\', '\\n', '\\u0061', '/', '{}', '[]', '%00', 'a=b&c', '<b>&amp;</b>', 'a "quoted" \\ one'],
  ...['שלום', 'مرحبا', '\u202eabc', '\u200b', '\u200f'],
];
