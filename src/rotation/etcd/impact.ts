import type { Digest } from '../certificate-record.ts'
import { noRadius } from '../impact.ts'
import { etcdKeyTypePlan } from '../key-type.ts'
import type { Impact } from '../phase.ts'
import { apiServers, certificatesIn, fileAt, type Snapshot } from '../snapshot.ts'
import type { Target } from '../target.ts'
import { certificateViews } from '../views.ts'
import { apiTrustFiles, healthcheckPath, memberTrustFiles, servingFlags } from './members.ts'

/** Returns what the rotation of etcd's CA affects: the processes that trust it, and the files with its certificates. */
export function impactOfEtcd(observed: Snapshot, target: Target): Impact {
  const views = (digests: readonly Digest[]) => certificateViews(digests, observed.certificates, target)
  const credentialHolder = (name: string, node: string, path?: string, served: readonly Digest[] = []) => {
    const file = fileAt(observed, node, path)
    if (path === undefined || file === undefined) return []
    const loaded = served.length > 0 && { loaded: views(served) }
    return [{ name, location: path, certificates: views(certificatesIn(file)), ...loaded }]
  }
  const trust = [...observed.etcdMembers.flatMap(memberTrustFiles), ...apiTrustFiles(observed)]
  return {
    trustHolders: trust.map(({ process: name, node, path, flag }) => ({
      name,
      location: `${path} (--${flag})`,
      certificates: views(certificatesIn(fileAt(observed, node, path))),
      reloads: false,
    })),
    credentialHolders: [
      ...observed.etcdMembers.flatMap(({ id, node, flags, served }) => [
        credentialHolder(id, node, flags[servingFlags.client], served.client),
        credentialHolder(id, node, flags[servingFlags.peer], served.peer),
        credentialHolder(id, node, healthcheckPath(flags)),
      ]),
      ...apiServers(observed).map(({ id, node, flags }) =>
        credentialHolder(id, node, flags['etcd-certfile']),
      ),
    ].flat(),
    assumptions: [],
    blastRadius: noRadius,
    ...etcdKeyTypePlan(observed, target),
  }
}
