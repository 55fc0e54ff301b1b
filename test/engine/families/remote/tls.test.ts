/** Connections that are encrypted, and servers and clients that prove who they are. */
import { copyFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import test from 'ava';
import { createInferenceClient } from '../../../../src/engine/families/remote/grpc/client.ts';
import { readCredentials } from '../../../../src/engine/families/remote/server-options.ts';
import { makeCertificate } from '../../../support/certificates.ts';
import { job, startEngine, terms } from '../../support/engine.ts';
import { startInferenceServer } from '../../support/inference-server.ts';
import { encoderGraph, modelsFolder } from '../../support/packages.ts';
import { writeInferencePackage } from '../../support/remote-packages.ts';

const own = makeCertificate('server');
const client = makeCertificate('client');
const foreign = makeCertificate('foreign');
const TLS = { cert: own.cert, key: own.key, ca: client.cert, requestCert: true, rejectUnauthorized: true };
const SERVED = { graph: encoderGraph(), output: 'embedding', tls: TLS };
const PROOF = { certificate: client.certFile, key: client.keyFile };

test.serial('a server is believed by its CA and its name, a client by its certificate', async (t) => {
  const server = await startInferenceServer(t, SERVED);
  const port = server.address.split(':')[1];
  const ready = async (tls: object | undefined, host = 'localhost'): Promise<boolean> => {
    const all = { ca: undefined, certificate: undefined, key: undefined, serverName: undefined };
    const files = await readCredentials(tls && { ...all, ...tls }, dirname(own.certFile));
    const connection = createInferenceClient({ address: `${host}:${port}`, tls: files, messageBytes: 65_536 });
    try {
      return await connection.serverReady({ signal: new AbortController().signal, within: 20_000 });
    } catch {
      return false;
    } finally {
      connection.close();
    }
  };
  t.true(await ready({ ca: own.certFile, ...PROOF }));
  t.true(await ready({ ca: own.certFile, ...PROOF, serverName: 'localhost' }, '127.0.0.1'));
  const nameless = ready({ ca: own.certFile, ...PROOF }, '127.0.0.1');
  await t.throwsAsync(nameless, { message: /server_name must name the server/ });
  t.true(await ready({ ca: 'cert.pem', ...PROOF }), 'a path in the folder');
  t.true(await ready({ ca: own.certFile, ...PROOF, serverName: 'localhost' }));
  t.false(await ready({ ca: own.certFile, ...PROOF, serverName: 'elsewhere.example' }), 'another name');
  t.false(await ready({ ca: foreign.certFile, ...PROOF }), 'another CA');
  t.false(await ready(PROOF), 'the CAs of the system');
  t.false(await ready({ ca: own.certFile }), 'no certificate');
  t.false(
    await ready({ ca: own.certFile, certificate: foreign.certFile, key: foreign.keyFile }),
    'a foreign certificate',
  );
  t.false(await ready(undefined), 'in clear');
  await t.throwsAsync(ready({ ca: '/nowhere/ca.pem' }), {
    message: /tls\.ca: '\/nowhere\/ca\.pem' cannot be read \(ENOENT\)/,
  });
});

test.serial('a package that is moved elsewhere gets its server from the operator', async (t) => {
  const server = await startInferenceServer(t, SERVED);
  const modelsDir = await modelsFolder(t);
  const there = { address: 'nowhere.example:1', tls: { ca: 'ca.pem', server_name: 'localhost', ...PROOF } };
  const folder = await writeInferencePackage(modelsDir, '', { options: { server: there } });
  await copyFile(own.certFile, join(folder, 'ca.pem'));
  const inferenceServers = new Map([
    ['remote', 'nowhere.example:2'],
    ['remote@r1', server.address],
  ]);
  const engine = await startEngine(t, { modelsDir, inferenceServers, largestRequestMs: 600_000 });
  t.like(await engine.score(job({ model: 'remote' }), terms()), { kind: 'scored' });
});
