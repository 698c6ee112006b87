import type { KeyObject } from 'node:crypto'
import { commandLine } from '../errors/command-line.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { sourceName } from '../errors/source-name.ts'
import { readPrivateKeyFile } from '../x509/keys.ts'
import type { PublicKeyInfo } from '../x509/public-key.ts'
import type { Context } from './context.ts'
import { inFile, readInput, readPassword } from './input.ts'

/** A private key and the path of its file. */
export interface LocatedKey {
  readonly publicKey: PublicKeyInfo
  readonly keyObject: KeyObject
  readonly file: string
}

/**
 * Returns the private key of a file. An encrypted key is decrypted with the first line of the password file, which `flag` names.
 * Throws KCERT_KEY_ENCRYPTED if it is encrypted and there is no password. Every error names the file.
 */
export async function readKeyFile(
  file: string,
  passwordFile: string | undefined,
  context: Context,
  flag: '--password-file' | '--ca-password-file' = '--password-file',
): Promise<LocatedKey> {
  const password = await readPassword(passwordFile, context)
  const bytes = await readInput(file, context)
  if (file !== '-' && bytes[0] !== 0x30 && Buffer.from(bytes).includes('client-key-data:'))
    throw isKubeconfig(file, 'private key')
  const { keyObject, publicKey } = inFile(file, () =>
    readPrivateKeyFile(bytes, password, file === '-' ? undefined : file),
  )
  if (keyObject !== undefined && publicKey !== undefined) return { keyObject, publicKey, file }
  const what = `the private key ${sourceName(file)} is encrypted, and no password was given`
  throw new KcertError('KCERT_KEY_ENCRYPTED', what, {
    why: `give a file whose first line is the password with ${flag}`,
  })
}

/** Returns the error for a kubeconfig in place of a separate key or certificate file. */
export function isKubeconfig(file: string, expected: 'private key' | 'certificate'): KcertError {
  const part = expected === 'certificate' ? 'certificate' : 'key'
  const path = `jsonpath={.users[0].user.client-${part}-data}`
  return new KcertError('KCERT_X509_MALFORMED', `${file} is a kubeconfig, not a ${expected}`, {
    why: `its ${expected} is in client-${part}-data, in base64`,
    next: commandLine`(umask 077; kubectl config view --raw --kubeconfig ${file} -o ${path} | base64 -d > client.${expected === 'certificate' ? 'crt' : 'key'})`,
  })
}
