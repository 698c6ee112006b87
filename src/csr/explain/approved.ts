import { commandLine, embed } from '../../errors/command-line.ts'
import { quoted } from '../quoting.ts'
import { anew, type CauseRow, signersText, wordOf } from './cause.ts'
import { isControllerOff, isManagerAlive, lacksSigningFiles, managerText } from './controller-manager.ts'
import type { Situation } from './situation.ts'

// Why what is approved has no certificate.

/** kube-controller-manager signs within a second; where it takes longer, it cannot. */
const signingSeconds = 30

const approved =
  (holds: CauseRow['holds']): CauseRow['holds'] =>
  (situation) =>
    situation.state === 'approved' && situation.request !== undefined && holds(situation)

const byKubernetes = ({ signedBy }: Situation): boolean => signedBy === 'kubernetes'

const managerPods = commandLine`kubectl -n kube-system get pods -l component=kube-controller-manager`
const managerLogs = commandLine`kubectl -n kube-system logs -l component=kube-controller-manager --tail=-1`

/** Causes of objects that are approved and not issued. */
export const approvedCauses: readonly CauseRow[] = [
  {
    id: 'will-fail',
    weight: 'stuck',
    holds: approved(({ broken }) => broken.length > 0),
    says: (situation) => ({
      detail: `the signer will refuse it for good: ${situation.broken[0]!.detail}`,
      next: [situation.broken[0]!.next, 'delete this object first'].join('; '),
      commands: anew(situation),
    }),
  },
  {
    id: 'signer-down',
    weight: 'stuck',
    holds: approved((situation) => byKubernetes(situation) && isManagerAlive(situation) === false),
    says: (situation) => ({
      detail: `kube-controller-manager, which signs for ${situation.object.signerName}, does not run: ${managerText(situation)}`,
      next: 'start it, and look at its logs; the request is signed then',
      commands: [commandLine`${embed(managerPods)} -o wide`],
    }),
  },
  {
    id: 'signer-off',
    weight: 'stuck',
    holds: approved((situation) => byKubernetes(situation) && isControllerOff(situation, 'signing')),
    says: () => ({
      detail: 'kube-controller-manager runs with --controllers, which switches its signers off',
      next: 'switch csrsigning on in its --controllers',
      commands: [commandLine`${embed(managerPods)} -o yaml | grep -e --controllers`],
    }),
  },
  {
    id: 'signer-not-configured',
    weight: 'stuck',
    holds: approved((situation) => byKubernetes(situation) && lacksSigningFiles(situation)),
    says: (situation) => ({
      detail: `kube-controller-manager has no CA to sign with for ${situation.object.signerName}: neither --cluster-signing-cert-file and --cluster-signing-key-file, nor those of this signer, are on its command line`,
      next: "give it the cluster CA's certificate and key on the control plane; where the CA is kept elsewhere, have the request signed there",
      commands: [
        commandLine`${embed(managerPods)} -o yaml | grep -e --cluster-signing`,
        commandLine`kcert ca sign --csr ${wordOf(situation)} --ca ca.crt --ca-key ca.key`,
      ],
    }),
  },
  {
    id: 'signer-signs-now',
    weight: 'waiting',
    holds: approved((situation) => byKubernetes(situation) && situation.waitingSeconds < signingSeconds),
    says: (situation) => ({
      detail: 'it was approved just now: kube-controller-manager signs within a second or two',
      next: 'wait a moment',
      commands: [commandLine`kcert csr fetch ${wordOf(situation)} --wait 1m --out ${fileOf(situation)}`],
    }),
  },
  {
    id: 'signer-fails',
    weight: 'stuck',
    holds: approved(
      (situation) =>
        byKubernetes(situation) && situation.waitingSeconds >= signingSeconds && !isHeld(situation),
    ),
    says: (situation) => ({
      detail: `kube-controller-manager should have signed it ${Math.floor(situation.waitingSeconds)} s ago: its CA may be expired, its certificate and key no pair, or the file gone since it started`,
      next: 'its logs say why; "refusing to sign a certificate that expired in the past" means that the CA is over',
      commands: [
        commandLine`${embed(managerLogs)} | grep -i certificate`,
        'kcert inspect /etc/kubernetes/pki/ca.crt',
      ],
    }),
  },
  {
    id: 'signer-absent',
    weight: 'stuck',
    holds: approved(({ signedBy, signers }) => signedBy === 'another' && signers?.length === 0),
    says: (situation) => ({
      detail: `no program has the right to sign for ${quoted(situation.object.signerName)}: its signer is not installed here, or runs with all rights`,
      next: 'install it, or sign the request with your own CA',
      commands: [commandLine`kcert ca sign --csr ${wordOf(situation)} --ca ca.pem --ca-key ca-key.pem`],
    }),
  },
  {
    id: 'signer-has-not-signed',
    weight: 'stuck',
    holds: approved(({ signedBy, signers }) => signedBy === 'another' && signers?.length !== 0),
    says: (situation) => ({
      detail: `whoever runs ${quoted(situation.object.signerName)} has not signed it${signersText(situation.signers)}; kube-controller-manager signs for kubernetes.io alone`,
      next: 'look at the logs of that signer, or sign the request with your own CA',
      commands: [commandLine`kcert ca sign --csr ${wordOf(situation)} --ca ca.pem --ca-key ca-key.pem`],
    }),
  },
]

function isHeld(situation: Situation): boolean {
  return (
    situation.broken.length > 0 ||
    isManagerAlive(situation) === false ||
    isControllerOff(situation, 'signing') ||
    lacksSigningFiles(situation)
  )
}

function fileOf({ object }: Situation): string {
  return /^[A-Za-z0-9_.-]+$/.test(object.name ?? '') ? `${object.name}.crt` : 'certificate.crt'
}
