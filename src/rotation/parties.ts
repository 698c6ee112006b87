import type { Digest } from './certificate-record.ts'
import { type LeafRole, leafFile, leafFlags, leafIn } from './leaves.ts'
import {
  apiServers,
  certificatesIn,
  clientPathOf,
  type FilePicture,
  fileAt,
  type Picture,
  servingPathOf,
} from './picture.ts'
import type { RotationPlan } from './report.ts'
import type { Target } from './target.ts'
import { kubeletTrustFiles, trustFilesOf } from './trust-files.ts'
import { certificateViews } from './views.ts'

// Who verifies by the CAs that are rotated, and who presents what they signed: the whole of what a rotation is about.

type Verifier = RotationPlan['verifiers'][number]
type Presenter = RotationPlan['presenters'][number]

/** Returns every verifier with the CAs that it holds. */
export function verifiersOf(seen: Picture, target: Target): readonly Verifier[] {
  const views = (digests: readonly Digest[]) => certificateViews(digests, seen.certificates, target)
  const files = [
    ...trustFilesOf(seen, ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler']),
    ...kubeletTrustFiles(seen),
  ]
  const extension = seen.extensionAuthentication
  const info = seen.clusterInfo
  return [
    ...files.map(({ process, node, path, flag, reload }) => ({
      who: process,
      where: `${path} (${flag})`,
      certificates: views(certificatesIn(fileAt(seen, node, path))),
      rereads: reload === 'hot',
    })),
    ...(extension === undefined
      ? []
      : [
          {
            who: 'ConfigMap kube-system/extension-apiserver-authentication',
            where: 'client-ca-file',
            certificates: views(extension.client),
            rereads: true,
          },
          {
            who: 'ConfigMap kube-system/extension-apiserver-authentication',
            where: 'requestheader-client-ca-file',
            certificates: views(extension.requestheader),
            rereads: true,
          },
        ]),
    ...(info === undefined
      ? []
      : [
          {
            who: 'ConfigMap kube-public/cluster-info',
            where: 'kubeconfig',
            certificates: views(info.trust),
            rereads: false,
          },
        ]),
    ...seen.published
      .filter(({ unread }) => unread === undefined)
      .map(({ kind, name, trust = [] }) => ({
        who: `${kind} ${name}`,
        where: 'ca.crt',
        certificates: views(trust),
        rereads: false,
      })),
    ...seen.caBundles.map(({ id, field, trust }) => ({
      who: id,
      where: field,
      certificates: views(trust),
      rereads: true,
    })),
    ...kubeconfigFiles(seen).map(({ id, file }) => ({
      who: id,
      where: 'certificate-authority-data',
      certificates: views(certificatesIn(file)),
      rereads: false,
    })),
  ]
}

/** Returns every presenter with its chain on disk and, where somebody answers, in a live handshake. */
export function presentersOf(seen: Picture, target: Target): readonly Presenter[] {
  const views = (digests: readonly Digest[]) => certificateViews(digests, seen.certificates, target)
  const live = new Map(seen.handshakes.map(({ presenter, chain }) => [presenter, chain]))
  const loaded = (presenter: string) => {
    const chain = live.get(presenter)
    live.delete(presenter)
    return chain === undefined ? {} : { loaded: views(chain) }
  }
  const ofApis = apiServers(seen).flatMap((api) =>
    (Object.keys(leafFlags) as LeafRole[]).flatMap((role): Presenter[] => {
      const file = leafFile(seen, api, role)
      if (file === undefined) return []
      return [
        {
          who: api.id,
          where: `${file.path} (${role})`,
          certificates: views(certificatesIn(file)),
          ...(role === 'serving' ? loaded(api.id) : {}),
        },
      ]
    }),
  )
  const ofKubelets = seen.kubelets.flatMap((kubelet) => {
    const { id, node } = kubelet
    const client = fileAt(seen, node, clientPathOf(kubelet))
    const serving = fileAt(seen, node, servingPathOf(kubelet))
    const leaf = leafIn(seen, client)
    return [
      ...(client === undefined || leaf === undefined
        ? []
        : [{ who: id, where: `${client.path} (client)`, certificates: views([leaf.digest]) }]),
      ...(serving === undefined
        ? []
        : [
            {
              who: id,
              where: `${serving.path} (serving)`,
              certificates: views(certificatesIn(serving)),
              ...loaded(id),
            },
          ]),
    ]
  })
  const clients = kubeconfigFiles(seen).flatMap(({ id, file }) =>
    file?.holds.kind === 'kubeconfig' && file.holds.client !== undefined
      ? [{ who: id, where: 'client-certificate-data', certificates: views([file.holds.client]) }]
      : [],
  )
  const others = [...live].map(([presenter, chain]) => ({
    who: presenter,
    where: 'live handshake',
    certificates: [],
    loaded: views(chain),
  }))
  return [...ofApis, ...ofKubelets, ...clients, ...others]
}

function kubeconfigFiles(seen: Picture): readonly { id: string; file: FilePicture | undefined }[] {
  return seen.kubeconfigs.flatMap(({ id, at }) =>
    at === undefined ? [] : [{ id, file: fileAt(seen, at.node, at.path) }],
  )
}
