import { commandLine, embed } from '../../errors/command-line.ts'
import { quoted } from '../quoting.ts'
import { brokenFix, brokenText, type CauseRow, deleteObject, signersText, wordOf } from './cause.ts'
import { isControllerOff, isManagerAlive, lacksSigningFiles, managerText } from './controller-manager.ts'
import type { Situation } from './situation.ts'

// Why an approved request has no certificate.

/** kube-controller-manager signs within a second; after this time, something prevents it. */
const signingSeconds = 30

const approved =
  (holds: CauseRow['holds']): CauseRow['holds'] =>
  (situation) =>
    situation.state === 'approved' && situation.request !== undefined && holds(situation)

const byKubernetes = (holds: CauseRow['holds']): CauseRow['holds'] =>
  approved((situation) => situation.signedBy === 'kubernetes' && holds(situation))

const managerPods = commandLine`kubectl -n kube-system get pods -l component=kube-controller-manager`
const managerLogs = commandLine`kubectl -n kube-system logs -l component=kube-controller-manager --tail=-1`

const signByHand = (situation: Situation): string[] => [
  commandLine`kcert ca sign --csr ${wordOf(situation)} --ca ca.pem --ca-key ca-key.pem`,
]

/** Causes for objects that are approved and not issued. */
export const approvedCauses: readonly CauseRow[] = [
  {
    id: 'will-fail',
    holds: approved(({ broken }) => broken.length > 0),
    detail: (situation) => `the signer will refuse it permanently: ${brokenText(situation)}`,
    fix: brokenFix,
    commands: deleteObject,
  },
  {
    id: 'signer-down',
    holds: byKubernetes((situation) => isManagerAlive(situation) === false),
    detail: (situation) =>
      `kube-controller-manager, which signs for ${situation.object.signerName}, does not run: ${managerText(situation)}`,
    fix: 'start it and read its logs; it then signs the request',
    commands: () => commandLine`${embed(managerPods)} -o wide`,
  },
  {
    id: 'signer-off',
    holds: byKubernetes((situation) => isControllerOff(situation, 'signing')),
    detail: 'the --controllers flag of kube-controller-manager disables its signers',
    fix: 'enable csrsigning in --controllers',
    commands: () => commandLine`${embed(managerPods)} -o yaml | grep -e --controllers`,
  },
  {
    id: 'signer-not-configured',
    holds: byKubernetes(lacksSigningFiles),
    detail: ({ object }) =>
      `kube-controller-manager has no CA to sign with for ${object.signerName}: its command line has neither --cluster-signing-cert-file and --cluster-signing-key-file nor the flags of this signer`,
    fix: "give it the cluster CA's certificate and key on the control plane; with an external CA, sign the request there",
    commands: (situation) => [
      commandLine`${embed(managerPods)} -o yaml | grep -e --cluster-signing`,
      commandLine`kcert ca sign --csr ${wordOf(situation)} --ca ca.crt --ca-key ca.key`,
    ],
  },
  {
    id: 'signer-signs-now',
    weight: 'waiting',
    holds: byKubernetes(({ waitingSeconds }) => waitingSeconds < signingSeconds),
    detail: 'it was approved a moment ago, and kube-controller-manager signs within seconds',
    fix: 'wait a few seconds',
    commands: (situation) =>
      commandLine`kcert csr fetch ${wordOf(situation)} --wait 1m --out ${fileOf(situation)}`,
  },
  {
    id: 'signer-fails',
    holds: byKubernetes((situation) => situation.waitingSeconds >= signingSeconds && !isHeld(situation)),
    detail: ({ waitingSeconds }) =>
      `kube-controller-manager should have signed it ${Math.floor(waitingSeconds)} s ago: its CA may have expired, its certificate and key may not match, or a file was deleted after it started`,
    fix: 'read its logs; "refusing to sign a certificate that expired in the past" means that the CA expired',
    commands: () => [
      commandLine`${embed(managerLogs)} | grep -i certificate`,
      'kcert inspect /etc/kubernetes/pki/ca.crt',
    ],
  },
  {
    id: 'signer-absent',
    holds: approved(({ signedBy, signers }) => signedBy === 'other-signer' && signers?.length === 0),
    detail: ({ object }) =>
      `no program has the RBAC right to sign for ${quoted(object.signerName)}: its signer is not installed, or runs as cluster admin`,
    fix: 'install the signer, or sign the request with your own CA',
    commands: signByHand,
  },
  {
    id: 'signer-has-not-signed',
    holds: approved(({ signedBy, signers }) => signedBy === 'other-signer' && signers?.length !== 0),
    detail: ({ object, signers }) =>
      `the signer for ${quoted(object.signerName)} has not signed it${signersText(signers)}; kube-controller-manager signs only for kubernetes.io`,
    fix: 'read the logs of that signer, or sign the request with your own CA',
    commands: signByHand,
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
