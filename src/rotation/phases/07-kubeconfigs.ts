import type { Task } from '../action.ts'
import { isSignedByCa } from '../certificate-record.ts'
import { kubeconfigFiles, kubeconfigWrites, withOldCaInOtherContext } from '../kubeconfig-files.ts'
import { isOfOldCa } from '../leaves.ts'
import { clusterPart, definePhase, inParts, type PendingItem, type Refusal } from '../phase.ts'
import { isProven } from '../proof.ts'
import { type DesiredProcess, isAsDesired, latestStart, passOver, restartWith } from '../restart.ts'
import {
  encryptionAlgorithm,
  extraArgs,
  kubeadmConfig,
  signingGeneration,
  wantedOfControllerManager,
} from '../signing.ts'
import {
  type ComponentSnapshot,
  componentsNamed,
  type FileSnapshot,
  fileKey,
  type KubeconfigSnapshot,
  type Observed,
  objectName,
} from '../snapshot.ts'
import { type CaChange, type Target, withNew } from '../target.ts'
import { ask, inLanes, inParallel, probe } from '../tasks.ts'
import { restoreObjects } from '../undo.ts'
import { backToFiles } from '../undo-pass.ts'

const sees = ['components', 'files', 'kubeconfigs', 'leases', 'kubeadm', 'evidence'] as const
type Sees = (typeof sees)[number]

const manager = 'kube-controller-manager'
const scheduler = 'kube-scheduler'
const signer = { kind: 'signer', generation: 'new' } as const

export const kubeconfigsAndSigner = clusterPart<Sees>((observed, target, change) => {
  const writes = kubeconfigWrites(observed, change, target, withNew)
  const rewritten = new Set(writes.map(({ node, path }) => fileKey(node, path)))
  const wanted = (component: ComponentSnapshot): DesiredProcess => ({
    ...wantedOf(observed, target, component),
    isAboutToChange: rewritten.has(fileKey(component.node, component.flags.kubeconfig ?? '')),
  })
  const proxies = componentsNamed(observed, 'kube-proxy')
  // Phase 9 updates the kubelets.
  const readers = [...componentsNamed(observed, manager), ...componentsNamed(observed, scheduler), ...proxies]
  const signing = passOver(observed, manager, wanted)
  const asked = undelivered(observed, change, target)
  const besides = withOldCaInOtherContext(observed, change, target)
  const algorithm = encryptionAlgorithm(observed, target)
  const isSigning = target.isDropping || isSignerProven(observed)
  return {
    gaps: [
      ...kubeconfigFiles(observed).flatMap((one) => kubeconfigGaps(observed, one, change, target)),
      ...asked.map(({ id: at }) => ({ at, what: 'outside the nodes and not confirmed' })),
      ...besides.map(({ node, path }) => ({
        at: fileKey(node, path),
        what: 'another context still uses the old CA',
      })),
      ...readers
        .filter((one) => !isAsDesired(observed, one, wantedOf(observed, target, one)))
        .map(({ id: at }) => ({ at, what: 'not restarted since its kubeconfig or signing pair changed' })),
      ...algorithm.map(() => ({
        at: objectName(kubeadmConfig),
        what: `encryptionAlgorithm is not ${target.keyType}`,
      })),
      ...(isSigning ? [] : [{ at: manager, what: 'no request signed by the new CA since the restart' }]),
    ],
    steps: [
      ...writes,
      ...unproven(observed, rewritten, target).map((id) => probe({ kind: 'kubeconfig', id })),
      ...inLanes(target.atOnce, proxies, (one) => restartWith(observed, one, wanted(one))),
      ...(target.isDropping ? [] : extraArgs(observed, wantedExtraArgs(observed, target))),
      ...algorithm,
      // The two are independent, so running them in parallel halves the time.
      ...inParallel(2, [
        { name: manager, steps: signing },
        { name: scheduler, steps: passOver(observed, scheduler, wanted) },
      ]),
      ...(target.isDropping || (signing.length === 0 && isSigning) ? [] : [probe(signer)]),
      ...asked.map(askForDelivery),
      ...besides.map(askForContexts),
    ],
  }
})

export const renewKubeconfigs = definePhase('kubeconfigs', {
  sees,
  ...inParts(kubeconfigsAndSigner),

  undo(copies, now, target) {
    if (target.reason === 'compromise' && isSignerProven(now)) return leaked
    const { files, restarts } = backToFiles(copies, now, now.components, 'kubeconfig')
    return [...restoreObjects(copies, () => now.kubeadm?.version), ...files, ...restarts]
  },
})

const leaked: Refusal = {
  what: 'kcert does not switch controller-managers back to the old signing pair',
  why: 'its key leaked (--reason compromise), so an attacker can sign any certificate with it',
  next: 'kcert rotate-ca --phase 8',
}

function wantedOf(
  observed: Observed<'components'>,
  target: Target,
  component: ComponentSnapshot,
): DesiredProcess {
  const files = [component.flags.kubeconfig]
  // At the end of the rotation, kubeadm's default paths contain the new pair. Phase 12 restores the flags.
  if (component.name !== manager || target.isDropping) return { files }
  const wanted = wantedOfControllerManager(observed, target, component, 'new')
  return { ...wanted, files: [...files, ...wanted.files] }
}

function wantedExtraArgs(observed: Observed<'components'>, target: Target) {
  const [component] = componentsNamed(observed, manager)
  return component && wantedOfControllerManager(observed, target, component, 'new').flags
}

interface OnNode {
  readonly id: string
  readonly file: FileSnapshot | undefined
}

function kubeconfigGaps(
  observed: Observed<'files' | 'evidence'>,
  { id: at, file }: OnNode,
  change: CaChange,
  { isDropping }: Target,
): readonly PendingItem[] {
  if (file?.contains.kind !== 'kubeconfig') return []
  const open = [
    !file.contains.caData.includes(change.newCa.digest) && 'without the new CA',
    isOfOldCa(observed, file, change) && 'client certificate of the old CA',
    !isDropping && !isProvenSince(observed, { id: at, file }) && 'not yet tested with every API server',
  ]
  return open.flatMap((what) => (what === false ? [] : [{ at, what }]))
}

function isProvenSince(observed: Observed<'evidence'>, { id, file }: OnNode): boolean {
  return isProven(observed, { kind: 'kubeconfig', id }, file?.changedAtMs)
}

/** Returns the IDs of kubeconfigs that must be proven, including those that this plan writes. */
function unproven(observed: Observed<Sees>, rewritten: ReadonlySet<string>, { isDropping }: Target) {
  if (isDropping) return []
  return kubeconfigFiles(observed)
    .filter((one) => {
      const isWritten = one.file !== undefined && rewritten.has(fileKey(one.file.node, one.file.path))
      return isWritten || !isProvenSince(observed, one)
    })
    .map(({ id }) => id)
}

function undelivered(observed: Observed<'kubeconfigs'>, change: CaChange, { waivers }: Target) {
  return observed.kubeconfigs.filter(({ id, at, exported }) => {
    if (at !== undefined || waivers.has(id)) return false
    const isOld = isSignedByCa(observed.certificates.get(exported?.client ?? ''), change.oldCa)
    return isOld || !exported?.caData.includes(change.newCa.digest)
  })
}

function askForDelivery({ id }: KubeconfigSnapshot): Task {
  const lies = `kubeconfig ${id} is outside the nodes`
  return ask(id, `${lies}: give its owner a new one with both CAs and a new certificate.`)
}

function askForContexts({ node, path }: FileSnapshot): Task {
  const id = fileKey(node, path)
  const goes = `kubeconfig ${id}: a context other than the current one still uses the old CA`
  return ask(id, `${goes}: change it, or check that it is not needed.`)
}

function isSignerProven(observed: Observed<'components' | 'evidence'>): boolean {
  const managers = componentsNamed(observed, manager)
  if (managers.some((component) => signingGeneration(observed, component) !== 'new')) return false
  return isProven(observed, signer, latestStart(managers))
}
