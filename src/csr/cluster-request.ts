import { given } from '../errors/given.ts'
import { rfc3339 } from '../pki/rfc3339.ts'
import {
  ageSecondsOf,
  collectionOf,
  conditionText,
  issuedCertificate,
  requestStates,
  stateOf,
} from './life.ts'
import { requestFields } from './request-fields.ts'
import { countedByState, inOrderOfAttention } from './request-order.ts'
import type { ClusterRequest, RequestList } from './request-report.ts'
import { readRequestContent, type SigningRequest } from './signing-request.ts'

/** Returns an object as reports show it. */
export function clusterRequest(object: SigningRequest, now: Date): ClusterRequest {
  const { request, fault } = readRequestContent(object.request)
  const issued = issuedCertificate(object)
  const garbageCollection = collectionOf(object, issued)
  const { uid, creationTimestamp, expirationSeconds, username } = object
  return {
    name: object.name ?? '',
    ...given({ uid, creationTimestamp, ageSeconds: ageSecondsOf(creationTimestamp, now) }),
    state: stateOf(object),
    condition: conditionText(object),
    conditions: [...object.conditions],
    signerName: object.signerName,
    usages: [...object.usages],
    ...given({ expirationSeconds, username }),
    groups: [...object.groups],
    labels: { ...object.labels },
    ...(request === undefined ? { fault: fault.detail } : { request: requestFields(request) }),
    ...given({
      notAfter: issued && rfc3339(issued.notAfter),
      garbageCollection: garbageCollection && {
        ...garbageCollection,
        after: rfc3339(garbageCollection.after),
      },
    }),
  }
}

/** Returns the list of requests: first those that need attention, the oldest first. */
export function requestList(requests: readonly ClusterRequest[], now: Date): RequestList {
  return {
    apiVersion: 'kcert/v1',
    kind: 'RequestList',
    generatedAt: rfc3339(now),
    requests: inOrderOfAttention(requests, requestStates),
    summary: countedByState(requests, requestStates),
  }
}
