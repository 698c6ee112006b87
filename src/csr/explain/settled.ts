import { commandLine } from '../../errors/command-line.ts'
import { quoted } from '../quoting.ts'
import { type CauseRow, deleteObject, reasonIn, wordOf } from './cause.ts'
import type { Situation } from './situation.ts'

// Requests that are denied, failed or issued, or that no later step can fix.

const isOpen = ({ state }: Situation): boolean => state === 'pending' || state === 'approved'

/** Causes for objects that will not change any more, and for unusable ones. */
export const settledCauses: readonly CauseRow[] = [
  {
    id: 'being-deleted',
    holds: ({ object }) => object.deletionTimestamp !== undefined,
    detail: 'the object is being deleted, and a finalizer blocks that',
    fix: 'find the owner of the finalizer, and submit the request again under another name',
    commands: (situation) =>
      commandLine`kubectl get csr ${wordOf(situation)} -o jsonpath='{.metadata.finalizers}'`,
  },
  {
    id: 'denied',
    holds: ({ state }) => state === 'denied',
    detail: ({ object, decidedBy }) =>
      `denied${decidedBy === undefined ? '' : ` by ${quoted(decidedBy)}`}${reasonIn(object.conditions, 'Denied')}`,
    fix: 'a denial is final: correct the request, delete the object, and submit the request again',
    commands: deleteObject,
  },
  {
    id: 'signer-refused',
    holds: ({ state }) => state === 'failed',
    detail: ({ object, broken: [rule] }) =>
      `the signer refused it permanently${reasonIn(object.conditions, 'Failed')}${rule === undefined ? '' : `; ${rule.detail}`}`,
    fix: ({ broken: [rule] }) =>
      [
        rule?.fix ?? 'correct what the message names',
        'then delete the object and submit the request again',
      ].join('; '),
    commands: deleteObject,
  },
  {
    id: 'certificate-unreadable',
    holds: ({ state, certificate }) => state === 'issued' && certificate === undefined,
    detail: 'the certificate that the signer uploaded cannot be read',
    fix: 'inspect it and repair the signer; Kubernetes never replaces an issued certificate',
    commands: (situation) => [
      commandLine`kubectl get csr ${wordOf(situation)} -o jsonpath='{.status.certificate}' | base64 -d | kcert inspect -`,
      ...deleteObject(situation),
    ],
  },
  {
    id: 'certificate-of-another-key',
    holds: ({ certificate, request }) =>
      certificate !== undefined &&
      request !== undefined &&
      certificate.publicKey.sha256 !== request.publicKey.sha256,
    detail: 'the issued certificate is for another key than the request, so it is useless',
    fix: 'repair the signer, then delete the object and submit the request again',
    commands: deleteObject,
  },
  {
    id: 'certificate-expired',
    holds: ({ certificate, now }) => certificate !== undefined && certificate.notAfter <= now,
    detail: ({ certificate }) =>
      `its certificate expired at ${certificate?.notAfter.toISOString().slice(0, 19)}Z; kube-controller-manager will delete the object`,
    fix: 'delete the object and submit the request again',
    commands: deleteObject,
  },
  {
    id: 'request-unreadable',
    holds: ({ fault, state }) => fault !== undefined && state !== 'issued',
    detail: ({ fault }) => `no signer can sign it: ${fault?.detail}`,
    fix: ({ fault }) => [fault?.fix, 'delete the object first'].join('; '),
    commands: deleteObject,
  },
  {
    id: 'no-such-signer',
    holds: (situation) => situation.signedBy === 'no-signer' && isOpen(situation),
    detail: ({ object }) =>
      `Kubernetes has no signer ${quoted(object.signerName)}: the request waits forever, even if it is approved`,
    fix: 'submit the request again for an existing signer: kubernetes.io/kube-apiserver-client, kubernetes.io/kube-apiserver-client-kubelet, kubernetes.io/kubelet-serving, or a signer in your own domain',
    commands: deleteObject,
  },
  {
    // The signer of EKS ignores objects whose names begin like those of kubelets (aws/containers-roadmap#2079).
    id: 'name-never-signed',
    holds: (situation) =>
      situation.object.signerName.startsWith('beta.eks.amazonaws.com/') &&
      situation.object.name?.startsWith('csr-') === true &&
      isOpen(situation),
    detail: ({ object }) => `${object.signerName} never signs an object whose name begins with "csr-"`,
    fix: 'submit the request again under another name',
    commands: deleteObject,
  },
]
