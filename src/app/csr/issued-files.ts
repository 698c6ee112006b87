import { isAbsolute, join } from 'node:path'
import type { Context } from '../../cli/context.ts'
import type { LocatedKey } from '../../cli/key-file.ts'
import type { Connection } from '../../cluster/connection.ts'
import { kubeconfigDocument } from '../../kubeconfig/format.ts'
import { renderYaml } from '../../output/yaml.ts'
import { readFile } from '../../system/files.ts'
import { writeKeyFile, writePublicFile } from '../../system/output-file.ts'
import { type Certificate, writeCertificates } from '../../x509/certificate.ts'
import { writePrivateKey } from '../../x509/new-key.ts'

// What is created from an issued certificate: its file, and a kubeconfig for its user.

export interface KubeconfigSettings {
  readonly connection: Connection
  readonly chain: readonly Certificate[]
  readonly key: LocatedKey
  /** True: the kubeconfig has the path of the key file instead of the key. */
  readonly keyByPath: boolean
  /** The kubeconfig has this path instead of the certificate. */
  readonly certificateFile?: string | undefined
  readonly user: string | undefined
  readonly namespace: string | undefined
}

/** Returns the kubeconfig of a user with a client certificate. Paths in it are absolute. */
export function kubeconfigOf(
  settings: KubeconfigSettings,
  { workingFolder }: Pick<Context, 'workingFolder'>,
): string {
  const { connection, chain, key, keyByPath, certificateFile, namespace } = settings
  const { clusterName, ...cluster } = connection
  const name = settings.user ?? (chain[0]?.subject.commonName || 'user')
  const absolute = (file: string) => (isAbsolute(file) ? file : join(workingFolder, file))
  return renderYaml(
    kubeconfigDocument(
      { name: clusterName, ...cluster },
      {
        name,
        certificate:
          certificateFile === undefined ? writeCertificates(chain) : { file: absolute(certificateFile) },
        key: keyByPath ? { file: absolute(key.file) } : { pem: writePrivateKey(key.keyObject, 'kubernetes') },
        namespace,
      },
    ),
  )
}

/** Returns the kubeconfig of a user with a bearer token. It contains the token. */
export function tokenKubeconfig(
  { clusterName, ...cluster }: Connection,
  name: string,
  token: string,
  namespace: string | undefined,
): string {
  return renderYaml(kubeconfigDocument({ name: clusterName, ...cluster }, { name, token, namespace }))
}

/**
 * Writes a file unless it already has this content, so that an interrupted run can be repeated. Returns whether it was written.
 * Throws KCERT_FILE_EXISTS if another file exists and must not be replaced. A secret file gets mode 0600.
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
