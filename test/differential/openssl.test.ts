import { execFile, execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, describe, expect, test } from 'vitest'
import { Certificate } from '../../src/x509/certificate.ts'
import { CertificatePool } from '../../src/x509/certificate-pool.ts'
import type { ChainQuestion } from '../../src/x509/chain.ts'
import { hostAddress, withoutBrackets } from '../../src/x509/hostname.ts'
import { findOpensslError, type OpensslError, type OpensslSettings } from '../../src/x509/openssl-path.ts'
import { askOtherVerifiers } from '../../src/x509/other-verifiers.ts'
import { writePem } from '../../src/x509/pem.ts'
import { type GeneratedQuestion, questionAbout } from './pki-arbitrary.ts'
import { seed } from './seed.ts'

const chains = Number(process.env.KCERT_OPENSSL_CHAINS ?? 400)

const version = opensslVersion()
if (version === undefined)
  console.log('no comparison with OpenSSL: there is no "openssl" of version 3.0 to 3.5 here')

function opensslVersion(): string | undefined {
  try {
    return /^OpenSSL 3\.[0-5]\.\S+/.exec(execFileSync('openssl', ['version'], { encoding: 'utf8' }))?.[0]
  } catch {
    return undefined
  }
}

const plain: OpensslSettings = { authLevel: 0, isStrict: false, takesPartialChain: false }

const settings: fc.Arbitrary<OpensslSettings> = fc.oneof(
  { weight: 2, arbitrary: fc.constant(plain) },
  fc.constant<OpensslSettings>({ authLevel: 2, isStrict: false, takesPartialChain: false }),
  fc.constant<OpensslSettings>({ authLevel: 2, isStrict: true, takesPartialChain: true }),
  fc.record<OpensslSettings>({
    authLevel: fc.constantFrom(0, 1, 2),
    isStrict: fc.boolean(),
    takesPartialChain: fc.boolean(),
  }),
)

describe.skipIf(version === undefined)(`kcert's model of OpenSSL and ${version}`, () => {
  const folder = mkdtempSync(join(tmpdir(), 'kcert-openssl-'))
  afterAll(() => rmSync(folder, { recursive: true }))

  test(
    'accept and reject the same random chains, with the same error at the same depth',
    async () => {
      const outcomes = new Map<string, number>()
      await fc.assert(
        fc.asyncProperty(questionAbout(new Date('2026-11-21T09:00:00Z')), settings, async (question, as) => {
          const leaf = parsed(question.leaf)
          if (leaf === undefined) return
          const roots = readable(question.roots)
          const intermediates = readable(question.intermediates)
          const error = errorOf({ ...question, leaf }, roots, intermediates, as)
          const outcome =
            error === undefined ? 'ok' : `error ${error.code} at ${error.depth} depth: ${error.text}`
          outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
          expect(outcome).toBe(
            await askOpenssl(
              folder,
              { ...question, roots: ders(roots), intermediates: ders(intermediates) },
              as,
            ),
          )
        }),
        { numRuns: chains, seed },
      )
      const counts = [...outcomes]
        .toSorted((a, b) => b[1] - a[1])
        .map(([outcome, count]) => `${count} × ${outcome}`)
      console.log(`${chains} chains, seed ${seed}: ${counts.join('; ')}`)
      expect(outcomes.get('ok') ?? 0).toBeGreaterThan(chains * 0.1)
    },
    Math.max(300_000, chains * 1000),
  )
})

// Host names are compared with the first settings only, because name matching does not depend on the others.
const isPlain = (as: OpensslSettings): boolean => as === plain

function errorOf(
  question: Pick<ChainQuestion, 'leaf' | 'at' | 'purpose' | 'name'>,
  roots: readonly Certificate[],
  intermediates: readonly Certificate[],
  as: OpensslSettings,
): Pick<OpensslError, 'code' | 'depth' | 'text'> | undefined {
  if (!isPlain(as)) return findOpensslError({ ...question, roots, intermediates }, as)
  const asked = {
    ...question,
    roots: new CertificatePool(roots),
    intermediates: new CertificatePool(intermediates),
  }
  return askOtherVerifiers(asked).find(({ verifier }) => verifier === 'openssl')?.error
}

function parsed(der: Uint8Array): Certificate | undefined {
  try {
    return Certificate.parse(der)
  } catch {
    return undefined
  }
}

const readable = (ders: readonly Uint8Array[]): Certificate[] =>
  ders.map(parsed).filter((one) => one !== undefined)
const ders = (certificates: readonly Certificate[]): Uint8Array[] => certificates.map(({ der }) => der)

async function askOpenssl(folder: string, question: GeneratedQuestion, as: OpensslSettings): Promise<string> {
  const file = (name: string, ders: readonly Uint8Array[]): string => {
    const path = join(folder, name)
    writeFileSync(path, ders.map((der) => writePem('CERTIFICATE', der)).join(''))
    return path
  }
  const { leaf, roots, intermediates, at, purpose, name } = question
  const args = [
    ...['verify', '-no-CApath', '-no-CAstore', '-attime', String(Math.floor(at.getTime() / 1000))],
    ...(roots.length > 0 ? ['-CAfile', file('roots.pem', roots)] : ['-no-CAfile']),
    ...(intermediates.length > 0 ? ['-untrusted', file('intermediates.pem', intermediates)] : []),
    ...(purpose === 'any' ? [] : ['-purpose', purpose === 'server' ? 'sslserver' : 'sslclient']),
    ...(as.authLevel > 0 ? ['-auth_level', String(as.authLevel)] : []),
    ...(as.isStrict ? ['-x509_strict'] : []),
    ...(as.takesPartialChain ? ['-partial_chain'] : []),
    ...(name === undefined || !isPlain(as) ? [] : nameArguments(name)),
    file('leaf.pem', [leaf]),
  ]
  const { code, output } = await run(args)
  const error = /error (\d+) at (\d+) depth lookup: (.*)/.exec(output)
  if (code === 0 && error === null) return 'ok'
  return error === null ? output : `error ${error[1]} at ${error[2]} depth: ${error[3]}`
}

function nameArguments(name: string): [string, string] {
  const address = hostAddress(name) === undefined ? undefined : withoutBrackets(name)
  return address === undefined ? ['-verify_hostname', name] : ['-verify_ip', address]
}

function run(args: readonly string[]): Promise<{ code: number; output: string }> {
  return new Promise((resolve) => {
    execFile('openssl', args, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : 1, output: `${stdout}${stderr}` })
    })
  })
}
