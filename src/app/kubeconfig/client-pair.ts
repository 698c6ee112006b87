import { dirname, resolve } from 'node:path'
import type { Context } from '../../cli/context.ts'
import { inFile, readInput, readPassword } from '../../cli/input.ts'
import { isKubeconfig, type LocatedKey, readKeyFile } from '../../cli/key-file.ts'
import { commandLine } from '../../errors/command-line.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { sourceName } from '../../errors/source-name.ts'
import { keyText } from '../../output/names.ts'
import { type Certificate, readCertificates } from '../../x509/certificate.ts'
import { minorsOfKey } from '../../x509/go-keys.ts'
import { readPrivateKeyFile } from '../../x509/keys.ts'
import type { KubeconfigFile } from './kubeconfig-file.ts'

/** A client certificate with its chain, and its key. */
export interface ClientPair {
  readonly chain: readonly Certificate[]
  readonly key: LocatedKey
  readonly notices: string[]
}

/** Returns the client certificate of a file with its key. Throws KCERT_CERTIFICATE_UNFIT if they do not match, or it has expired. */
export async function readClientPair(
  file: string,
  readKey: () => Promise<LocatedKey>,
  context: Context,
): Promise<ClientPair> {
  const bytes = await readInput(file, context)
  if (file !== '-' && bytes[0] !== 0x30 && Buffer.from(bytes).includes('client-certificate-data:'))
    throw isKubeconfig(file, 'certificate')
  const chain = inFile(file, () => readCertificates(bytes))
  const key = await readKey()
  const [leaf] = chain
  const place = sourceName(file)
  if (leaf === undefined)
    throw new KcertError('KCERT_CERTIFICATE_UNFIT', `${place} contains no certificate`, {
      next: commandLine`kcert inspect ${file}`,
    })
  if (leaf.publicKey.sha256 !== key.publicKey.sha256) {
    const what = `the certificate in ${place} does not match the key in ${sourceName(key.file)}`
    throw new KcertError('KCERT_CERTIFICATE_UNFIT', what, {
      why: 'their public keys differ, so clients cannot authenticate with them',
      next: commandLine`kcert inspect ${file} ${key.file}`,
    })
  }
  const now = context.clock()
  if (leaf.notAfter < now) {
    const what = `the certificate in ${place} expired at ${leaf.notAfter.toISOString().replace('.000', '')}`
    throw new KcertError('KCERT_CERTIFICATE_UNFIT', what, {
      why: 'API servers reject it; request a new one',
      next: 'kcert csr request --help',
    })
  }
  const isClient = leaf.extendedKeyUsage.length === 0 || leaf.extendedKeyUsage.includes('clientAuth')
  const minors = minorsOfKey(leaf.publicKey)
  return {
    chain,
    key,
    notices: [
      ...(isClient ? [] : [`${place} is not a client certificate: its extended key usage lacks clientAuth`]),
      ...(minors === undefined ? [] : [`the key of ${place} is ${keyText(leaf.publicKey)}, ${minors}`]),
    ],
  }
}

/**
 * Returns the private key that a user of a kubeconfig already has, inline or as the path of a file. Throws KCERT_USAGE without one,
 * KCERT_KEY_ENCRYPTED if it is encrypted and the password is missing.
 */
export async function keyOfUser(
  { file, kubeconfig }: KubeconfigFile,
  name: string,
  passwordFile: string | undefined,
  context: Context,
): Promise<LocatedKey> {
  const material = kubeconfig.users.find((user) => user.name === name)?.clientKey
  if (material?.data !== undefined) {
    const { data } = material
    const password = await readPassword(passwordFile, context)
    const { keyObject, publicKey } = inFile(file, () => readPrivateKeyFile(data, password))
    if (keyObject !== undefined && publicKey !== undefined) return { keyObject, publicKey, file }
    const what = `the key of user ${JSON.stringify(name)} in ${file} is encrypted`
    throw new KcertError('KCERT_KEY_ENCRYPTED', what, {
      why: 'kcert needs the password; with it, the decrypted key is stored, because clients read no encrypted keys',
      next: '--password-file password.txt',
    })
  }
  // client-go takes paths relative to the kubeconfig's folder.
  if (material?.file !== undefined)
    return readKeyFile(
      resolve(dirname(resolve(context.workingFolder, file)), material.file),
      passwordFile,
      context,
    )
  throw new KcertError(
    'KCERT_USAGE',
    `--client-key is required: user ${JSON.stringify(name)} of ${file} has no key`,
    {
      fix: 'name the file with the private key of the certificate',
      next: 'kcert kubeconfig set-client --help',
    },
  )
}
