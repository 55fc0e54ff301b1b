/**
 * Every check of the kit, in the order in which they run: those that the others rely on come first.
 * A file of its own: it is the kit's face, to the command and to tests.
 */
import type { Check } from './check.ts';
import { CATALOG_REQUEST_CHECKS } from './checks/catalog-requests.ts';
import { CATALOG_CHECKS } from './checks/catalogs.ts';
import { CONNECT_CHECKS } from './checks/connect.ts';
import { DECISION_REQUEST_CHECKS } from './checks/decision-requests.ts';
import { DECISION_CHECKS } from './checks/decisions.ts';
import { GRPC_CHECKS } from './checks/grpc.ts';
import { HEALTH_AND_ROUTE_CHECKS } from './checks/health-and-routes.ts';
import { BODY_CHECKS } from './checks/json-bodies.ts';
import { KEY_CHECKS } from './checks/keys.ts';
import { MODEL_CHECKS } from './checks/models.ts';

/** All checks. Their ids are unique. */
export const CHECKS: readonly Check[] = [
  ...HEALTH_AND_ROUTE_CHECKS,
  ...MODEL_CHECKS,
  ...DECISION_CHECKS,
  ...DECISION_REQUEST_CHECKS,
  ...BODY_CHECKS,
  ...KEY_CHECKS,
  ...CATALOG_CHECKS,
  ...CATALOG_REQUEST_CHECKS,
  ...GRPC_CHECKS,
  ...CONNECT_CHECKS,
];
