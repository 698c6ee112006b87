import { commandLine } from '../../errors/command-line.ts'
import type { Action, ProbeSubject, Step, WriteFile } from '../action.ts'
import { bundlesWithOldCa, patchingBundle } from '../ca-bundles.ts'
import { type CertificateRecord, isSignedByCa } from '../certificate-record.ts'
import { publishing } from '../cluster-info.ts'
import { convergenceOf, isWaived, podPlace } from '../convergence.ts'
import { handshakeSubject } from '../handshake-errors.ts'
import { rewritingKubeconfig } from '../kubeconfig-files.ts'
import { kubeletGaps, kubeletSteps, kubeletsAtOnce, provingLogs } from '../kubelet-steps.ts'
import { isOfOldCa, leafFile, leafIn } from '../leaves.ts'
import { caFileOf, folderOn, keyBeside, materialOf } from '../material.ts'
import { definePhase, type Gap, type Refusal } from '../phase.ts'
import {
  type ComponentPicture,
  certificatesIn,
  type FilePicture,
  fileAt,
  fileKey,
  onNode,
  type Picture,
  sectionNames,
} from '../picture.ts'
import { isProven, probe } from '../proof.ts'
import {
  componentsNamed,
  firstAlone,
  isAsWanted,
  latestStart,
  passOver,
  restartWith,
  rotationAnnotation,
  together,
  type Wanted,
} from '../restart.ts'
import { rollOut } from '../roll-out.ts'
import { extraArgs } from '../signing.ts'
import { storedRefusals, storedRemarks, unreadRemarks } from '../stored.ts'
import { type CaChange, changeOf, type Target, withoutOld } from '../target.ts'
import { movedFlags } from '../touched-files.ts'
import {
  distinctFiles,
  droppingOld,
  holdsOld,
  kubeletCaFileOf,
  kubeletTrustFiles,
  type TrustFile,
  trustFilesOf,
} from '../trust-files.ts'
import { puttingCopiesAside } from '../undo.ts'
import { awaitExtension, knowsByConfigMap, provingAll, unprovenAt, unprovenSchedulers } from '../verifying.ts'
import { forgetting, publishes } from './05-trust-both.ts'
import { presentersOfOldCa } from './11-verify.ts'

const manager = 'kube-controller-manager'
const scheduler = 'kube-scheduler'
const cloudManager = 'cloud-controller-manager'
/** What phase 5 wrote into manifests goes with the last restart. */
const withoutRotation = { [rotationAnnotation]: null }

/** The first API server without the bridge certificate is watched for --soak, and whatever else is watched here for this long. */
const shortSoakMs = 5_000

export const dropOld = definePhase({
  id: 'drop-old',
  number: 12,
  title: 'nobody trusts the old CA any more, and the cluster is as kubeadm would have made it',
  source: 'step 12',
  after: [11],
  risk: 'no-return',
  sees: sectionNames,

  gaps(seen, given): readonly Gap[] {
    const target = whileDropping(given)
    const steps = dropping(seen, target)
    return [...steps.flatMap(({ gaps }) => gaps)]
  },

  plan(seen, given): readonly Step[] {
    return dropping(seen, whileDropping(given)).flatMap(({ steps }) => steps)
  },

  refusals(seen, target): readonly Refusal[] {
    const change = changeOf(target, 'cluster')
    const presenters = presentersOfOldCa(seen, target).map(({ at }) => ({
      what: `${at} still shows a certificate of the old CA`,
      why: 'nobody would trust it any more',
      next: commandLine`re-issue it, or take it upon yourself: --waive ${at}`,
    }))
    // Once verifiers have dropped it, standing still helps nobody who goes by such an object.
    if (target.isDropping) return presenters
    const stored = storedRefusals(seen, target)
    if (change === undefined) return stored
    const stale = seen.pods.filter(
      (pod) => !isWaived(pod, target) && convergenceOf(seen, change, target, pod) !== 'converged',
    )
    return [
      ...presenters,
      ...stored,
      ...[...new Set(stale.map(({ id }) => id))].slice(0, 20).map((id) => ({
        what: `pod ${id} is not known to trust the new CA`,
        why: 'it reaches API servers by the bridge, which goes in this phase',
        next: commandLine`accept the risk with --waive ${id}, or: kcert rotate-ca --phase 4`,
      })),
    ]
  },

  remarks(seen, target) {
    const change = changeOf(target, 'cluster')
    // Before that they are refused.
    const stored = target.isDropping ? storedRemarks(seen, target) : unreadRemarks(seen)
    if (change === undefined || target.reason === 'compromise') return stored
    const holding = seen.pods.filter(({ volume }) => volume?.trust.includes(change.newCa.digest))
    const holders = new Set(holding.map(({ uid }) => uid)).size
    return [
      `${holders} pods know both CAs until they are restarted at leisure; no server shows an old leaf`,
      ...stored,
    ]
  },

  undo: () => ({
    kind: 'impossible',
    refusal: {
      what: 'phase 12 has no way back',
      why: 'certificates of the old CA are refused already, and some of them are gone',
      next: 'run phase 12 to its end; to have the old CA again, rotate to it: --ca-cert FILE --ca-key FILE',
    },
  }),
})

/** A part of the phase: what is open, and the steps that close it. */
interface Part {
  readonly gaps: readonly Gap[]
  readonly steps: readonly Step[]
}

/** In this order: verifiers, what API servers publish of them, the bridge, what people and processes hold, processes, remains. */
function dropping(seen: Picture, target: Target): readonly Part[] {
  return [
    verifiers(seen, target),
    publishedClientCas(seen, target),
    servers(seen, target),
    holders(seen, target),
    definitions(seen, target),
    kubelets(seen, target),
    pods(seen, target),
    remains(seen, target),
  ]
}

function whileDropping(target: Target): Target {
  return target.isDropping ? target : { ...target, isDropping: true }
}

/** One API server with all that is on its node first; when it has held, the others, then the workers. */
function verifiers(seen: Picture, target: Target): Part {
  const files = [...trustFilesOf(seen, ['kube-apiserver', manager, scheduler]), ...kubeletTrustFiles(seen)]
  const steps = (node: string): readonly Action[] => {
    const here = onNode(files, node)
    const writes = distinctFiles(here).flatMap((file) => droppingOld(seen, 12, file, target))
    const written = new Set(writes.map(({ path }) => path))
    const restarts = onNode(seen.components, node).flatMap((component) => {
      const path = kubeletCaFileOf(seen, component, target)
      if (path === undefined) return []
      const wanted = { files: [path], annotations: withoutRotation, isAboutToChange: written.has(path) }
      return restartWith(seen, 12, component, wanted)
    })
    const isWritten = ({ path }: TrustFile): boolean => written.has(path)
    return [
      ...writes,
      ...keysOf(seen, node, target),
      ...restarts,
      ...provingAll(12, here.filter(isWritten), target),
      ...unprovenAt(
        seen,
        here.filter((file) => !isWritten(file)),
        target,
      ).map((subject) => probe(12, subject)),
    ]
  }
  const controlPlanes = seen.nodes.filter((node) => node.isControlPlane).map(({ name }) => name)
  const workers = seen.nodes.filter((node) => !node.isControlPlane).map(({ name }) => name)
  const [first = [], ...others] = controlPlanes.map(steps)
  const firstWrites = first.some(({ kind }) => kind === 'write-file')
  const soak: Action[] = firstWrites
    ? [
        probe(12, handshakeSubject(seen, target, `${controlPlanes[0]}/kube-apiserver`, shortSoakMs)),
        ...[controlPlanes[0], workers[0]].flatMap((node) => (node ? [provingLogs(12, node)] : [])),
      ]
    : []
  return {
    gaps: [
      ...files
        .filter((file) => holdsOld(seen, file, target))
        .map(({ process, path }) => ({ at: process, what: `${path} with the old CA` })),
      ...controlPlanes
        .flatMap((node) => keysOf(seen, node, target))
        .map(({ node, path }) => ({ at: fileKey(node, path), what: 'key of the old CA' })),
      ...unprovenAt(seen, files, target).map((subject) => ({
        at: 'at' in subject ? subject.at : '',
        what: 'not proven to refuse the old CA and accept the new one',
      })),
    ],
    steps: [
      ...first,
      ...soak,
      ...others.flat(),
      ...together(
        target.atOnce,
        workers.map((name) => ({ name, steps: steps(name) })),
      ),
    ],
  }
}

/** Nobody reads the CA's key beside ca.crt now: controller-managers sign with the pair in kcert's folder. */
function keysOf(seen: Picture, node: string, target: Target): readonly WriteFile[] {
  const api = onNode(seen.components, node).find(({ name }) => name === 'kube-apiserver')
  if (api === undefined) return []
  return target.changes.flatMap(({ ca, newCa }) => {
    const certificate = caFileOf(api, ca)
    const file = certificate === undefined ? undefined : fileAt(seen, node, keyBeside(certificate))
    if (file?.holds.kind !== 'key' || file.holds.spki === newCa.spki) return []
    const content = { kind: 'ca-key', ca, generation: 'new' } as const
    const { path, digest, mode } = file
    return [{ kind: 'write-file', phase: 12, node, path, replaces: digest, content, mode }]
  })
}

/** extension-apiserver-authentication never forgets a CA by itself; schedulers and aggregated API servers read it. */
function publishedClientCas(seen: Picture, target: Target): Part {
  const extension = seen.extensionAuthentication
  if (extension === undefined) {
    // Deleted by this phase and not made again yet: who goes by it is proven afterwards.
    if (!seen.components.some(knowsByConfigMap)) return { gaps: [], steps: [] }
    const at = 'ConfigMap kube-system/extension-apiserver-authentication'
    return { gaps: [{ at, what: 'not there' }], steps: [awaitExtension(12, target, ['newCa'])] }
  }
  const olds = target.changes.map(({ oldCa }) => oldCa.digest)
  const unproven = unprovenSchedulers(seen, target)
  if (!publishes(extension, olds)) {
    return {
      gaps: unproven.map((subject) => ({
        at: 'at' in subject ? subject.at : '',
        what: 'not proven to refuse the old CA',
      })),
      steps: unproven.map((subject) => probe(12, subject)),
    }
  }
  return {
    gaps: [{ at: 'ConfigMap kube-system/extension-apiserver-authentication', what: 'publishes the old CA' }],
    steps: [
      forgetting(12, extension.version),
      awaitExtension(12, target, ['newCa']),
      ...unprovenSchedulers({ ...seen, evidence: new Map() }, target).map((subject) => probe(12, subject)),
    ],
  }
}

/** caBundles, and the bridge behind API servers' leaves. */
function servers(seen: Picture, target: Target): Part {
  const change = changeOf(target, 'cluster')
  if (change === undefined) return { gaps: [], steps: [] }
  const bundles = bundlesWithOldCa(seen, change)
  const apis = componentsNamed(seen, 'kube-apiserver').flatMap((api, index) => {
    const file = leafFile(seen, api, 'serving')
    const leaf = leafIn(seen, file)
    if (file === undefined || leaf === undefined) return []
    const isBridged = certificatesIn(file).some((digest) =>
      isSignedByCa(seen.certificates.get(digest), change.oldCa),
    )
    const isDropped = seen.copies.some(
      ({ phase, node, of }) => phase === 12 && node === file.node && 'path' in of && of.path === file.path,
    )
    if (!isBridged && !isDropped) return []
    // In this order: kcert's own connection with the old CA alone would be one of the errors that are watched.
    const both: readonly ProbeSubject[] = [
      handshakeSubject(seen, target, api.id, index === 0 ? target.soakMs : shortSoakMs),
      { kind: 'old-trust', at: api.id, expects: 'refused' },
    ]
    const subjects = both.filter((subject) => isBridged || !isProven(seen, subject, file.changedAtMs))
    return subjects.length === 0 ? [] : [{ api, file, leaf, isBridged, subjects }]
  })
  return {
    gaps: [
      ...bundles.map(({ id }) => ({ at: id, what: 'holds the old CA' })),
      ...apis.map(({ api, isBridged }) => ({
        at: api.id,
        what: isBridged
          ? 'serves the bridge certificate'
          : 'not watched since the bridge certificate was removed',
      })),
    ],
    steps: [
      ...bundles.flatMap((bundle) => patchingBundle(12, bundle, withoutOld(bundle.trust, change))),
      // A client that trusts the old CA alone fails now for the first time: better at one API server than at all of them.
      ...apis.flatMap(({ api, file, leaf, isBridged, subjects }): Action[] => [
        ...(isBridged ? servingAlone(api, file, leaf, change) : []),
        ...subjects.map((subject) => probe(12, subject, target.soakMs + 60_000)),
      ]),
    ],
  }
}

/** An API server's leaf without the bridge certificate, until it is served so. */
function servingAlone(
  api: ComponentPicture,
  { node, path, digest, mode }: FilePicture,
  leaf: CertificateRecord,
  change: CaChange,
): readonly Action[] {
  const content = { kind: 'certificates', certificates: [leaf.digest] } as const
  return [
    { kind: 'write-file', phase: 12, node, path, replaces: digest, content, mode },
    {
      kind: 'wait',
      phase: 12,
      until: { kind: 'serves', presenter: api.id, signedBy: change.newCa.spki, bridged: false },
      because: `${api.id} shows its leaf alone`,
      deadlineMs: 60_000,
    },
  ]
}

/** cluster-info and kubeconfigs; processes that read them follow in the next part. */
function holders(seen: Picture, target: Target): Part {
  const change = changeOf(target, 'cluster')
  if (change === undefined) return { gaps: [], steps: [] }
  const info = seen.clusterInfo
  const writes = kubeconfigWrites(seen, change, target)
  const isOldInInfo = info?.trust.includes(change.oldCa.digest) === true
  return {
    gaps: [
      ...(isOldInInfo ? [{ at: 'ConfigMap kube-public/cluster-info', what: 'holds the old CA' }] : []),
      ...writes.map(({ node, path }) => ({ at: fileKey(node, path), what: 'holds the old CA' })),
    ],
    steps: [...(info === undefined ? [] : publishing(seen, 12, withoutOld(info.trust, change))), ...writes],
  }
}

function kubeconfigWrites(seen: Picture, change: CaChange, target: Target): readonly WriteFile[] {
  return seen.kubeconfigs.flatMap(({ at }) =>
    at === undefined
      ? []
      : rewritingKubeconfig(seen, 12, fileAt(seen, at.node, at.path), change, target, withoutOld),
  )
}

/** The last restart: the flags and names that were there before, which now lead to the new CA. */
function definitions(seen: Picture, target: Target): Part {
  const change = changeOf(target, 'cluster')
  if (change === undefined) return { gaps: [], steps: [] }
  const rewritten = new Set(
    kubeconfigWrites(seen, change, target).map(({ node, path }) => fileKey(node, path)),
  )
  const wanted = (component: ComponentPicture): Wanted => ({
    ...finalOf(seen, component),
    isAboutToChange: rewritten.has(fileKey(component.node, component.flags.kubeconfig ?? '')),
  })
  const names = [manager, scheduler, cloudManager] as const
  const open = [...names, 'kube-proxy' as const].flatMap((name) =>
    componentsNamed(seen, name).filter((one) => !isAsWanted(seen, one, finalOf(seen, one))),
  )
  const oldInPublished = seen.published.filter(
    ({ isActive, trust }) => isActive && trust?.includes(change.oldCa.digest),
  )
  const managers = componentsNamed(seen, manager)
  const passes = names.map((name) => ({ name, steps: passOver(seen, 12, name, wanted) }))
  const isRestarting = passes.some(({ name, steps }) => name === manager && steps.length > 0)
  const signer = { kind: 'signer', generation: 'new' } as const
  const isUnsigned = isRestarting || !isProven(seen, signer, latestStart(managers))
  const ours = extraArgs(seen, 12, ownExtraArgs(seen))
  return {
    gaps: [
      ...open.map(({ id }) => ({ at: id, what: 'does not run with its own flags and the new CA' })),
      ...ours.map(() => ({ at: 'ConfigMap kube-system/kubeadm-config', what: "kcert's flags" })),
      ...oldInPublished.map(({ kind, name }) => ({ at: `${kind} ${name}`, what: 'holds the old CA' })),
      ...(isUnsigned ? [{ at: manager, what: 'no request signed by the new CA since the restart' }] : []),
    ],
    steps: [
      ...ours,
      ...together(
        target.atOnce,
        componentsNamed(seen, 'kube-proxy').map((one) => ({
          name: one.id,
          steps: restartWith(seen, 12, one, wanted(one)),
        })),
      ),
      ...together(names.length, passes),
      ...(isUnsigned ? [probe(12, signer)] : []),
      ...(isRestarting || oldInPublished.length > 0
        ? [
            {
              kind: 'wait',
              phase: 12,
              until: { kind: 'published', holds: [change.newCa.digest], lacks: [change.oldCa.digest] },
              because: 'kube-controller-manager publishes the new CA alone in every namespace',
              deadlineMs: 300_000,
            } as const,
          ]
        : []),
    ],
  }
}

/** As the copies of phase 1 say that it was; without them, as kubeadm writes it. */
function finalOf(seen: Picture, component: ComponentPicture): Wanted {
  const { node, definition } = component
  const copy = onNode(seen.copies, node).find(
    (one) => 'path' in one.of && one.of.path === definition && one.flags !== undefined,
  )
  const its = copy?.flags ?? kubeadmFlags(seen, component)
  const files = [component.flags.kubeconfig, its['root-ca-file'] ?? undefined]
  return { flags: its, files, annotations: withoutRotation }
}

function kubeadmFlags(seen: Picture, { node, flags }: ComponentPicture): Record<string, string | null> {
  const folder = folderOn(seen, node)
  const api = onNode(seen.components, node).find(({ name }) => name === 'kube-apiserver')
  const ca = api && caFileOf(api, 'cluster')
  if (ca === undefined) return {}
  const own: Record<string, string> = {
    'root-ca-file': ca,
    'cluster-signing-cert-file': ca,
    'cluster-signing-key-file': keyBeside(ca),
  }
  const moved = movedFlags.filter((flag) => flags[flag]?.startsWith(`${folder}/`))
  return Object.fromEntries(moved.map((flag) => [flag, own[flag]!]))
}

/** Takes out of ClusterConfiguration what leads into kcert's folder. */
function ownExtraArgs(seen: Picture): Record<string, null> {
  const now = seen.kubeadm?.extraArgs.controllerManager ?? {}
  const first = seen.nodes.find((node) => node.isControlPlane)
  const folder = first && folderOn(seen, first.name)
  const ours = movedFlags.filter((flag) => folder !== undefined && now[flag]?.startsWith(`${folder}/`))
  return Object.fromEntries(ours.map((flag) => [flag, null]))
}

function kubelets(seen: Picture, target: Target): Part {
  const change = changeOf(target, 'cluster')
  if (change === undefined) return { gaps: [], steps: [] }
  return {
    gaps: seen.kubelets.flatMap((kubelet) => kubeletGaps(seen, kubelet, change, withoutOld)),
    steps: firstAlone(
      kubeletsAtOnce(seen, target),
      seen.kubelets.map((kubelet) => ({
        name: kubelet.node,
        steps: kubeletSteps(seen, 12, kubelet, change, target, withoutOld),
      })),
    ),
  }
}

/** A leaked key: whoever has it could still show a leaf that running pods believe. */
function pods(seen: Picture, target: Target): Part {
  const change = changeOf(target, 'cluster')
  if (change === undefined || target.reason !== 'compromise') return { gaps: [], steps: [] }
  const believers = seen.pods.filter(
    (pod) =>
      !isWaived(pod, target) &&
      (pod.volume === undefined ||
        pod.volume.trust.includes(change.oldCa.digest) ||
        pod.startedAtMs < pod.volume.changedAtMs),
  )
  return {
    gaps: believers.map((pod) => ({ at: podPlace(pod), what: 'still believes the old CA' })),
    steps: rollOut(seen, 12, believers, change, target),
  }
}

/** What would bring the old CA back, and what kcert laid out for itself. */
function remains(seen: Picture, target: Target): Part {
  const secret = seen.kubeadm?.certsSecret
  const change = changeOf(target, 'cluster')
  const linked = new Set([...seen.files.values()].map(({ node, linksTo }) => fileKey(node, linksTo ?? '')))
  const superseded = [...seen.files.values()].filter(
    (file) =>
      change !== undefined &&
      file.linksTo === undefined &&
      file.holds.kind === 'pair' &&
      !linked.has(fileKey(file.node, file.path)) &&
      isOfOldCa(seen, file, change),
  )
  const laidOut = seen.nodes.flatMap(({ name }) =>
    materialOf(folderOn(seen, name), target).flatMap(({ path }) => fileAt(seen, name, path) ?? []),
  )
  const files = [...superseded, ...laidOut]
  const copies = puttingCopiesAside(12, seen)
  return {
    gaps: [
      ...(secret === undefined
        ? []
        : [{ at: 'Secret kube-system/kubeadm-certs', what: 'may bring the old CA back' }]),
      ...files.map(({ node, path }) => ({ at: fileKey(node, path), what: 'left over' })),
      ...copies.map(({ node }) => ({ at: node, what: 'copies not put aside for the next rotation' })),
    ],
    steps: [
      ...(secret === undefined
        ? []
        : [
            {
              kind: 'patch-object',
              phase: 12,
              object: { kind: 'Secret', namespace: 'kube-system', name: 'kubeadm-certs' },
              version: secret,
              change: { kind: 'delete' },
            } as const,
          ]),
      ...removing(superseded, target),
      ...together(
        target.atOnce,
        copies.map((write) => ({ name: write.node, steps: [write] })),
      ),
      // Last: with the keys in there kcert reaches the cluster when nobody's kubeconfig of before does.
      ...removing(laidOut, target),
    ],
  }
}

function removing(files: readonly FilePicture[], target: Target): readonly Step[] {
  return together(
    target.atOnce,
    [...Map.groupBy(files, ({ node }) => node)].map(([name, own]) => ({
      name,
      steps: own.map(
        ({ node, path, digest, mode }): WriteFile => ({
          kind: 'write-file',
          phase: 12,
          node,
          path,
          replaces: digest,
          content: { kind: 'nothing' },
          mode,
        }),
      ),
    })),
  )
}
