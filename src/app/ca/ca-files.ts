import { lstatSync } from 'node:fs'
import { type CertificateAuthority, openCa } from '../../ca/certificate-authority.ts'
import { IssuanceLog } from '../../ca/issuance-log.ts'
import type { FlagsOf } from '../../cli/base-command.ts'
import { flagFiles, type NamedFile } from '../../cli/command-files.ts'
import type { Context } from '../../cli/context.ts'
import * as Flag from '../../cli/flags.ts'
import { inFile, readInput } from '../../cli/input.ts'
import { readKeyFile } from '../../cli/key-file.ts'
import { orUndefined } from '../../errors/caught.ts'
import { commandLine } from '../../errors/command-line.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { AppendFile } from '../../system/append-file.ts'
import { finishKeyPair, isKeyPairPending } from '../../system/key-pair-files.ts'
import { withLock } from '../../system/lock.ts'
import { readCertificates } from '../../x509/certificate.ts'

// The files of a CA: certificate, key, and the issuance log.

/** The flags for the files of a CA. */
export const caFlags = {
  ca: Flag.value('FILE', 'certificate of the CA', { required: true }),
  'ca-key': Flag.value('FILE', 'private key of the CA', { required: true }),
  'ca-password-file': Flag.value(
    'FILE',
    'file with the password of --ca-key on its first line; "-" for standard input',
  ),
  'issuance-log': Flag.value(
    'FILE',
    'issuance log with the serial numbers of this CA (default next to its certificate)',
    { aliases: ['ledger'] },
  ),
}

/** The values of these flags. */
export type CaFlags = FlagsOf<typeof caFlags>

/** Returns the CA in the files of the flags. Throws as `openCa` does, and KCERT_KEY_ENCRYPTED if the password is missing. */
export async function openCaFiles(
  files: Omit<CaFlags, 'issuance-log'>,
  context: Context,
): Promise<CertificateAuthority> {
  const { ca, 'ca-key': caKey, 'ca-password-file': passwordFile } = files
  await finishInterruptedPair(ca)
  const caBytes = await readInput(ca, context)
  const { keyObject } = await readKeyFile(caKey, passwordFile, context, '--ca-password-file')
  return openCa(
    inFile(ca, () => readCertificates(caBytes)),
    keyObject,
    { ca, key: caKey },
  )
}

/** Returns the files of the flags that a command reads. */
export function caInputs(flags: Omit<CaFlags, 'issuance-log'>): NamedFile[] {
  return flagFiles(flags, 'ca', 'ca-key', 'ca-password-file')
}

/** Finishes what an interrupted `kcert ca init` did not complete, so that certificate and key are a pair. */
export async function finishInterruptedPair(ca: string): Promise<void> {
  if (isKeyPairPending(ca)) await withLock(ca, () => finishKeyPair(ca))
}

/** Returns the path of a CA's issuance log: --issuance-log, else next to its certificate. Throws KCERT_USAGE without either. */
export function issuanceLogPath({
  ca,
  'issuance-log': issuanceLog,
}: Pick<CaFlags, 'ca' | 'issuance-log'>): string {
  if (issuanceLog !== undefined) return issuanceLog
  if (ca !== '-') return defaultIssuanceLogPath(ca)
  throw new KcertError('KCERT_USAGE', '--issuance-log is required with --ca -', {
    why: 'by default the issuance log is next to the certificate; always use the same file for one CA',
    next: '--issuance-log ca.issuance-log.jsonl',
  })
}

/**
 * Returns the default path of the issuance log: "ca.issuance-log.jsonl" for "ca.pem" or "ca.crt". If only the log with the name that
 * kcert used before exists, returns its path, because serial numbers in it must not be used again. Throws KCERT_USAGE if both exist.
 */
export function defaultIssuanceLogPath(ca: string): string {
  const name = ca.replace(/\.(?:pem|crt|cer|cert)$/i, '')
  const path = `${name}.issuance-log.jsonl`
  const formerPath = `${name}.ledger.jsonl`
  if (!exists(formerPath)) return path
  if (!exists(path)) return formerPath
  throw new KcertError('KCERT_USAGE', `the CA has two issuance logs: ${formerPath} and ${path}`, {
    why: 'the serial numbers of both must not be used again',
    next: commandLine`cat ${formerPath} >> ${path} && mv ${formerPath} ${formerPath}.merged`,
  })
}

// A link whose target is missing counts: the log may be on a disk that is not mounted.
function exists(path: string): boolean {
  return orUndefined(() => lstatSync(path, { throwIfNoEntry: false })) !== undefined
}

/** Returns the result of `act` on the issuance log, while no other kcert process draws serial numbers from it. */
export async function withIssuanceLog<Result>(
  path: string,
  act: (issuanceLog: IssuanceLog) => Result,
): Promise<Result> {
  return withLock(path, () => act(new IssuanceLog(new AppendFile(path))))
}
