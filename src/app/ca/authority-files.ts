import { type Authority, openAuthority } from '../../ca/authority.ts'
import { Ledger } from '../../ca/ledger.ts'
import type { FlagsOf } from '../../cli/base-command.ts'
import { flagFiles, type NamedFile } from '../../cli/command-files.ts'
import type { Context } from '../../cli/context.ts'
import { valueFlag } from '../../cli/flags.ts'
import { inFile, readInput } from '../../cli/input.ts'
import { readKeyFile } from '../../cli/key-file.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { AppendFile } from '../../system/append-file.ts'
import { finishKeyPair, isKeyPairPending } from '../../system/key-pair-files.ts'
import { withLock } from '../../system/lock.ts'
import { readCertificates } from '../../x509/certificate.ts'

// The files of a CA: certificate, key, and the ledger of what it has signed.

/** The flags that name a CA. */
export const authorityFlags = {
  ca: valueFlag('FILE', "the CA's certificate", { required: true }),
  'ca-key': valueFlag('FILE', "the CA's private key", { required: true }),
  'ca-password-file': valueFlag(
    'FILE',
    'file whose first line opens an encrypted key; "-" for standard input',
  ),
  ledger: valueFlag(
    'FILE',
    'where the serial numbers of this CA are written down, if not beside its certificate',
  ),
}

/** What they say. */
export type AuthorityFiles = FlagsOf<typeof authorityFlags>

/** Returns the CA that the flags name. Throws as `openAuthority` does, and KCERT_KEY_ENCRYPTED where a password is missing. */
export async function openAuthorityFiles(
  files: Omit<AuthorityFiles, 'ledger'>,
  context: Context,
): Promise<Authority> {
  const { ca, 'ca-key': caKey, 'ca-password-file': passwordFile } = files
  await finishInterruptedPair(ca)
  const caBytes = await readInput(ca, context)
  const { keyObject } = await readKeyFile(caKey, passwordFile, context, '--ca-password-file')
  return openAuthority(
    inFile(ca, () => readCertificates(caBytes)),
    keyObject,
    { ca, key: caKey },
  )
}

/** Returns the files that the flags of a CA name and that a command reads. */
export function authorityInputs(flags: Omit<AuthorityFiles, 'ledger'>): NamedFile[] {
  return flagFiles(flags, 'ca', 'ca-key', 'ca-password-file')
}

/** Brings to an end what a crash of `kcert ca init` left half done, so that certificate and key are a pair. */
export async function finishInterruptedPair(ca: string): Promise<void> {
  if (isKeyPairPending(ca)) await withLock(ca, () => finishKeyPair(ca))
}

/** Returns where the ledger of a CA is: where --ledger says, else beside its certificate. Throws KCERT_USAGE where neither is. */
export function ledgerOf({ ca, ledger }: Pick<AuthorityFiles, 'ca' | 'ledger'>): string {
  if (ledger !== undefined) return ledger
  if (ca !== '-') return ledgerPath(ca)
  throw new KcertError('KCERT_USAGE', 'it is not said where the serial numbers of the CA are written down', {
    why: 'by default in a file beside its certificate; with standard input, --ledger names it, always the same for one CA',
    next: '--ledger FILE',
  })
}

/** Returns where the ledger is without --ledger: "ca.ledger.jsonl" for "ca.pem" or "ca.crt". */
export function ledgerPath(ca: string): string {
  return `${ca.replace(/\.(?:pem|crt|cer|cert)$/i, '')}.ledger.jsonl`
}

/** Returns what `act` does with the ledger, while no other kcert draws serial numbers from it. */
export async function withLedger<Result>(path: string, act: (ledger: Ledger) => Result): Promise<Result> {
  return withLock(path, () => act(new Ledger(new AppendFile(path))))
}
