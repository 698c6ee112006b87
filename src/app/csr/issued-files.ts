import { isAbsolute, join } from 'node:path'
import type { Context } from '../../cli/context.ts'
import type { KeyAtHand } from '../../cli/key-file.ts'
import type { Connection } from '../../cluster/connection.ts'
import { kubeconfigDocument } from '../../kubeconfig/format.ts'
import { renderYaml } from '../../output/yaml.ts'
import { readFile } from '../../system/files.ts'
import { writeKeyFile, writePublicFile } from '../../system/output-file.ts'
import { type Certificate, writeCertificates } from '../../x509/certificate.ts'
import { writePrivateKey } from '../../x509/new-key.ts'

// What is made of an issued certificate: its file, and a kubeconfig for whoever holds the key.

export interface KubeconfigSettings {
  readonly connection: Connection
  readonly chain: readonly Certificate[]
  readonly key: KeyAtHand
  /** The key stays in its file, and the kubeconfig names it. */
  readonly keyByPath: boolean
  readonly user: string | undefined
  readonly namespace: string | undefined
}

/** Returns the kubeconfig of whoever holds the key. It holds the key itself unless that stays in its file. */
export function kubeconfigOf(
  settings: KubeconfigSettings,
  { workingFolder }: Pick<Context, 'workingFolder'>,
): string {
  const { connection, chain, key, keyByPath, namespace } = settings
  const { clusterName, ...cluster } = connection
  const name = settings.user ?? (chain[0]?.subject.commonName || 'user')
  const file = isAbsolute(key.file) ? key.file : join(workingFolder, key.file)
  return renderYaml(
    kubeconfigDocument(
      { name: clusterName, ...cluster },
      {
        name,
        certificate: writeCertificates(chain),
        key: keyByPath ? { file } : { pem: writePrivateKey(key.keyObject, 'kubernetes') },
        namespace,
      },
    ),
  )
}

/** Returns the kubeconfig of whoever has a bearer token. It holds the token. */
export function tokenKubeconfig(
  { clusterName, ...cluster }: Connection,
  name: string,
  token: string,
  namespace: string | undefined,
): string {
  return renderYaml(kubeconfigDocument({ name: clusterName, ...cluster }, { name, token, namespace }))
}

/**
 * Writes a file, unless it holds just this already: a run that was cut off is run again. Returns whether it was written. Throws
 * KCERT_FILE_EXISTS where another file is there and must not be replaced. A secret one gets mode 0600.
 */
export function writeIssued(
  path: string,
  text: string,
  choice: { readonly replace: boolean; readonly isSecret: boolean },
): boolean {
  const there = readFile(path)
  if (!('reason' in there) && Buffer.from(text).equals(there.bytes)) return false
  if (choice.isSecret) writeKeyFile(path, text, choice)
  else writePublicFile(path, text, choice)
  return true
}
