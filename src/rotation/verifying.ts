import type { Action, Probe, ProbeSubject } from './action.ts'
import { fileAt, type ProcessId, type Seen } from './picture.ts'
import { isProven, probe } from './proof.ts'
import { changeOf, type Target } from './target.ts'
import type { TrustFile } from './trust-files.ts'

// Proof that a verifier of client certificates has read its file: a certificate sent by force.

/** Returns what must be proven at a verifier: both CAs' clients accepted, or, once the old one is dropped, the old one refused. */
export function clientSubjects({ process, ca }: Pick<TrustFile, 'process' | 'ca'>, target: Target) {
  const client = (generation: 'old' | 'new', expects: 'accepted' | 'refused'): ProbeSubject => ({
    kind: 'client',
    at: process,
    ca,
    generation,
    expects,
  })
  return [client('new', 'accepted'), client('old', target.isDropping ? 'refused' : 'accepted')] as const
}

/** Returns what is not proven of these hot files since they last changed. */
export function unprovenAt(
  seen: Seen<'files' | 'evidence'>,
  files: readonly TrustFile[],
  target: Target,
): readonly ProbeSubject[] {
  return files
    .filter(({ ca, reload }) => reload === 'hot' && changeOf(target, ca) !== undefined)
    .flatMap((file) => {
      const since = fileAt(seen, file.node, file.path)?.changedAtMs ?? 0
      return clientSubjects(file, target).filter((subject) => !isProven(seen, subject, since))
    })
}

/** Returns the probes of all hot files among these, whatever is proven: they are about to change. */
export function provingAll(phase: number, files: readonly TrustFile[], target: Target): readonly Probe[] {
  return files
    .filter(({ ca, reload }) => reload === 'hot' && changeOf(target, ca) !== undefined)
    .flatMap((file) => clientSubjects(file, target).map((subject) => probe(phase, subject)))
}

/** Schedulers without flags of their own know clients by what API servers publish in extension-apiserver-authentication. */
export function schedulersByConfigMap(seen: Seen<'components'>): readonly ProcessId[] {
  return seen.components
    .filter(({ name, flags }) => name === 'kube-scheduler' && flags['client-ca-file'] === undefined)
    .map(({ id }) => id)
}

export function unprovenSchedulers(
  seen: Seen<'components' | 'extensionAuthentication' | 'evidence'>,
  target: Target,
): readonly ProbeSubject[] {
  if (changeOf(target, 'cluster') === undefined) return []
  const since = seen.extensionAuthentication?.changedAtMs ?? 0
  return schedulersByConfigMap(seen).flatMap((process) =>
    clientSubjects({ process, ca: 'cluster' }, target).filter((subject) => !isProven(seen, subject, since)),
  )
}

/** Returns the wait until API servers publish what they hold, and nothing else. */
export function awaitExtension(
  phase: number,
  client: readonly string[],
  requestheader: readonly string[],
): Action {
  return {
    kind: 'wait',
    phase,
    until: { kind: 'extension-authentication', client, requestheader },
    because: 'API servers publish their client CAs in extension-apiserver-authentication',
    deadlineMs: 120_000,
  }
}
