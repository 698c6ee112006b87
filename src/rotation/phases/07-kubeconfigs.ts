import type { Action, Step } from '../action.ts'
import { isSignedByCa } from '../certificate-record.ts'
import { rewritingKubeconfig, withOldBesides } from '../kubeconfig-files.ts'
import { isOfOldCa } from '../leaves.ts'
import { definePhase, type Gap, type Refusal } from '../phase.ts'
import {
  type ComponentPicture,
  type FilePicture,
  fileAt,
  fileKey,
  type KubeconfigPicture,
  type Seen,
} from '../picture.ts'
import { isProven, probe } from '../proof.ts'
import {
  componentsNamed,
  isAsWanted,
  latestStart,
  passOver,
  restartWith,
  together,
  type Wanted,
} from '../restart.ts'
import { extraArgs, signingGeneration, wantedOfControllerManager } from '../signing.ts'
import { type CaChange, changeOf, type Target, withNew } from '../target.ts'
import { restoreFiles, restoreObjects } from '../undo.ts'
import { backToDefinitions, readersToRestart } from '../undo-pass.ts'

type Sees = 'components' | 'files' | 'kubeconfigs' | 'leases' | 'kubeadm' | 'evidence'

const manager = 'kube-controller-manager'
const scheduler = 'kube-scheduler'

export const renewKubeconfigs = definePhase('kubeconfigs', {
  sees: ['components', 'files', 'kubeconfigs', 'leases', 'kubeadm', 'evidence'],

  gaps(seen, target): readonly Gap[] {
    const change = changeOf(target, 'cluster')
    if (change === undefined) return []
    return [
      ...seen.kubeconfigs.flatMap((one) => kubeconfigGaps(seen, one, change, target)),
      ...undelivered(seen, change, target).map(({ id }) => ({
        at: id,
        what: 'outside the nodes and not acknowledged',
      })),
      ...withOldBesides(seen, change, target).map(({ node, path }) => ({
        at: fileKey(node, path),
        what: 'another of its contexts goes by the old CA',
      })),
      ...readersOf(seen)
        .filter((component) => !isAsWanted(seen, component, wantedOf(seen, target, component)))
        .map(({ id }) => ({ at: id, what: 'started before its kubeconfig or signing pair changed' })),
      ...(target.isDropping || isSignerProven(seen)
        ? []
        : [{ at: manager, what: 'no request signed by the new CA since the restart' }]),
    ]
  },

  plan(seen, target): readonly Step[] {
    const change = changeOf(target, 'cluster')
    if (change === undefined) return []
    const writes = seen.kubeconfigs.flatMap(({ at }) =>
      at === undefined
        ? []
        : rewritingKubeconfig(seen, 7, fileAt(seen, at.node, at.path), change, target, withNew),
    )
    const rewritten = new Set(writes.map(({ node, path }) => fileKey(node, path)))
    const wanted = (component: ComponentPicture): Wanted => ({
      ...wantedOf(seen, target, component),
      isAboutToChange: rewritten.has(fileKey(component.node, component.flags.kubeconfig ?? '')),
    })
    const proxies = componentsNamed(seen, 'kube-proxy').map((one) => ({
      name: one.id,
      steps: restartWith(seen, 7, one, wanted(one)),
    }))
    const signing = passOver(seen, 7, manager, wanted)
    return [
      ...writes,
      ...unproven(seen, rewritten, target).map(({ id }) => probe(7, { kind: 'kubeconfig', id })),
      ...together(target.atOnce, proxies),
      ...(target.isDropping ? [] : extraArgs(seen, 7, wantedExtraArgs(seen, target))),
      // The two know nothing of one another: side by side they take half the time.
      ...together(2, [
        { name: manager, steps: signing },
        { name: scheduler, steps: passOver(seen, 7, scheduler, wanted) },
      ]),
      ...(target.isDropping || (signing.length === 0 && isSignerProven(seen))
        ? []
        : [probe(7, { kind: 'signer', generation: 'new' })]),
      ...undelivered(seen, change, target).map(askForDelivery),
      ...withOldBesides(seen, change, target).map(askForContexts),
    ]
  },

  undo(before, now, target) {
    if (target.reason === 'compromise' && isSignerProven(now)) return { kind: 'impossible', refusal: leaked }
    const definitions = new Set(now.components.map(({ node, definition }) => fileKey(node, definition)))
    const isDefinition = (node: string, path: string): boolean => definitions.has(fileKey(node, path))
    const files = restoreFiles(before, now, (node, path) => !isDefinition(node, path))
    const manifests = backToDefinitions(before, now)
    const readers = readersToRestart(before, now, now.components, files, manifests, 'kubeconfig')
    return {
      kind: 'steps',
      steps: [
        ...restoreObjects(before, () => now.kubeadm?.version),
        ...files,
        ...manifests,
        ...readers.flatMap((one) => restartWith(now, 7, one, { isAboutToChange: true })),
      ],
    }
  },
})

const leaked: Refusal = {
  what: 'controller-managers are not led back to the old pair',
  why: 'its key leaked (--reason compromise): whoever has it signs what they like',
  next: 'go on: kcert rotate-ca --phase 8',
}

/** Components that read a kubeconfig once. Kubelets are phase 9's. */
function readersOf(seen: Seen<'components'>): readonly ComponentPicture[] {
  return [manager, scheduler, 'kube-proxy'].flatMap((name) =>
    seen.components.filter((component) => component.name === name),
  )
}

function wantedOf(seen: Seen<'components'>, target: Target, component: ComponentPicture): Wanted {
  const files = [component.flags.kubeconfig]
  // At the end of the rotation kubeadm's own flags lead to the new pair: phase 12 puts them back.
  if (component.name !== manager || target.isDropping) return { files }
  const wanted = wantedOfControllerManager(seen, target, component, 'new')
  return { ...wanted, files: [...files, ...wanted.files] }
}

function wantedExtraArgs(seen: Seen<'components'>, target: Target) {
  const component = componentsNamed(seen, manager)[0]
  return component && wantedOfControllerManager(seen, target, component, 'new').flags
}

function kubeconfigGaps(
  seen: Seen<'files' | 'evidence'>,
  { id, at }: KubeconfigPicture,
  change: CaChange,
  target: Target,
): Gap[] {
  const file = at && fileAt(seen, at.node, at.path)
  if (file?.holds.kind !== 'kubeconfig') return []
  const isUnproven = !target.isDropping && !isProven(seen, { kind: 'kubeconfig', id }, file.changedAtMs)
  return [
    ...(file.holds.caData.includes(change.newCa.digest) ? [] : [{ at: id, what: 'without the new CA' }]),
    ...(isOfOldCa(seen, file, change) ? [{ at: id, what: 'client certificate of the old CA' }] : []),
    ...(isUnproven ? [{ at: id, what: 'not proven at every API server' }] : []),
  ]
}

function unproven(seen: Seen<Sees>, rewritten: ReadonlySet<string>, target: Target) {
  if (target.isDropping) return []
  return seen.kubeconfigs.filter(({ id, at }) => {
    if (at === undefined) return false
    const changedAtMs = fileAt(seen, at.node, at.path)?.changedAtMs
    return (
      rewritten.has(fileKey(at.node, at.path)) || !isProven(seen, { kind: 'kubeconfig', id }, changedAtMs)
    )
  })
}

function undelivered(seen: Seen<'kubeconfigs'>, change: CaChange, { waivers }: Target) {
  return seen.kubeconfigs.filter(({ id, at, exported }) => {
    if (at !== undefined || waivers.has(id)) return false
    const isOld = isSignedByCa(seen.certificates.get(exported?.client ?? ''), change.oldCa)
    return isOld || !exported?.caData.includes(change.newCa.digest)
  })
}

function askForDelivery({ id }: KubeconfigPicture): Action {
  const question = `kubeconfig ${id} lies outside the nodes: has its owner got one with both CAs and a new certificate?`
  return { kind: 'ask', phase: 7, id, question }
}

function askForContexts({ node, path }: FilePicture): Action {
  const id = fileKey(node, path)
  const question = `kubeconfig ${id}: another context than the current one goes by the old CA: has it been changed, or is it not needed?`
  return { kind: 'ask', phase: 7, id, question }
}

function isSignerProven(seen: Seen<'components' | 'evidence'>): boolean {
  const managers = componentsNamed(seen, manager)
  if (managers.some((component) => signingGeneration(seen, component) !== 'new')) return false
  return isProven(seen, { kind: 'signer', generation: 'new' }, latestStart(managers))
}
