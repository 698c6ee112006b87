import { describe, expect, test } from 'vitest'
import { KcertError } from '../../src/errors/kcert-error.ts'
import { Certificate, certificateOfBlock, readCertificates } from '../../src/x509/certificate.ts'
import { readPrivateKey } from '../../src/x509/keys.ts'
import { isCertificateLabel, looksLikePem, readPem } from '../../src/x509/pem.ts'
import { readPkcs7 } from '../../src/x509/pkcs7.ts'
import { readPkcs12 } from '../../src/x509/pkcs12.ts'
import { CertificateRequest } from '../../src/x509/request.ts'
import { hasRecordedFiles, type RecordedFile, readRecorded, recordedFiles } from './manifest.ts'

/**
 * Files for which kcert differs from Go, each with its reason. The test fails when an exception is no longer needed.
 * The table is empty: for all files, kcert gives the result of Go, even where Node differs.
 */
const exceptions: ReadonlyMap<string, string> = new Map()

/** Returns "ok", or the error. An error other than a KcertError fails the test. */
function verdictOf(file: RecordedFile): string {
  try {
    read(file, readRecorded(file.path))
    return 'ok'
  } catch (error) {
    if (!(error instanceof KcertError)) throw error
    return `${error.code}: ${error.message}`
  }
}

function read({ kind }: RecordedFile, bytes: Buffer): void {
  if (kind === 'certificate') readFirstCertificate(bytes)
  if (kind === 'csr') readRequest(bytes)
  if (kind === 'pkcs7') readPkcs7(looksLikePem(bytes) ? (readPem(bytes).blocks[0]?.der ?? bytes) : bytes)
}

/** Reads the first certificate, as for the recorded results. */
function readFirstCertificate(bytes: Buffer): void {
  if (!looksLikePem(bytes)) {
    Certificate.parse(bytes)
    return
  }
  const block = readPem(bytes).blocks.find(({ label }) => isCertificateLabel(label))
  if (block === undefined) throw new KcertError('KCERT_X509_MALFORMED', 'no certificate in the PEM text')
  certificateOfBlock(block)
}

function readRequest(bytes: Buffer): void {
  const block = readPem(bytes).blocks.find(({ label }) => label.endsWith('CERTIFICATE REQUEST'))
  if (block === undefined) throw new KcertError('KCERT_X509_MALFORMED', 'no request in the PEM text')
  const verdict = CertificateRequest.parse(block.der).verifySignature()
  if (!verdict.ok) throw new KcertError('KCERT_X509_MALFORMED', `signature: ${verdict.reason}`)
}

describe.skipIf(!hasRecordedFiles)('recorded files', () => {
  test('are all present', () => {
    expect([recordedFiles('odd').length, recordedFiles('good').length]).toEqual([1419, 142])
  })

  for (const collection of ['odd', 'good'] as const) {
    test(`in ${collection}-certs: kcert accepts and refuses the same files as Go`, () => {
      const evaluated = recordedFiles(collection).filter(({ go }) => go !== undefined)
      const differing = evaluated.flatMap((file) => {
        const verdict = verdictOf(file)
        const follows = (verdict === 'ok') === file.go
        // An exception that is no longer needed is an error in the table.
        return follows === exceptions.has(file.path) ? [{ ...file, kcert: verdict }] : []
      })
      expect(differing).toEqual([])
      expect(evaluated.length).toBe(collection === 'odd' ? 1386 : 113)
    })

    test(`in ${collection}-certs: files without a result of Go are read or refused with KcertErrors`, () => {
      const others = recordedFiles(collection).filter(({ go, kind }) => go === undefined && kind !== 'pkcs12')
      for (const file of others) expect(verdictOf(file)).toMatch(/^ok$|^KCERT_/)
    })
  }

  test('kcert agrees where Go and Node agree on a certificate', () => {
    const agreed = [...recordedFiles('odd'), ...recordedFiles('good')].filter(
      ({ kind, go, node }) => kind === 'certificate' && go !== undefined && go === node,
    )
    const differing = agreed.filter((file) => (verdictOf(file) === 'ok') !== file.go)
    expect(differing).toEqual([])
    expect(agreed.length).toBe(1342)
  })

  test('a refusal contains the field and offset, or the line', () => {
    const refused = recordedFiles('odd').filter(({ kind, go }) => kind === 'certificate' && go === false)
    for (const file of refused) {
      expect(verdictOf(file)).toMatch(/ offset \d+: |no certificate in the PEM text/)
    }
  })

  test('reads every certificate of the largest bundle', () => {
    expect(readCertificates(readRecorded('odd-certs/cfssl/bundler_froyo.pem'))).toHaveLength(56)
  })

  test('reads the certificates of PKCS#7 bundles', () => {
    const certificatesOf = (path: string): string[] =>
      readPkcs7(readPem(readRecorded(path)).blocks[0]!.der).map((der) => Certificate.parse(der).subject.text)
    expect(certificatesOf('good-certs/cfssl/helpers_bundle_pkcs7.pem')).toHaveLength(2)
    expect(certificatesOf('good-certs/cfssl/helpers_cert_pkcs7.pem')).toHaveLength(1)
    expect(certificatesOf('odd-certs/cfssl/helpers_empty_pkcs7.pem')).toEqual([])
  })
})

/** The content of each keystore: the types of its keys and the number of certificates; or the error. */
const keystores: readonly (readonly [file: string, password: string | undefined, outcome: string])[] = [
  ['bad1.p12', 'foo', 'KCERT_X509_MALFORMED: PKCS#12: authSafe.content at offset 18: missing'],
  ['bad2.p12', '', 'KCERT_X509_MALFORMED: PKCS#12 AuthenticatedSafe: content at offset 15: missing'],
  ['bad3.p12', '', 'KCERT_X509_MALFORMED: PKCS#12 AuthenticatedSafe: content at offset 15: missing'],
  ['cfssl-emptypasswordpkcs12.p12', undefined, 'RSA, 1 certificate'],
  // Neither password of the note is correct; OpenSSL agrees.
  [
    'cfssl-multiplecerts.p12',
    'password',
    'KCERT_PASSWORD_WRONG: the password does not open the PKCS#12 keystore',
  ],
  ['cfssl-multiplecerts.p12', undefined, 'KCERT_KEY_ENCRYPTED: the PKCS#12 keystore is encrypted'],
  ['cfssl-passwordpkcs12.p12', 'password', 'RSA, 1 certificate'],
  ['empty_password.p12', '', 'ECDSA, 1 certificate'],
  ['empty_password_ber.p12', '', 'ECDSA, 1 certificate'],
  // More than 120 strings in strings. OpenSSL refuses it as well.
  ['empty_password_ber_nested.p12', '', 'KCERT_X509_MALFORMED: PKCS#12: offset 146: nested deeper than 32'],
  ['no_encryption.p12', 'foo', 'ECDSA, 1 certificate'],
  ['nss.p12', 'foo', 'RSA, 1 certificate'],
  ['null_password.p12', undefined, 'ECDSA, 1 certificate'],
  ['openssl.p12', 'foo', 'RSA, 1 certificate'],
  ['openssl.p12', 'bar', 'KCERT_PASSWORD_WRONG: the password does not open the PKCS#12 keystore'],
  ['openssl.p12', undefined, 'KCERT_KEY_ENCRYPTED: the PKCS#12 keystore is encrypted'],
  ['pbes2_sha1.p12', 'foo', 'RSA, 1 certificate'],
  ['pbes2_sha256.p12', 'foo', 'RSA, 1 certificate'],
  ['unicode_password.p12', 'Hello, 世界', 'ECDSA, 1 certificate'],
  ['windows.p12', 'foo', 'RSA, 1 certificate'],
]

describe.skipIf(!hasRecordedFiles)('recorded PKCS#12 keystores', () => {
  test.each(keystores)('%s with password %j: %s', async (file, password, outcome) => {
    expect(await openKeystore(readRecorded(`good-certs/p12/${file}`), password)).toBe(outcome)
  })

  test('has a result for each keystore', () => {
    const recorded = recordedFiles('good').filter(({ kind }) => kind === 'pkcs12')
    const evaluated = new Set(keystores.map(([file]) => `good-certs/p12/${file}`))
    expect(recorded.filter(({ path }) => !evaluated.has(path))).toEqual([])
    expect(evaluated.size).toBe(17)
  })

  test('returns the key of the certificate', async () => {
    const { certificates, keys } = await readPkcs12(readRecorded('good-certs/p12/windows.p12'), 'foo')
    const key = readPrivateKey(keys[0]!.der)
    expect(key.publicKey!.sha256).toBe(Certificate.parse(certificates[0]!.der).publicKey.sha256)
    expect(keys[0]!.localKeyId).toBe(certificates[0]!.localKeyId)
  })
})

async function openKeystore(bytes: Buffer, password: string | undefined): Promise<string> {
  try {
    const { certificates, keys } = await readPkcs12(bytes, password)
    for (const { der } of certificates) Certificate.parse(der)
    const types = keys.map(({ der }) => readPrivateKey(der).publicKey!.algorithm)
    return `${types.join(' ')}, ${certificates.length} certificate${certificates.length === 1 ? '' : 's'}`
  } catch (error) {
    if (!(error instanceof KcertError)) throw error
    return `${error.code}: ${error.message}`
  }
}
