import { pinOf } from '../../bootstrap/pin.ts'
import type { BootstrapToken } from '../../bootstrap/token.ts'
import { formatToken } from '../../bootstrap/token.ts'
import type { CreatedToken } from '../../bootstrap/token-report.ts'
import { secretOfToken, secretPrefix, type TokenSettings } from '../../bootstrap/token-secret.ts'
import type { Cluster } from '../../cluster/cluster.ts'
import type { ApiObject } from '../../cluster/malformed.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { rfc3339 } from '../../pki/rfc3339.ts'
import { noteChange } from '../../system/lasting-changes.ts'
import { checkKeyPath, writeKeyFile } from '../../system/output-file.ts'
import { clusterInfoOf, joiningServer, tokenSecrets } from '../bootstrap/objects.ts'

// The only place where kcert outputs a complete token: docs/decisions/0020-tokens-that-are-created.md.

export interface CreationSettings extends TokenSettings {
  readonly dryRun: boolean
  /** The file for the secret, instead of the report; mode 0600. */
  readonly file: string | undefined
  /** The content of that file. */
  readonly form: 'join' | 'token'
  readonly replace: boolean
}

/** Creates a token on the cluster and returns it, with the command that joins a node with it. */
export async function createToken(cluster: Cluster, settings: CreationSettings): Promise<CreatedToken> {
  const { token, file, form, dryRun } = settings
  const joining = await joiningOf(cluster, form)
  if (file !== undefined) checkKeyPath(file, { replace: settings.replace })
  const object = secretOfToken(settings)
  const created = await cluster.objects.create(tokenSecrets, object, { dryRun })
  if (!dryRun && file === undefined) noteChange(`token ${token.id} is created`)
  const joinCommand = joining && joinCommandOf(joining, token)
  const secret = form === 'token' ? formatToken(token) : (joinCommand ?? '')
  if (file !== undefined && !dryRun)
    await handOver(cluster, settings, { file, secret: `${secret}\n`, created })
  const isShown = file === undefined && !dryRun
  return {
    apiVersion: 'kcert/v1',
    kind: 'CreatedToken',
    outcome: dryRun ? 'would-create' : 'created',
    id: token.id,
    ...(settings.description === undefined ? {} : { description: settings.description }),
    ...(settings.expiration === undefined ? {} : { expiration: rfc3339(settings.expiration) }),
    usages: [...settings.usages],
    groups: [...settings.groups],
    ...(isShown ? { token: formatToken(token) } : {}),
    ...(isShown && joinCommand !== undefined ? { joinCommand } : {}),
    ...(joining === undefined ? {} : { server: joining.server }),
    pins: joining?.pins ?? [],
    ...(file === undefined || dryRun ? {} : { file }),
    notices: noticesOf(settings),
  }
}

/**
 * Writes the secret. If that fails, the token is deleted again: otherwise an unused token would remain valid until it expires.
 */
async function handOver(
  { objects }: Cluster,
  { token, replace }: CreationSettings,
  { file, secret, created }: { readonly file: string; readonly secret: string; readonly created: ApiObject },
): Promise<void> {
  try {
    writeKeyFile(file, secret, { replace })
  } catch (error) {
    const { uid } = created.metadata as { uid?: string }
    await objects.delete(
      { ...tokenSecrets, name: secretPrefix + token.id },
      uid === undefined ? undefined : { uid },
    )
    throw error
  }
  noteChange(`token ${token.id} is created`)
}

interface Joining {
  readonly server: string
  readonly pins: string[]
}

/** Returns the server and pins to join with; undefined if they are not needed or not in cluster-info. */
async function joiningOf(cluster: Cluster, form: CreationSettings['form']): Promise<Joining | undefined> {
  try {
    const { info } = await clusterInfoOf(cluster)
    const server = joiningServer(info, 'correct it, or create the token alone (kcert token create -o token)')
    return { server: new URL(server).host, pins: [...new Set(info.cas.map(pinOf))] }
  } catch (error) {
    if (form === 'token' && error instanceof KcertError) return undefined
    throw error
  }
}

function joinCommandOf({ server, pins }: Joining, token: BootstrapToken): string {
  const hashes = pins.map((pin) => `--discovery-token-ca-cert-hash ${pin}`)
  return ['kubeadm join', server, '--token', formatToken(token), ...hashes].join(' ')
}

function noticesOf({ expiration, usages }: CreationSettings): string[] {
  return [
    ...(expiration === undefined
      ? ['it never expires: until it is deleted, anyone with it can request a certificate for any node']
      : []),
    ...(usages.includes('signing')
      ? []
      : ['it does not sign, so kubeadm join cannot find the cluster by it']),
    ...(usages.includes('authentication') ? [] : ['it does not authenticate, so kubelets cannot use it']),
  ]
}
