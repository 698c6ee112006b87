import type { Digest } from './certificate-record.ts'
import { clusterInfoPlace } from './cluster-info.ts'
import { kubeconfigFiles } from './kubeconfig-files.ts'
import { apiLeaves, leafIn } from './leaves.ts'
import type { RotationPlan } from './report.ts'
import { certificatesIn, clientPathOf, fileAt, type Snapshot, servingPathOf } from './snapshot.ts'
import type { Target } from './target.ts'
import { allTrustFiles } from './trust-files.ts'
import { certificateViews } from './views.ts'

// A trust holder verifies certificates with a rotated CA. A credential holder presents a certificate that a rotated CA signed.

type TrustHolder = RotationPlan['trustHolders'][number]
type CredentialHolder = RotationPlan['credentialHolders'][number]

/** Returns every trust holder with its trusted CAs. */
export function trustHoldersOf(observed: Snapshot, target: Target): readonly TrustHolder[] {
  const trustHolder = (
    name: string,
    location: string,
    trust: readonly Digest[],
    reloads: boolean,
  ): TrustHolder => {
    return { name, location, certificates: certificateViews(trust, observed.certificates, target), reloads }
  }
  const { extensionAuthentication: extension, clusterInfo: info } = observed
  const published = 'ConfigMap kube-system/extension-apiserver-authentication'
  const readable = observed.published.filter(({ unread }) => unread === undefined)
  return [
    ...allTrustFiles(observed).map(({ process, node, path, flag, reload }) =>
      trustHolder(
        process,
        `${path} (${flag})`,
        certificatesIn(fileAt(observed, node, path)),
        reload === 'hot',
      ),
    ),
    ...(extension
      ? [
          trustHolder(published, 'client-ca-file', extension.client, true),
          trustHolder(published, 'requestheader-client-ca-file', extension.requestheader, true),
        ]
      : []),
    ...(info ? [trustHolder(clusterInfoPlace, 'kubeconfig', info.trust, false)] : []),
    ...readable.map(({ kind, name, trust = [] }) => trustHolder(`${kind} ${name}`, 'ca.crt', trust, false)),
    ...observed.caBundles.map(({ id, field, trust }) => trustHolder(id, field, trust, true)),
    ...kubeconfigFiles(observed).map(({ id, file }) =>
      trustHolder(id, 'certificate-authority-data', certificatesIn(file), false),
    ),
  ]
}

/** Returns every credential holder with its chain on disk and, if a server answers, in a live handshake. */
export function credentialHoldersOf(observed: Snapshot, target: Target): readonly CredentialHolder[] {
  const views = (digests: readonly Digest[]) => certificateViews(digests, observed.certificates, target)
  const credentialHolder = (name: string, location: string, chain: readonly Digest[]): CredentialHolder => {
    return { name, location, certificates: views(chain) }
  }
  const live = new Map(observed.handshakes.map(({ server, chain }) => [server, chain]))
  const loaded = (id: string) => {
    const chain = live.get(id)
    live.delete(id)
    return chain && { loaded: views(chain) }
  }
  const ofApis = apiLeaves(observed).map(({ api: { id }, role, file }) => ({
    ...credentialHolder(id, `${file.path} (${role})`, certificatesIn(file)),
    ...(role === 'serving' ? loaded(id) : {}),
  }))
  const ofKubelets = observed.kubelets.flatMap((kubelet) => {
    const { id, node } = kubelet
    const client = fileAt(observed, node, clientPathOf(kubelet))
    const serving = fileAt(observed, node, servingPathOf(kubelet))
    const leaf = leafIn(observed, client)
    return [
      ...(client && leaf ? [credentialHolder(id, `${client.path} (client)`, [leaf.digest])] : []),
      ...(serving
        ? [{ ...credentialHolder(id, `${serving.path} (serving)`, certificatesIn(serving)), ...loaded(id) }]
        : []),
    ]
  })
  const clients = kubeconfigFiles(observed).flatMap(({ id, file }) => {
    const client = file?.contains.kind === 'kubeconfig' ? file.contains.client : undefined
    return client === undefined ? [] : [credentialHolder(id, 'client-certificate-data', [client])]
  })
  const others = Array.from(live, ([id, chain]) => ({
    ...credentialHolder(id, 'live handshake', []),
    loaded: views(chain),
  }))
  return [...ofApis, ...ofKubelets, ...clients, ...others]
}
