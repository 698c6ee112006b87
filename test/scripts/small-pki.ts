import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { onTestFinished } from 'vitest'
import { type CertificateDescription, issueCertificate } from '../../src/x509/issuing.ts'
import { writePem } from '../../src/x509/pem.ts'

// A CA and leaves for whole-command sessions. They are created for each run, since the project stores no private key.

/** The time of sessions, for `--at`. */
export const sessionTime = '2026-11-21T09:00:00Z'

export interface Issued {
  readonly der: Uint8Array
  readonly pem: string
  readonly key: KeyObject
  readonly keyPem: string
  readonly subject: CertificateDescription['subject']
}

type Asked = Partial<CertificateDescription> & Pick<CertificateDescription, 'subject'>

let serial = 0x1000

/** Returns a certificate with its key. Self-signed without an issuer. Valid through 2026 by default. */
export function issued(asked: Asked, issuer?: Issued): Issued {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const der = issueCertificate(
    {
      serialNumber: (serial++).toString(16),
      issuer: issuer?.subject ?? asked.subject,
      notBefore: new Date('2026-01-01T00:00:00Z'),
      notAfter: new Date('2027-12-31T00:00:00Z'),
      publicKey,
      ...asked,
    },
    issuer?.key ?? privateKey,
  )
  const keyPem = privateKey.export({ format: 'pem', type: 'pkcs8' }) as string
  return { der, pem: writePem('CERTIFICATE', der), key: privateKey, keyPem, subject: asked.subject }
}

/** Returns a CA that is valid until 2036. */
export function createCa(commonName = 'kubernetes'): Issued {
  return issued({
    subject: { commonName },
    notAfter: new Date('2036-01-01T00:00:00Z'),
    basicConstraints: { ca: true },
    keyUsage: ['digitalSignature', 'keyCertSign'],
  })
}

/** Returns a client certificate. */
export function client(
  commonName: string,
  issuer: Issued,
  asked: Partial<CertificateDescription> = {},
): Issued {
  return issued(
    {
      subject: { commonName },
      keyUsage: ['digitalSignature'],
      extendedKeyUsage: ['clientAuth'],
      basicConstraints: { ca: false },
      ...asked,
    },
    issuer,
  )
}

/** Returns a folder with these files. It is removed after the test. */
export function folderWith(files: Readonly<Record<string, string | Uint8Array>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'kcert-session-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), content, { mode: name.endsWith('.key') ? 0o600 : 0o644 })
  }
  return folder
}
