import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { type Certificate, readCertificates } from '../../src/x509/certificate.ts'
import { CertificatePool } from '../../src/x509/certificate-pool.ts'
import { type ChainQuestion, verifyChain } from '../../src/x509/chain.ts'
import { goError } from '../../src/x509/go-words.ts'

// x509-limbo's cases with the results of Go 1.26.8. The score is agreement with Go, which clusters run.

interface LimboCase {
  readonly id: string
  readonly peer_certificate: string
  readonly trusted_certs: readonly string[]
  readonly untrusted_intermediates: readonly string[]
  readonly validation_time: string | null
  readonly go_time: string
  readonly validation_kind: 'SERVER' | 'CLIENT'
  readonly expected_peer_name: { readonly value: string } | null
  readonly go_result: 'SUCCESS' | 'FAILURE'
  readonly go_error?: string
}

const path = join(process.env.KCERT_TRUTH ?? resolve('../shared/truth'), 'limbo.json')
const isThere = existsSync(path)
if (!isThere) console.log(`x509-limbo's cases are left out: ${path} is not there`)
const cases = isThere ? (JSON.parse(readFileSync(path, 'utf8')) as { testcases: LimboCase[] }).testcases : []

/** The groups that must agree without exception. */
const promised = /^(?:rfc5280::|pathlen::|webpki::(?:eku|nc|san)::)/

describe.skipIf(!isThere)('x509-limbo', () => {
  test.for(cases.filter(({ id }) => promised.test(id)))('$id gets the same decision as in Go', (limbo) => {
    expect(answerTo(limbo)).toEqual(goAnswer(limbo))
  })

  test('the score over all cases', () => {
    const others = cases.filter((limbo) => answerTo(limbo).result !== limbo.go_result).map(({ id }) => id)
    console.log(`x509-limbo: ${cases.length - others.length} of ${cases.length} as Go`)
    expect(others).toEqual([])
  })
})

interface Answer {
  readonly result: 'SUCCESS' | 'FAILURE'
  readonly error?: string
}

function goAnswer({ go_result, go_error }: LimboCase): Answer {
  if (go_result === 'SUCCESS') return { result: 'SUCCESS' }
  return { result: 'FAILURE', ...(aboutEncoding.test(go_error ?? '') ? {} : { error: go_error! }) }
}

/** Go's errors for certificates that it cannot parse; kcert's errors have the field and offset instead. */
const aboutEncoding =
  /malformed|invalid (?:subject alternative|authority info)|cannot parse IP address of|negative serial|marked critical|duplicate extension|don't match|unsupported elliptic/

function answerTo(limbo: LimboCase): Answer {
  const [leaf] = readable(limbo.peer_certificate)
  if (leaf === undefined) return { result: 'FAILURE' }
  const question: ChainQuestion = {
    leaf,
    roots: new CertificatePool(limbo.trusted_certs.flatMap(readable)),
    intermediates: new CertificatePool(limbo.untrusted_intermediates.flatMap(readable)),
    at: new Date(limbo.validation_time ?? limbo.go_time),
    purpose: limbo.validation_kind === 'CLIENT' ? 'client' : 'server',
    name: limbo.expected_peer_name?.value,
  }
  const verdict = verifyChain(question)
  if (verdict.trusted) return { result: 'SUCCESS' }
  return { result: 'FAILURE', error: goError(verdict.refusal, question) }
}

/** Returns the certificates that Go's pool would accept from a PEM text. */
function readable(pem: string): Certificate[] {
  try {
    return readCertificates(pem)
  } catch {
    return []
  }
}
