import { describe, expect, test } from 'vitest'
import { mastersFinding } from '../../src/csr/admission.ts'
import { readRequestContent } from '../../src/csr/signing-request.ts'
import { certificateUsages } from '../../src/pki/usages.ts'
import { grantedSeconds, type SignerAnswer, signerAnswer } from '../fakes/kubernetes-signer.ts'
import { recorded } from './recorded.ts'

interface SignerCase {
  readonly id: string
  readonly expect: 'sign' | 'fail' | 'nothing' | 'refuse' | 'admit' | 'reject'
  readonly signerName: string
  readonly usages: string[]
  readonly approved: boolean
  readonly failed: boolean
  readonly request: string
}

interface Recorded {
  readonly cases: SignerCase[]
  readonly durations: { certTTL: number; cases: { requested: number | null; granted: number; why: string }[] }
  readonly key_usages: {
    cases: { usages: string[]; keyUsage: string[]; extKeyUsage: string[]; error: boolean }[]
  }
}

const truth = recorded<Recorded>('signer-validation.json')

const words: Record<SignerAnswer, SignerCase['expect']> = {
  signed: 'sign',
  failed: 'fail',
  waits: 'nothing',
  'no-signer': 'refuse',
  'other-signer': 'refuse',
}

function answerTo(recordedCase: SignerCase): SignerCase['expect'] {
  const { request } = readRequestContent(Buffer.from(recordedCase.request))
  if (request === undefined) throw new Error(`${recordedCase.id}: request cannot be read`)
  const { id, signerName, usages } = recordedCase
  if (id.startsWith('admission/'))
    return mastersFinding(signerName, request).outcome === 'met' ? 'admit' : 'reject'
  return words[signerAnswer(signerName, { request, usages }, recordedCase)]
}

describe.skipIf(truth === undefined)('kube-controller-manager 1.36', () => {
  test('signs, fails or skips as recorded: 39 of 39', () => {
    const cases = truth!.cases.map((one) => ({ id: one.id, answer: answerTo(one) }))
    expect(cases).toEqual(truth!.cases.map((one) => ({ id: one.id, answer: one.expect })))
    expect(cases).toHaveLength(39)
  })

  test('grants the lifetimes as recorded: 7 of 7', () => {
    const { certTTL, cases } = truth!.durations
    const granted = cases.map(({ requested }) => grantedSeconds(requested ?? undefined, certTTL))
    expect(granted).toEqual(cases.map((one) => one.granted))
    expect(granted).toHaveLength(7)
  })

  test('turns usages into extensions as recorded: 6 of 6', () => {
    const { cases } = truth!.key_usages
    // X.509 calls this bit nonRepudiation, RFC 5280 contentCommitment.
    const named = (bit: string) => (bit === 'nonRepudiation' ? 'contentCommitment' : bit)
    const found = cases.map(({ usages }) => {
      const made = certificateUsages(usages)
      return {
        // The bits of one field have no order.
        keyUsage: (made?.keyUsage.map(named) ?? []).sort(),
        extKeyUsage: made?.extendedKeyUsage ?? [],
        error: made === undefined,
      }
    })
    expect(found).toEqual(
      cases.map(({ keyUsage, extKeyUsage, error }) => ({ keyUsage: keyUsage.sort(), extKeyUsage, error })),
    )
    expect(found).toHaveLength(6)
  })
})
