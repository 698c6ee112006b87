import type { ProbeSubject, Task } from './action.ts'
import type { Digest } from './certificate-record.ts'
import { isProven } from './proof.ts'
import {
  type ComponentSnapshot,
  type ExtensionAuthenticationSnapshot,
  fileAt,
  type Observed,
} from './snapshot.ts'
import { type CaName, changeOf, type Target } from './target.ts'
import { patch, wait } from './tasks.ts'
import type { TrustFile } from './trust-files.ts'

// Proof that a verifier of client certificates has read its file: a connection that always presents a certificate.

type ClientSubject = Extract<ProbeSubject, { kind: 'client' }>

/**
 * Returns the required proofs at a verifier: it accepts clients of both CAs, or, once the old CA is dropped, rejects those of the
 * old CA.
 */
function clientSubjects(at: string, ca: CaName, target: Target): readonly ClientSubject[] {
  const client = { kind: 'client', at, ca } as const
  return [
    { ...client, generation: 'new', expects: 'accepted' },
    { ...client, generation: 'old', expects: target.isDropping ? 'refused' : 'accepted' },
  ]
}

/** Returns the missing proofs of these hot files since their last change. */
export function unprovenAt(
  observed: Observed<'files' | 'evidence'>,
  files: readonly TrustFile[],
  target: Target,
): readonly ClientSubject[] {
  return files
    .filter(({ ca, reload }) => reload === 'hot' && changeOf(target, ca) !== undefined)
    .flatMap((file) => {
      const since = fileAt(observed, file.node, file.path)?.changedAtMs
      return clientSubjects(file.process, file.ca, target).filter(
        (subject) => !isProven(observed, subject, since),
      )
    })
}

/** Returns true for components that authenticate clients with the CAs in extension-apiserver-authentication. */
export function knowsByConfigMap({ name, flags }: ComponentSnapshot): boolean {
  const isOne = name === 'kube-scheduler' || name === 'kube-controller-manager'
  if (!isOne || flags['client-ca-file'] !== undefined) return false
  // Without a kubeconfig for this lookup, they treat every client as anonymous, regardless of its certificate.
  return flags['authentication-kubeconfig'] !== undefined && flags['authentication-skip-lookup'] !== 'true'
}

export function unprovenSchedulers(
  observed: Observed<'components' | 'extensionAuthentication' | 'evidence'>,
  target: Target,
): readonly ClientSubject[] {
  if (changeOf(target, 'cluster') === undefined) return []
  const since = observed.extensionAuthentication?.changedAtMs
  return observed.components
    .filter(knowsByConfigMap)
    .flatMap(({ id }) => clientSubjects(id, 'cluster', target))
    .filter((subject) => !isProven(observed, subject, since))
}

/**
 * Returns the wait until API servers publish these generations of the rotated CAs, and not the other one. Other CAs in their
 * files, or from an earlier rotation in the ConfigMap, are ignored.
 */
export function awaitExtension(target: Target, ...generations: readonly ('oldCa' | 'newCa')[]): Task {
  const held = (ca: CaName): readonly Digest[] => {
    const change = changeOf(target, ca)
    return change === undefined ? [] : generations.map((generation) => change[generation].digest)
  }
  const [client, requestheader] = [held('cluster'), held('front-proxy')]
  const lacks = target.changes
    .flatMap(({ oldCa, newCa }) => [oldCa.digest, newCa.digest])
    .filter((digest) => !client.includes(digest) && !requestheader.includes(digest))
  return wait(
    { kind: 'extension-authentication', client, requestheader, lacks },
    'API servers publish their client CAs in extension-apiserver-authentication',
    120_000,
  )
}

/** Returns true when API servers publish one of these CAs there. */
export function publishes(
  { client, requestheader }: ExtensionAuthenticationSnapshot,
  digests: readonly Digest[],
): boolean {
  return [...client, ...requestheader].some((digest) => digests.includes(digest))
}

/**
 * Returns the deletion of extension-apiserver-authentication. The object only grows; after a delete, API servers create it again
 * with their current CAs.
 */
export function forgetting(version: string): Task {
  const object = { kind: 'ConfigMap', namespace: 'kube-system', name: 'extension-apiserver-authentication' }
  return patch(object, version, { kind: 'delete' })
}
