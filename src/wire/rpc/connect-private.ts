/**
 * The exports of Connect that its authors mark as private: they may change in any release, which is why the exact
 * version is pinned, and why no other file imports them.
 */

export type { UniversalHandler, UniversalServerRequest, UniversalServerResponse } from '@connectrpc/connect/protocol';
export { errorFromJsonBytes, errorToJsonBytes } from '@connectrpc/connect/protocol-connect';
export { findTrailerError, setTrailerStatus } from '@connectrpc/connect/protocol-grpc';
