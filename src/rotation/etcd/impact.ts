import type { Digest } from '../certificate-record.ts'
import type { Impact } from '../phase.ts'
import { certificatesIn, fileAt, type Snapshot } from '../snapshot.ts'
import type { Target } from '../target.ts'
import { certificateViews } from '../views.ts'
import { apiTrustFiles, etcdLeafFiles, memberTrustFiles } from './members.ts'

/** Returns what the rotation of etcd's CA affects: the processes that trust it, and the files with its certificates. */
export function impactOfEtcd(observed: Snapshot, target: Target): Impact {
  const views = (digests: readonly Digest[]) => certificateViews(digests, observed.certificates, target)
  const trust = [...observed.etcdMembers.flatMap(memberTrustFiles), ...apiTrustFiles(observed)]
  return {
    trustHolders: trust.map(({ process: name, node, path, flag }) => ({
      name,
      location: `${path} (--${flag})`,
      certificates: views(certificatesIn(fileAt(observed, node, path))),
      reloads: false,
    })),
    credentialHolders: etcdLeafFiles(observed).map((file) => ({
      name: file.node,
      location: file.path,
      certificates: views(certificatesIn(file)),
    })),
    assumptions: [],
    blastRadius: {
      caBundles: [],
      appliedBundles: [],
      kubeconfigs: [],
      joinTokens: [],
      foreign: [],
      stored: [],
      storedUnchecked: [],
      barePods: [],
      pods: 0,
    },
  }
}
