import { expect, test } from 'vitest'
import type { Certificate } from '../x509/certificate.ts'
import type { ChainQuestion, Refusal, RefusalCode } from '../x509/chain.ts'
import { refusalWords } from './refusal-words.ts'

type Fields = Record<string, unknown>

function certificate(commonName: string, more: Fields = {}): Certificate {
  const named = {
    subject: { commonName, text: `CN=${commonName}`, canonical: '' },
    issuer: { commonName: 'kubernetes', text: 'CN=kubernetes' },
    notBefore: new Date('2026-01-01T00:00:00Z'),
    notAfter: new Date('2027-01-01T00:00:00Z'),
    fingerprintSha256: 'f00d',
    publicKey: { algorithm: 'RSA', bits: 512 },
    subjectAltNames: { dns: [], ip: [] },
    extendedKeyUsage: [],
    unhandledCriticalExtensions: [],
    signatureAlgorithm: 'SHA1-RSA',
  }
  return { ...named, ...more } as unknown as Certificate
}

const leaf = certificate('leaf')
const ca = certificate('ca', { subjectKeyId: 'aa', keyUsage: ['cRLSign', 'digitalSignature'] })
const nobody = certificate('', { subject: { text: 'O=ops' } })
const empty = certificate('', { subject: { text: '' } })

interface Case {
  readonly code: RefusalCode
  readonly at?: Certificate
  readonly chain?: readonly Certificate[]
  readonly refusal?: Fields
  readonly question?: Fields
  /** The file that certificates come from; null for a server. */
  readonly file?: string | null
}

function wordsOf({ code, at = leaf, chain = [leaf, ca], refusal, question, file = 'in.crt' }: Case): string[] {
  const pools = { roots: { certificates: [] }, intermediates: { certificates: [] } }
  const asked = { ...pools, at: new Date('2026-11-21T09:00:00Z'), purpose: 'server', ...question }
  const { reason, next } = refusalWords(
    { code, certificate: at, chain, ...refusal } as unknown as Refusal,
    {
      question: asked as unknown as ChainQuestion,
      placeOf: ({ subject }) => `place of ${subject.commonName}`,
      sourceOf: ({ subject }) => `${subject.commonName}.crt`,
      fileOf: () => file ?? undefined,
    },
  )
  return [reason, next]
}

const names = (count: number) => Array.from({ length: count }, (_, i) => `n${i}`)
const violation = (more: Fields) => ({
  violation: { certificate: leaf, constrainedBy: ca, kind: 'DNS name', name: 'a.b', ...more },
})

const cases: Record<string, Case> = {
  'an expired leaf': { code: 'CERT_EXPIRED', at: certificate('old', { notAfter: new Date('2026-11-20T00:00:00Z') }), chain: [] },
}
