import { commandLine } from '../../errors/command-line.ts'
import { type CauseRow, explanationOf, reasonIn, signersText } from '../explain/cause.ts'
import type { ExplainFacts, Holder } from '../explain/facts.ts'
import { asking, type UnknownFact } from '../explain/situation.ts'
import { quoted } from '../quoting.ts'
import { isKubernetesDomain } from '../signer-name.ts'
import type { PodExplanation, PodRequest } from './report.ts'

interface Situation {
  readonly request: PodRequest
  readonly now: Date
  /** Who may sign for the signer; undefined when unavailable or not needed. */
  readonly signers: readonly Holder[] | undefined
}

// A running signer responds at once. kubelets create another request only once the object is gone.
const signingSeconds = 30

const pending =
  (holds: CauseRow<Situation>['holds']): CauseRow<Situation>['holds'] =>
  (situation) =>
    situation.request.state === 'pending' && !isUnsigned(situation) && holds(situation)

const isUnsigned = ({ request }: Situation): boolean => isKubernetesDomain(request.signerName)

const isNew = ({ request: { ageSeconds = 0 } }: Situation): boolean => ageSeconds < signingSeconds

/** The fix for each reason of a denial that Kubernetes defines (k8s.io/api certificates/v1). */
const corrections: Readonly<Record<string, string>> = {
  UnsupportedKeyType:
    'set keyType of the podCertificate source in the pod to a key type that the signer supports',
  InvalidUnverifiedUserAnnotations:
    'correct userAnnotations of the podCertificate source in the pod: the signer documents the keys that it supports',
}

const again = 'then delete the pod and create it again, because the kubelet does not retry for this one'

const podCommands = ({ request: { namespace, podName } }: Situation): string[] => [
  commandLine`kubectl -n ${namespace} get pod ${podName} -o yaml`,
]

const causes: readonly CauseRow<Situation>[] = [
  {
    id: 'denied',
    holds: ({ request }) => request.state === 'denied',
    detail: ({ request }) => `the signer denied it permanently${reasonIn(request.conditions, 'Denied')}`,
    fix: (situation) => [correctionOf(situation) ?? 'correct what the message names', again].join('; '),
    commands: podCommands,
  },
  {
    id: 'signer-refused',
    holds: ({ request }) => request.state === 'failed',
    detail: ({ request }) => `the signer failed to issue it${reasonIn(request.conditions, 'Failed')}`,
    fix: ['correct what the message names', again].join('; '),
    commands: podCommands,
  },
  {
    id: 'certificate-unreadable',
    holds: ({ request }) => request.fault !== undefined,
    detail: ({ request }) => `status.certificateChain cannot be read: ${request.fault}`,
    fix: 'repair the signer; Kubernetes never replaces an issued certificate',
    commands: ({ request: { namespace, name } }) =>
      commandLine`kubectl -n ${namespace} get podcertificaterequest ${name} -o jsonpath='{.status.certificateChain}'`,
  },
  {
    id: 'certificate-expired',
    holds: ({ request: { notAfter }, now }) => Date.parse(notAfter ?? '') <= now.getTime(),
    detail: ({ request }) => `its certificate expired at ${request.notAfter}`,
    fix: 'read the events of the pod to see why the kubelet has not requested the next one',
    commands: ({ request: { namespace, podName } }) =>
      commandLine`kubectl -n ${namespace} describe pod ${podName}`,
  },
  {
    id: 'no-such-signer',
    holds: (situation) => situation.request.state === 'pending' && isUnsigned(situation),
    detail: ({ request }) =>
      `no signer exists for ${quoted(request.signerName)}: Kubernetes up to 1.37 has no built-in signer for pod certificates`,
    fix: ['set signerName of the podCertificate source in the pod to an installed signer', again].join('; '),
    commands: podCommands,
  },
  {
    id: 'signer-absent',
    holds: pending(({ signers }) => signers?.length === 0),
    detail: ({ request }) =>
      `no program has the RBAC right to sign for ${quoted(request.signerName)}: its signer is not installed, or runs as cluster admin`,
    fix: 'install the signer; the kubelet submits a new request after this one is deleted',
  },
  {
    id: 'signer-signs-now',
    weight: 'waiting',
    holds: pending((situation) => situation.signers?.length !== 0 && isNew(situation)),
    detail: ({ signers }) => `it was created a moment ago${signersText(signers)}`,
    fix: 'wait a few seconds',
  },
  {
    id: 'signer-has-not-signed',
    holds: pending((situation) => situation.signers?.length !== 0 && !isNew(situation)),
    detail: ({ request, signers }) =>
      `the signer for ${quoted(request.signerName)} has not answered${signersText(signers)}`,
    fix: 'read the logs of that signer; the kubelet submits a new request after this one is deleted',
  },
]

/** Returns why a PodCertificateRequest is in its state, and what to do. */
export async function explainPodRequest(
  request: PodRequest,
  facts: Pick<ExplainFacts, 'findHolders'>,
  now: Date,
): Promise<PodExplanation> {
  const open: UnknownFact[] = []
  const isNeeded = request.state === 'pending' && !isKubernetesDomain(request.signerName)
  const signers = isNeeded
    ? await asking(open)('who may sign', () => facts.findHolders('sign', request.signerName))
    : undefined
  return {
    apiVersion: 'kcert/v1',
    kind: 'PodCertificateRequestExplanation',
    request,
    ...explanationOf(causes, { request, now, signers }, request.state, open),
  }
}

function correctionOf({ request }: Situation): string | undefined {
  const { reason = '' } = request.conditions.find(({ type }) => type === 'Denied') ?? {}
  return Object.hasOwn(corrections, reason) ? corrections[reason] : undefined
}
