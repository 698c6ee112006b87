import { commandLine, fixed } from '../errors/command-line.ts'
import { shortList } from '../errors/short-list.ts'
import { kubeadmVersion } from '../pki/kubeadm-organization.ts'
import { quoted } from '../x509/strings.ts'
import { actionsOf, type Step } from './action.ts'
import { kubeconfigFiles } from './kubeconfig-files.ts'
import { isOfOldCa, oldApiLeaves } from './leaves.ts'
import type { Refusal } from './phase.ts'
import { type PhaseId, phaseRow } from './phase-table.ts'
import { signingGeneration } from './signing.ts'
import {
  apiServers,
  certificatesIn,
  componentsNamed,
  type FileSnapshot,
  fileAt,
  fileKey,
  type Observed,
  onNode,
  type Snapshot,
} from './snapshot.ts'
import { changeOf, hasBegun, type Target } from './target.ts'
import { versioned } from './tested-versions.ts'

// `kubeadm upgrade` in the middle of a rotation. It issues leaf certificates with the first CA in ca.crt, which is the old one
// until phase 12, and writes manifests of another version (Kubernetes 1.32 to 1.37: phases/upgrade/staticpods.go).

/** Returns why a rotation cannot start now: a control plane upgrade is in progress. */
export function upgradeInProgress(
  observed: Observed<'components'> & Partial<Pick<Snapshot, 'kubeadm'>>,
  target: Target,
  plan: 'kcert rotate-ca plan' | 'kcert rotate-sa-key --phase 1 --dry-run' = 'kcert rotate-ca plan',
): readonly Refusal[] {
  const { waivers } = target
  // Later, continuing is safer than stopping.
  if (hasBegun(target)) return []
  const mix = versionMix(observed)
  if (mix !== undefined && !waivers.has(mix.id)) {
    const accept = commandLine`${fixed(plan)} --waive ${mix.id}`
    return [
      {
        what: `control-plane nodes run different versions: ${mix.words}`,
        why: 'an upgrade during a rotation issues certificates from the old CA. Finish it on every control-plane node (kubeadm upgrade node), or accept these versions if they stay',
        next: accept,
      },
    ]
  }
  const { kubeadm } = observed
  if (kubeadm === undefined) return []
  const wanted = patchOf(kubeadm.kubernetesVersion)
  const others = apiServers(observed).filter(({ version }) => version !== undefined)
  const [first] = others
  // The versions belong to an accepted mix.
  if (first === undefined || others.some(({ version }) => patchOf(version) === wanted)) return []
  const text = kubeadm.kubernetesVersion
  const unreadable = text === undefined ? 'no Kubernetes version' : quoted(text)
  const said = wanted === 'unknown' ? unreadable : wanted
  return [
    {
      what: `kubeadm-config has ${said}, but API servers run ${patchOf(first.version)}: ${others.map(({ node }) => node).join(', ')}`,
      why: 'an upgrade is in progress, or the API servers were upgraded without kubeadm; finish the upgrade or correct kubernetesVersion',
      next: 'kubectl -n kube-system edit configmap kubeadm-config',
    },
  ]
}

/** Returns the versions of the control plane when they differ: as text, and as the ID for --waive. */
export function versionMix(observed: Observed<'components'>): { words: string; id: string } | undefined {
  const patches = new Set<string>()
  const words = versioned.flatMap((name) => {
    const known = componentsNamed(observed, name).filter(({ version }) => version !== undefined)
    const byPatch = Map.groupBy(known, ({ version }) => patchOf(version))
    for (const patch of byPatch.keys()) patches.add(patch)
    if (byPatch.size < 2) return []
    const each = [...byPatch].map(
      ([patch, found]) => `${patch} (${found.map(({ node }) => node).join(', ')})`,
    )
    return [`${name} ${each.join(' and ')}`]
  })
  return words.length === 0 ? undefined : { words: words.join('; '), id: [...patches].sort().join('+') }
}

/** The sections that are read during a rotation. */
type Sees = 'components' | 'files' | 'kubeconfigs' | 'copies' | 'intents'

/**
 * Returns descriptions of changes that another program reverted since the phase started: reissued certificates of the old CA,
 * missing flags. Changes that kcert has not made yet are older than the first action of the phase.
 */
export function revertedPhases(
  observed: Observed<Sees>,
  target: Target,
): ReadonlyMap<number, readonly string[]> {
  if (target.isDropping) return new Map()
  const begun = new Map(observed.intents.map(({ phase, atMs }) => [phase, atMs]))
  const found = writtenBack(observed, target).filter(
    ({ phase, file }) => file.changedAtMs > (begun.get(phase) ?? Number.POSITIVE_INFINITY),
  )
  const upgrades = upgradedSince(observed)
  const cause =
    upgrades.length === 0 ? '' : `; upgraded since phase 1: ${shortList(upgrades.map(({ words }) => words))}`
  return new Map(
    [...Map.groupBy(found, ({ phase }) => phase)].map(([phase, its]) => {
      const files = shortList([...new Set(its.map(({ file }) => fileKey(file.node, file.path)))])
      return [phase, [`${its[0]?.what} after the phase started, as kubeadm does: ${files}${cause}`]]
    }),
  )
}

/** Yields the reverted files of each phase, with a description of the difference that is identical for all of a phase. */
function* writtenBack(observed: Observed<Sees>, target: Target) {
  const written = (id: PhaseId, file: FileSnapshot, how: string) => {
    return { phase: phaseRow(id).number, file, what: `written ${how}` }
  }
  const change = changeOf(target, 'cluster')
  if (change !== undefined) {
    for (const manager of componentsNamed(observed, 'kube-controller-manager')) {
      const file = fileAt(observed, manager.node, manager.definition)
      if (file !== undefined && signingGeneration(observed, manager) === undefined)
        yield written('publish-both', file, 'without the flags of this phase')
    }
    for (const { file } of kubeconfigFiles(observed)) {
      if (file === undefined) continue
      if (!certificatesIn(file).includes(change.newCa.digest) || isOfOldCa(observed, file, change))
        yield written('kubeconfigs', file, 'with the old CA')
    }
  }
  for (const { file } of oldApiLeaves(observed, target)) yield written('present-new', file, 'with the old CA')
}

/** Returns why an undo is refused: it would restore manifests of an older version. */
export function downgradesIn(observed: Observed<Sees>, steps: readonly Step[]): readonly Refusal[] {
  const restored = new Set(
    steps
      .flatMap(actionsOf)
      .flatMap((step) =>
        step.kind === 'write-file' && step.content.kind === 'copy' ? [fileKey(step.node, step.path)] : [],
      ),
  )
  // A unit contains no version: it starts a file that no rotation writes.
  const found = upgradedSince(observed).filter(
    ({ definition, runsAs }) => runsAs === 'static-pod' && restored.has(definition),
  )
  if (found.length === 0) return []
  return [
    {
      what: `upgraded since phase 1: ${shortList(found.map(({ words }) => words))}`,
      why: 'restoring the previous manifests would downgrade these components; continue the rotation instead',
      next: 'kcert rotate-ca status',
    },
  ]
}

/** Returns definitions with another version than in the copies of phase 1. */
function upgradedSince(observed: Observed<'components' | 'copies'>) {
  return observed.components.flatMap(({ id, node, definition, version, runsAs }) => {
    const copy = onNode(observed.copies, node).find(
      ({ of, version: its }) => its !== undefined && 'path' in of && of.path === definition,
    )
    if (copy === undefined || patchOf(copy.version) === patchOf(version)) return []
    const words = `${id} from ${patchOf(copy.version)} to ${patchOf(version)}`
    return [{ definition: fileKey(node, definition), runsAs, words }]
  })
}

/** Returns "v1.36.3" for "v1.36.3-vendor.1": a tag and an API server may report the same build in these two forms. */
function patchOf(version = ''): string {
  const { minor, patch } = kubeadmVersion(version) ?? {}
  return minor === undefined || patch === Number.POSITIVE_INFINITY ? 'unknown' : `v1.${minor}.${patch}`
}
