import { createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { expect, test } from 'vitest'
import { Certificate } from '../../x509/certificate.ts'
import { CertificatePool } from '../../x509/certificate-pool.ts'
import { verifyChain } from '../../x509/chain.ts'
import { issueCertificate, keyIdentifierOf } from '../../x509/issuing.ts'
import { findOpensslError } from '../../x509/openssl-path.ts'
import { certificateRecord } from '../certificate-record.ts'
import { refusingVerifiers } from './trust.ts'

// Every old and new CA of two names, with and without key identifiers, in every bundle and chain of a rotation.

const at = new Date('2026-11-21T12:00:00Z')
const key = (): KeyObject => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
const [oldKey, newKey, leafKey] = [key(), key(), key()]
let serial = 1

interface Made {
  readonly subject: string
  readonly of: KeyObject
  readonly issuer: string
  readonly by: KeyObject
  readonly ca: boolean
  readonly withSki: boolean
  readonly withAki: boolean
  readonly hours?: number
}

function make({ subject, of, issuer, by, ca, withSki, withAki, hours = 24 }: Made): Certificate {
  return Certificate.parse(
    issueCertificate(
      {
        serialNumber: (serial++).toString(16).padStart(2, '0'),
        subject: { commonName: subject },
        issuer: { commonName: issuer },
        notBefore: new Date(at.getTime() - 3_600_000),
        notAfter: new Date(at.getTime() + hours * 3_600_000),
        publicKey: createPublicKey(of),
        ...(ca ? { basicConstraints: { ca: true }, keyUsage: ['keyCertSign', 'cRLSign'] as const } : {}),
        ...(withSki ? { subjectKeyId: keyIdentifierOf(createPublicKey(of)) } : {}),
        ...(withAki ? { authorityKeyId: keyIdentifierOf(createPublicKey(by)) } : {}),
      },
      by,
    ),
  )
}

function worlds() {
  const made = []
  for (const newName of ['kubernetes', 'kubernetes-ca-2']) {
    for (const oldSki of [false, true]) {
      for (const newSki of [false, true]) {
        for (const expired of [false, true]) {
          const cn = 'kubernetes'
          const oldCa = make({
            subject: cn,
            of: oldKey,
            issuer: cn,
            by: oldKey,
            ca: true,
            withSki: oldSki,
            withAki: false,
            hours: expired ? -0.5 : 24,
          })
          const newCa = make({
            subject: newName,
            of: newKey,
            issuer: newName,
            by: newKey,
            ca: true,
            withSki: newSki,
            withAki: newSki,
          })
          const bridge = make({
            subject: newName,
            of: newKey,
            issuer: cn,
            by: oldKey,
            ca: true,
            withSki: newSki,
            withAki: oldSki,
          })
          const leafOf = (issuer: string, by: KeyObject, withAki: boolean) =>
            make({ subject: 'kube-apiserver', of: leafKey, issuer, by, ca: false, withSki: false, withAki })
          const [oldLeaf, newLeaf] = [leafOf(cn, oldKey, oldSki), leafOf(newName, newKey, newSki)]
          made.push({
            name: `${newName}, old SKI ${oldSki}, new SKI ${newSki}, old CA expired ${expired}`,
            cas: [oldCa, newCa],
            trusts: [[oldCa], [newCa], [oldCa, newCa], [newCa, oldCa], []],
            chains: [
              [oldLeaf],
              [newLeaf],
              [newLeaf, bridge],
              [oldLeaf, bridge],
              [newLeaf, newCa],
              [newLeaf, oldCa],
            ],
          })
        }
      }
    }
  }
  return made
}

test('records give the same results for Go and OpenSSL as complete certificates', () => {
  const answers = { accepted: 0, refused: 0, differing: 0 }
  for (const { name, cas, trusts, chains } of worlds()) {
    for (const trust of trusts) {
      for (const chain of chains) {
        const records = [...trust, ...chain].map((one) => certificateRecord(one, cas))
        const digests = (list: readonly Certificate[]) => list.map((one) => one.fingerprintSha256)
        const refusing = refusingVerifiers({
          chain: digests(chain),
          trust: digests(trust),
          certificates: new Map(records.map((record) => [record.digest, record])),
          atMs: at.getTime(),
        })
        const [leaf, ...others] = chain
        const asked = { leaf: leaf!, at, purpose: 'any' as const }
        const go = verifyChain({
          ...asked,
          roots: new CertificatePool(trust),
          intermediates: new CertificatePool(others),
        })
        const openssl = findOpensslError(
          { ...asked, roots: trust, intermediates: others },
          { authLevel: 0, isStrict: false, takesPartialChain: false },
        )
        const expected = [...(go.trusted ? [] : ['go']), ...(openssl ? ['openssl'] : [])]
        const where = `${name}: trust ${trust.length}, chain ${chains.indexOf(chain)} at ${trusts.indexOf(trust)}`
        expect(refusing, where).toEqual(expected)
        answers[refusing.length === 0 ? 'accepted' : refusing.length === 2 ? 'refused' : 'differing']++
      }
    }
  }
  expect(answers.accepted).toBeGreaterThan(100)
  expect(answers.refused).toBeGreaterThan(100)
  expect(answers.differing).toBeGreaterThan(10)
})
