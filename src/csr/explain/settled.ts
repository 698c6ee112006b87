import { commandLine } from '../../errors/command-line.ts'
import { quoted } from '../quoting.ts'
import { anew, type CauseRow, reasonIn, wordOf } from './cause.ts'
import type { Situation } from './situation.ts'

// What has come to an end, and what no later step can mend.

/** Causes of objects that will not change any more, and of those that nobody can use. */
export const settledCauses: readonly CauseRow[] = [
  {
    id: 'being-deleted',
    weight: 'stuck',
    holds: ({ object }) => object.deletionTimestamp !== undefined,
    says: (situation) => ({
      detail: 'the object is being deleted; a finalizer keeps it until its owner lets go',
      next: 'see who holds it, and submit the request again under another name',
      commands: [commandLine`kubectl get csr ${wordOf(situation)} -o jsonpath='{.metadata.finalizers}'`],
    }),
  },
  {
    id: 'denied',
    weight: 'stuck',
    holds: ({ state }) => state === 'denied',
    says: (situation) => ({
      detail: `denied${by(situation)}${reasonIn([...situation.object.conditions], 'Denied')}`,
      next: 'a denial is never taken back: correct what it names, then delete the object and submit the request again',
      commands: anew(situation),
    }),
  },
  {
    id: 'signer-refused',
    weight: 'stuck',
    holds: ({ state }) => state === 'failed',
    says: (situation) => ({
      detail: `the signer refused it for good${reasonIn([...situation.object.conditions], 'Failed')}${brokenText(situation)}`,
      next: [
        situation.broken[0]?.next ?? 'correct what the message names',
        'then delete the object and submit the request again',
      ].join('; '),
      commands: anew(situation),
    }),
  },
  {
    id: 'certificate-unreadable',
    weight: 'stuck',
    holds: ({ state, certificate }) => state === 'issued' && certificate === undefined,
    says: (situation) => ({
      detail: 'what the signer uploaded as the certificate cannot be read',
      next: 'look at it, and repair the signer: a certificate that is there is never replaced',
      commands: [
        commandLine`kubectl get csr ${wordOf(situation)} -o jsonpath='{.status.certificate}' | base64 -d | kcert inspect -`,
        ...anew(situation),
      ],
    }),
  },
  {
    id: 'certificate-of-another-key',
    weight: 'stuck',
    holds: ({ certificate, request }) =>
      certificate !== undefined &&
      request !== undefined &&
      certificate.publicKey.sha256 !== request.publicKey.sha256,
    says: (situation) => ({
      detail: 'a certificate is issued, but for another key than that of the request: nobody can use it',
      next: 'repair the signer, then delete the object and submit the request again',
      commands: anew(situation),
    }),
  },
  {
    id: 'certificate-expired',
    weight: 'stuck',
    holds: ({ certificate, now }) => certificate !== undefined && certificate.notAfter <= now,
    says: (situation) => ({
      detail: `its certificate expired at ${situation.certificate!.notAfter.toISOString().slice(0, 19)}Z; kube-controller-manager will remove the object`,
      next: 'delete the object and submit the request again',
      commands: anew(situation),
    }),
  },
  {
    id: 'request-unreadable',
    weight: 'stuck',
    holds: ({ fault, state }) => fault !== undefined && state !== 'issued',
    says: (situation) => ({
      detail: `nobody can sign it: ${situation.fault!.detail}`,
      next: [situation.fault!.next, 'delete the object first'].join('; '),
      commands: anew(situation),
    }),
  },
  {
    id: 'no-such-signer',
    weight: 'stuck',
    holds: ({ signedBy, state }) => signedBy === 'nobody' && (state === 'pending' || state === 'approved'),
    says: (situation) => ({
      detail: `no signer of Kubernetes is called ${quoted(situation.object.signerName)}: it would wait for ever, approved or not`,
      next: 'submit the request again for a signer that there is: kubernetes.io/kube-apiserver-client, kubernetes.io/kube-apiserver-client-kubelet, kubernetes.io/kubelet-serving, or one of your own domain',
      commands: anew(situation),
    }),
  },
  {
    // The signer of EKS passes over objects whose names begin as those of kubelets do (aws/containers-roadmap#2079).
    id: 'name-passed-over',
    weight: 'stuck',
    holds: ({ object, state }) =>
      object.signerName.startsWith('beta.eks.amazonaws.com/') &&
      object.name?.startsWith('csr-') === true &&
      (state === 'pending' || state === 'approved'),
    says: (situation) => ({
      detail: `${situation.object.signerName} never signs an object whose name begins with "csr-"`,
      next: 'submit the request again under another name',
      commands: anew(situation),
    }),
  },
]

function by({ decidedBy }: Situation): string {
  return decidedBy === undefined ? '' : ` by ${quoted(decidedBy)}`
}

function brokenText({ broken }: Situation): string {
  return broken[0] === undefined ? '' : `; ${broken[0].detail}`
}
