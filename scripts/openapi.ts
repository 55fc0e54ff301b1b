/**
 * Writes the OpenAPI 3.1 document of the REST contract, from the protos (routes, fields and their rules, comments), the
 * procedures (who may call) and the error table: `node scripts/openapi.ts [FILE]`, by default `gen/openapi.json`.
 */
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { readComments } from './openapi/comments.ts';
import { createDocument } from './openapi/document.ts';

const file = process.argv[2] ?? fileURLToPath(new URL('../gen/openapi.json', import.meta.url));
writeFileSync(file, `${JSON.stringify(createDocument(readComments()), null, 2)}\n`);
