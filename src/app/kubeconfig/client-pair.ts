import type { Context } from '../../cli/context.ts'
import { inFile, readInput } from '../../cli/input.ts'
import { isKubeconfig, type KeyAtHand, readKeyFile } from '../../cli/key-file.ts'
import { commandLine } from '../../errors/command-line.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { sourceName } from '../../errors/source-name.ts'
import { type Certificate, readCertificates } from '../../x509/certificate.ts'

/** A client certificate with its chain, and its key. */
export interface ClientPair {
  readonly chain: readonly Certificate[]
  readonly key: KeyAtHand
  readonly notices: string[]
}

/** Returns the pair in two files. Throws KCERT_CERTIFICATE_UNFIT when they are no pair, or it is past its end. */
export async function readClientPair(
  files: { readonly certificate: string; readonly key: string; readonly passwordFile: string | undefined },
  context: Context,
): Promise<ClientPair> {
  const bytes = await readInput(files.certificate, context)
  if (
    files.certificate !== '-' &&
    bytes[0] !== 0x30 &&
    Buffer.from(bytes).includes('client-certificate-data:')
  )
    throw isKubeconfig(files.certificate, 'certificate')
  const chain = inFile(files.certificate, () => readCertificates(bytes))
  const key = await readKeyFile(files.key, files.passwordFile, context)
  const [leaf] = chain
  const place = sourceName(files.certificate)
  if (leaf === undefined)
    throw new KcertError('KCERT_CERTIFICATE_UNFIT', `${place} holds no certificate`, {
      next: commandLine`kcert inspect ${files.certificate}`,
    })
  if (leaf.publicKey.sha256 !== key.publicKey.sha256)
    throw new KcertError('KCERT_CERTIFICATE_UNFIT', `${place} is not of the key ${sourceName(files.key)}`, {
      why: 'a client that has both cannot log in',
      next: commandLine`kcert inspect ${files.certificate} ${files.key}`,
    })
  const now = context.clock()
  if (leaf.notAfter < now)
    throw new KcertError('KCERT_CERTIFICATE_UNFIT', `${place} has expired`, {
      why: `it ended at ${leaf.notAfter.toISOString().replace('.000', '')}`,
      next: 'request another: kcert csr request --user NAME --key-out FILE --out FILE',
    })
  const isClient = leaf.extendedKeyUsage.length === 0 || leaf.extendedKeyUsage.includes('clientAuth')
  return {
    chain,
    key,
    notices: isClient ? [] : [`${place} is not for clients: its extended key usage lacks clientAuth`],
  }
}
