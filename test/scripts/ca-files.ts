import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { type Certificate, readCertificates } from '../../src/x509/certificate.ts'
import { kcert, type Session } from './program.ts'

// A folder with a CA from `kcert ca init` for whole-command sessions, and openssl to check the results.

/** Returns a new folder that is removed after the test. */
export function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'kcert-ca-'))
  onTestFinished(() => rmSync(path, { recursive: true }))
  return path
}

/** Returns a function that runs kcert in the folder. Relative paths in its arguments refer to that folder. */
export function inFolder(at: string): (args: readonly string[], stdin?: string | Uint8Array) => Session {
  return (args, stdin = '') => kcert(args, { cwd: at, stdin })
}

/** Returns a folder with ca.pem and ca-key.pem of a new CA. */
export function folderWithCa(...flags: readonly string[]): string {
  const at = folder()
  const made = inFolder(at)([
    'ca',
    'init',
    '--cn',
    'signer',
    '--out',
    'ca.pem',
    '--key-out',
    'ca-key.pem',
    ...flags,
  ])
  if (made.exit !== 0) throw new Error(made.stderr)
  return at
}

/** Returns openssl's output. Throws with its error message. */
export function openssl(at: string, ...args: readonly string[]): string {
  return execFileSync('openssl', args, { cwd: at, encoding: 'utf8', stdio: 'pipe' })
}

/** Creates NAME.key and NAME.csr with openssl, as users do. */
export function opensslRequest(at: string, name: string, ...flags: readonly string[]): void {
  const keys = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', `${name}.key`]
  openssl(at, 'req', '-new', ...keys, '-subj', `/O=group/CN=${name}`, '-out', `${name}.csr`, ...flags)
}

/** Returns the first certificate of a file. */
export function certificateIn(at: string, name: string): Certificate {
  return readCertificates(readFileSync(join(at, name)))[0]!
}

/** Returns the entries of an issuance log. */
export function issuanceLogIn(at: string, name = 'ca.issuance-log.jsonl'): Record<string, string>[] {
  const lines = readFileSync(join(at, name), 'utf8').trim().split('\n')
  return lines.map((line) => JSON.parse(line) as Record<string, string>)
}

/** Returns whether `openssl verify` accepts the certificate under the CA file. */
export function opensslAccepts(at: string, ca: string, certificate: string): boolean {
  return (
    spawnSync('openssl', ['verify', '-x509_strict', '-CAfile', ca, certificate], { cwd: at }).status === 0
  )
}
