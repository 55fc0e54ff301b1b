/** Every check of the kit, in the order in which they are made: what the others build on comes first. */
import type { Check } from './check.ts';
import { catalogRequestChecks } from './checks/catalog-requests.ts';
import { catalogChecks } from './checks/catalogs.ts';
import { connectChecks } from './checks/connect.ts';
import { decisionRequestChecks } from './checks/decision-requests.ts';
import { decisionChecks } from './checks/decisions.ts';
import { grpcChecks } from './checks/grpc.ts';
import { healthAndRouteChecks } from './checks/health-and-routes.ts';
import { bodyChecks } from './checks/json-bodies.ts';
import { keyChecks } from './checks/keys.ts';
import { modelChecks } from './checks/models.ts';

/** All of them; their ids are unique. */
export const checks: readonly Check[] = [
  ...healthAndRouteChecks,
  ...modelChecks,
  ...decisionChecks,
  ...decisionRequestChecks,
  ...bodyChecks,
  ...keyChecks,
  ...catalogChecks,
  ...catalogRequestChecks,
  ...grpcChecks,
  ...connectChecks,
];
