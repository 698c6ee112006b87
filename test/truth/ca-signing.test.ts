import { generateKeyPairSync } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { openCa, readRequest, signRequest } from '../../src/ca/certificate-authority.ts'
import { kubernetesProfile } from '../../src/ca/profile.ts'
import { grantedTtlMs, kubernetesShortMs, validityOf } from '../../src/ca/validity.ts'
import { KcertError } from '../../src/errors/kcert-error.ts'
import { certificateUsages, type Usage } from '../../src/pki/usages.ts'
import { Certificate } from '../../src/x509/certificate.ts'
import { createRequest, issueCertificate } from '../../src/x509/issuing.ts'
import { recorded } from './recorded.ts'

interface Policy {
  readonly id: string
  readonly ttl: number
  readonly backdate: number
  readonly short?: number
}

interface Recorded {
  readonly durations: {
    readonly certTTL: number
    readonly cases: readonly { requested: number | null; granted: number; why: string }[]
  }
  readonly ca_sign: {
    readonly cases: readonly (Policy & { notBefore: number; notAfter: number })[]
    readonly errors: readonly (Policy & { caNotAfter: number; error: string })[]
  }
  readonly key_usages: {
    readonly cases: readonly { usages: string[]; keyUsage: string[]; extKeyUsage: string[]; error: boolean }[]
  }
  readonly signed_certificate: {
    readonly usages: Usage[]
    readonly requestedSeconds: number
    readonly ttlSeconds: number
    readonly want: {
      readonly version: number
      readonly cn: string
      readonly o: string[]
      readonly ku: string[]
      readonly eku: string[]
      readonly ca: boolean
      readonly notBeforeOffset: number
      readonly notAfterOffset: number
    }
  }
}

const truth = recorded<Recorded>('signer-validation.json')

const now = new Date('2026-11-21T09:00:00Z')
const fromNow = (seconds: number): Date => new Date(now.getTime() + seconds * 1000)
const secondsFromNow = (date: Date): number => (date.getTime() - now.getTime()) / 1000
const day = 86_400
const caUntil = (notAfter: Date) => ({ notAfter, ca: 'ca.pem', key: 'ca-key.pem' })

const caKey = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
const requestKey = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey

/** Returns the CA of the recorded cases: valid since a day ago, for another day. */
function signingCa(caNotAfter = day) {
  const name = { commonName: 'test-ca' }
  const der = issueCertificate(
    {
      serialNumber: '2a',
      subject: name,
      issuer: name,
      notBefore: fromNow(-day),
      notAfter: fromNow(caNotAfter),
      publicKey: caKey,
      basicConstraints: { ca: true },
      keyUsage: ['digitalSignature', 'keyEncipherment', 'keyCertSign'],
    },
    caKey,
  )
  return openCa([Certificate.parse(der)], caKey, { ca: 'ca', key: 'key' })
}

describe.skipIf(truth === undefined)("kcert's CA, compared with kube-controller-manager 1.36", () => {
  test('signs with the recorded validity: 7 of 7', () => {
    const { cases } = truth!.ca_sign
    const found = cases.map(({ id, ttl, backdate, short = 0 }) => {
      const policy = { ttlMs: ttl * 1000, backdateMs: backdate * 1000, shortMs: short * 1000 }
      const { notBefore, notAfter } = validityOf(policy, now, caUntil(fromNow(day)))
      return { id, notBefore: secondsFromNow(notBefore), notAfter: secondsFromNow(notAfter) }
    })
    expect(found).toEqual(cases.map(({ id, notBefore, notAfter }) => ({ id, notBefore, notAfter })))
    expect(found).toHaveLength(7)
  })

  test('refuses to sign with an expired CA, and names the expired certificate: 2 of 2', () => {
    const words: Readonly<Record<string, RegExp>> = {
      'signer has expired': /^the CA ca.pem has expired before the certificate would be valid$/,
      'refusing to sign a certificate that expired in the past':
        /^the CA ca.pem has expired, and its certificates would be expired, too$/,
    }
    const { errors } = truth!.ca_sign
    for (const { ttl, backdate, caNotAfter, error } of errors) {
      const sign = () =>
        validityOf(
          { ttlMs: ttl * 1000, backdateMs: backdate * 1000, shortMs: 0 },
          now,
          caUntil(fromNow(caNotAfter)),
        )
      expect(sign).toThrow(KcertError)
      expect(sign).toThrow(words[error]!)
    }
    expect(errors).toHaveLength(2)
  })

  test('grants the recorded lifetimes: 7 of 7', () => {
    const { certTTL, cases } = truth!.durations
    const granted = cases.map(({ requested }) =>
      grantedTtlMs(requested === null ? undefined : requested * 1000, certTTL * 1000),
    )
    expect(granted).toEqual(cases.map((one) => one.granted * 1000))
    expect(granted).toHaveLength(7)
  })

  test('adds the recorded usages to certificates: 6 of 6', () => {
    const request = readRequest(createRequest({ subject: { commonName: 'x' } }, requestKey), 'x.csr')
    // X.509 calls this bit nonRepudiation, RFC 5280 contentCommitment.
    const named = (bit: string) => (bit === 'nonRepudiation' ? 'contentCommitment' : bit)
    const { cases } = truth!.key_usages
    const found = cases.map(({ usages }) => {
      if (certificateUsages(usages) === undefined) return { keyUsage: [], extKeyUsage: [], error: true }
      const { certificate } = signRequest(
        signingCa(),
        request,
        kubernetesProfile(usages as Usage[]),
        now,
        '01',
      )
      const keyUsage = (certificate.keyUsage ?? []).map(named).sort()
      return { keyUsage, extKeyUsage: certificate.extendedKeyUsage, error: false }
    })
    expect(found).toEqual(
      cases.map(({ keyUsage, extKeyUsage, error }) => ({
        keyUsage: keyUsage.toSorted(),
        extKeyUsage,
        error,
      })),
    )
    expect(found).toHaveLength(6)
  })

  test('signs the recorded certificate', () => {
    const { usages, requestedSeconds, ttlSeconds, want } = truth!.signed_certificate
    const subject = { commonName: want.cn, organization: want.o }
    const request = readRequest(
      createRequest({ subject, keyUsage: ['keyCertSign'] }, requestKey),
      'kubelet.csr',
    )
    const ttlMs = grantedTtlMs(requestedSeconds * 1000, ttlSeconds * 1000)
    expect(ttlMs).toBeLessThan(kubernetesShortMs)
    const { certificate } = signRequest(signingCa(), request, kubernetesProfile(usages, ttlMs), now, '01')
    expect({
      version: certificate.version,
      cn: certificate.subject.commonName,
      o: certificate.subject.organization,
      ku: certificate.keyUsage,
      eku: certificate.extendedKeyUsage,
      basicConstraintsValid: certificate.basicConstraints !== undefined,
      ca: certificate.isCa,
      notBeforeOffset: secondsFromNow(certificate.notBefore),
      notAfterOffset: secondsFromNow(certificate.notAfter),
    }).toEqual(want)
  })
})
