import type { DeletedTokens } from '../../bootstrap/token-report.ts'
import { secretPrefix, tokenSecretType } from '../../bootstrap/token-secret.ts'
import type { Cluster } from '../../cluster/cluster.ts'
import { getOne } from '../../cluster/readable.ts'
import { commandLine } from '../../errors/command-line.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import type { Clock } from '../../system/clock.ts'
import { noteChange } from '../../system/lasting-changes.ts'
import { tokenSecrets, tokensOf } from '../bootstrap/objects.ts'

type Outcome = DeletedTokens['tokens'][number]

/** Deletes tokens by their ids, each only in the version that was read. */
export async function deleteTokens(
  cluster: Cluster,
  ids: readonly string[],
  dryRun: boolean,
): Promise<DeletedTokens> {
  const tokens: Outcome[] = []
  for (const id of ids) tokens.push({ id, outcome: await deleteOne(cluster, id, dryRun) })
  return { apiVersion: 'kcert/v1', kind: 'DeletedTokens', tokens }
}

async function deleteOne({ objects }: Cluster, id: string, dryRun: boolean): Promise<Outcome['outcome']> {
  const resource = { ...tokenSecrets, name: secretPrefix + id }
  const secret = await getOne(objects, resource)
  if (secret === undefined) return 'not-found'
  if (secret.type !== tokenSecretType)
    throw new KcertError('KCERT_API_INVALID', `the Secret ${resource.name} is not a bootstrap token`, {
      why: `its type is ${JSON.stringify(secret.type)}, not ${tokenSecretType}`,
      next: commandLine`kubectl -n kube-system describe secret ${resource.name}`,
    })
  if (dryRun) return 'would-delete'
  const { uid } = secret.metadata
  const isGone = await objects.delete(resource, uid === undefined ? undefined : { uid })
  if (!isGone) return (await objects.get(resource)) === undefined ? 'not-found' : 'changed'
  noteChange(`token ${id} is deleted`)
  return 'deleted'
}

/** Returns the ids of the expired tokens. Throws KCERT_API_FORBIDDEN if listing them is forbidden. */
export async function expiredTokens(cluster: Cluster, clock: Clock): Promise<string[]> {
  const tokens = await tokensOf(cluster, clock())
  if (tokens === undefined) throw forbiddenTokens()
  return tokens.all
    .filter(({ facts }) => facts.faults.some(({ id }) => id === 'expired' || id === 'expiration-unreadable'))
    .map(({ secretName }) => secretName.slice(secretPrefix.length))
}

/** Returns the error for a user who may not list the Secrets of tokens. */
export function forbiddenTokens(): KcertError {
  return new KcertError('KCERT_API_FORBIDDEN', 'not allowed to list secrets in namespace kube-system', {
    why: 'bootstrap tokens are Secrets there',
    next: 'kubectl auth can-i list secrets -n kube-system',
  })
}
