import { createPublicKey, generateKeyPairSync } from 'node:crypto'
import { duplexPair } from 'node:stream'
import { connect, createSecureContext, TLSSocket } from 'node:tls'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Certificate } from '../../src/x509/certificate.ts'
import { CertificatePool } from '../../src/x509/certificate-pool.ts'
import { issueCertificate } from '../../src/x509/issuing.ts'
import { askOtherVerifiers } from '../../src/x509/other-verifiers.ts'
import { writePem } from '../../src/x509/pem.ts'
import { type GeneratedQuestion, questionAbout } from './pki-arbitrary.ts'
import { seed } from './seed.ts'

const handshakes = Number(process.env.KCERT_HANDSHAKES ?? 400)

test(
  'kcert predicts the result of a handshake in this Node.js',
  async () => {
    const outcomes = new Map<string, number>()
    await fc.assert(
      fc.asyncProperty(questionAbout(new Date()), async (generated) => {
        const leaf = parsed(generated.leaf)
        if (leaf === undefined || generated.purpose === 'any') return
        const roots = generated.roots.map(parsed).filter((one) => one !== undefined)
        const intermediates = generated.intermediates.map(parsed).filter((one) => one !== undefined)
        // The clock is the real one, so the result must not depend on the exact second.
        if ([leaf, ...roots, ...intermediates].some(changesSoon)) return
        // A server cannot present a certificate of another key.
        if (!createPublicKey(generated.leafKey).equals(leaf.publicKey.keyObject())) return
        const question = {
          ...generated,
          // Not the time for which the PKI was generated: a run may take minutes.
          at: new Date(),
          leaf,
          roots: new CertificatePool(roots),
          intermediates: new CertificatePool(intermediates),
        }
        const expected = askOtherVerifiers(question).find(({ verifier }) => verifier === 'node')!
        const outcome = await handshakeResult({
          ...generated,
          roots: ders(roots),
          intermediates: ders(intermediates),
        })
        outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
        expect({ accepts: expected.accepts, outcome }).toEqual({ accepts: outcome === 'authorized', outcome })
      }),
      { numRuns: handshakes, seed },
    )
    const counts = [...outcomes]
      .toSorted((a, b) => b[1] - a[1])
      .map(([outcome, count]) => `${outcome} ${count}`)
    console.log(`${handshakes} handshakes, seed ${seed}: ${counts.join(', ')}`)
    expect(outcomes.get('authorized') ?? 0).toBeGreaterThan(handshakes * 0.1)
  },
  Math.max(300_000, handshakes * 100),
)

function parsed(der: Uint8Array): Certificate | undefined {
  try {
    return Certificate.parse(der)
  } catch {
    return undefined
  }
}

const ders = (certificates: readonly Certificate[]): Uint8Array[] => certificates.map(({ der }) => der)

function changesSoon({ notBefore, notAfter }: Certificate): boolean {
  const now = Date.now()
  return [notBefore, notAfter].some((time) => Math.abs(time.getTime() - now) < 60_000)
}

/** Presents the leaf with the intermediates to a peer that trusts the roots. Returns "authorized", or OpenSSL's error. */
async function handshakeResult(question: GeneratedQuestion): Promise<string> {
  const { leaf, leafKey, roots, intermediates, purpose, name } = question
  const pem = (der: Uint8Array): string => writePem('CERTIFICATE', der)
  const presented = createSecureContext({
    key: leafKey.export({ format: 'pem', type: 'pkcs8' }),
    cert: [leaf, ...intermediates].map(pem).join(''),
    // The presenting side must be able to use weak keys. Only the other side's result is used.
    ciphers: 'DEFAULT@SECLEVEL=0',
  })
  const [clientEnd, serverEnd] = duplexPair()
  const isServer = purpose === 'server'
  const server = new TLSSocket(serverEnd, {
    isServer: true,
    secureContext: isServer ? presented : createSecureContext({ ...serverIdentity, ca: roots.map(pem) }),
    requestCert: !isServer,
    rejectUnauthorized: false,
  })
  const client = connect({
    socket: clientEnd,
    host: name ?? 'unchecked',
    rejectUnauthorized: false,
    ...(name === undefined && { checkServerIdentity: () => undefined }),
    ...(isServer ? { ca: roots.map(pem) } : { secureContext: presented }),
  })
  const verifying = isServer ? client : server
  try {
    return await new Promise<string>((resolve) => {
      for (const end of [client, server]) end.on('error', (error) => resolve(`failed: ${error.message}`))
      verifying.on(isServer ? 'secureConnect' : 'secure', () => {
        resolve(String(verifying.authorizationError ?? verifierError(verifying) ?? 'authorized'))
      })
    })
  } finally {
    client.destroy()
    server.destroy()
  }
}

/** A server created without the http module has its verification result only in the handle. */
function verifierError(socket: TLSSocket): string | undefined {
  const { ssl } = socket as unknown as { ssl: { verifyError(): (Error & { code?: string }) | null } }
  return ssl.verifyError()?.code
}

/** The certificate of a server that only verifies its client. */
const serverIdentity = (() => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const der = issueCertificate(
    {
      serialNumber: '01',
      subject: { commonName: 'server' },
      issuer: { commonName: 'server' },
      notBefore: new Date('2020-01-01T00:00:00Z'),
      notAfter: new Date('2040-01-01T00:00:00Z'),
      publicKey: privateKey,
    },
    privateKey,
  )
  return { key: privateKey.export({ format: 'pem', type: 'pkcs8' }), cert: writePem('CERTIFICATE', der) }
})()
