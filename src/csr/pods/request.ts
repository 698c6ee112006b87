import { given } from '../../errors/given.ts'
import { rfc3339 } from '../../pki/rfc3339.ts'
import { ageSecondsOf, issuedCertificate } from '../life.ts'
import { countedByState, inOrderOfAttention } from '../request-order.ts'
import type { ObjectCondition } from '../requests-api.ts'
import type { PodRequest, PodRequestList, PodRequestState } from './report.ts'

/** The fields of a PodCertificateRequest in v1 and v1beta1 that kcert reads. */
export interface PodCertificateRequest {
  readonly metadata: {
    readonly name: string
    readonly namespace?: string
    readonly uid?: string
    readonly creationTimestamp?: string
  }
  readonly spec: {
    readonly signerName: string
    readonly podName: string
    readonly serviceAccountName: string
    readonly nodeName: string
    readonly maxExpirationSeconds?: number
  }
  readonly status?: {
    readonly conditions?: readonly ObjectCondition[]
    /** PEM. */
    readonly certificateChain?: string
    readonly beginRefreshAt?: string
  }
}

/** In the order of urgency. */
export const podRequestStates = ['pending', 'failed', 'denied', 'issued'] as const satisfies PodRequestState[]

// kube-controller-manager deletes them in any state (cmd/kube-controller-manager/app/certificates.go, every 5 minutes).
const keptMs = 15 * 60_000

/** Returns an object as reports show it. */
export function podRequest({ metadata, spec, status = {} }: PodCertificateRequest, now: Date): PodRequest {
  const { name, namespace = '', uid, creationTimestamp } = metadata
  const { signerName, podName, serviceAccountName, nodeName, maxExpirationSeconds } = spec
  const { conditions = [], certificateChain = '', beginRefreshAt } = status
  const ageSeconds = ageSecondsOf(creationTimestamp, now)
  const issued = issuedCertificate({ certificate: Buffer.from(certificateChain) })
  return {
    namespace,
    name,
    ...given({ uid, creationTimestamp, ageSeconds }),
    ...(ageSeconds !== undefined && {
      garbageCollection: {
        after: rfc3339(new Date(Date.parse(creationTimestamp ?? '') + keptMs)),
        reason: '15 minutes after its creation',
      },
    }),
    state: stateOf(conditions, certificateChain),
    conditions: [...conditions],
    signerName,
    podName,
    serviceAccountName,
    nodeName,
    ...given({
      maxExpirationSeconds,
      notAfter: issued && rfc3339(issued.notAfter),
      beginRefreshAt,
      fault: issued === undefined && certificateChain !== '' ? 'no certificate in PEM' : undefined,
    }),
  }
}

/** The API server accepts at most one of these conditions, and a chain only with Issued. */
function stateOf(conditions: readonly ObjectCondition[], certificateChain: string): PodRequestState {
  const has = (type: string): boolean => conditions.some((one) => one.type === type && one.status === 'True')
  if (has('Denied')) return 'denied'
  if (has('Failed')) return 'failed'
  return certificateChain === '' ? 'pending' : 'issued'
}

export function podRequestList(requests: readonly PodRequest[], now: Date): PodRequestList {
  return {
    apiVersion: 'kcert/v1',
    kind: 'PodCertificateRequestList',
    generatedAt: rfc3339(now),
    requests: inOrderOfAttention(requests, podRequestStates),
    summary: countedByState(requests, podRequestStates),
  }
}
