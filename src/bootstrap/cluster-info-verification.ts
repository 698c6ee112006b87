import { commandLine } from '../errors/command-line.ts'
import { given } from '../errors/given.ts'
import type { Certificate } from '../x509/certificate.ts'
import { CertificatePool } from '../x509/certificate-pool.ts'
import { verifyChain } from '../x509/chain.ts'
import { goError } from '../x509/go-words.ts'
import { type CheckLine, noLine, okLine, unknownLine } from './check-line.ts'
import type { ClusterInfo } from './cluster-info.ts'
import type { ClusterInfoVerification } from './cluster-info-report.ts'
import { signatureFacts } from './signature-facts.ts'
import type { BootstrapToken } from './token.ts'

/** What an API server shows at a place, or why it showed nothing. */
export type ServedFacts = { readonly place: string; readonly host: string } & (
  | { readonly chain: readonly Certificate[] }
  | { readonly fault: string }
)

/** CA certificates as somebody else has them. */
export interface PublishedAuthorities {
  /** "ConfigMap kube-root-ca.crt in kube-public", "/etc/kubernetes/pki/ca.crt". */
  readonly place: string
  readonly certificates: readonly Certificate[]
}

/** What cluster-info is held against. */
export interface VerificationFacts {
  readonly info: ClusterInfo
  /** Those that sign; undefined where their Secrets may not be read. */
  readonly tokens: readonly BootstrapToken[] | undefined
  readonly served: readonly ServedFacts[]
  readonly published: readonly PublishedAuthorities[]
  /** Whether anybody may read it; undefined where we may not ask. */
  readonly isPublic: boolean | undefined
  readonly now: Date
}

/** Judges whether newcomers who believe cluster-info come to the right place, and come in. */
export function verifyClusterInfo(facts: VerificationFacts): ClusterInfoVerification {
  const { info } = facts
  const checks = [
    ...contentLines(info),
    ...authorityLines(facts),
    ...signatureLines(facts),
    ...(info.authorities.length === 0 ? [] : facts.served.map((one) => servedLine(one, facts))),
    ...(info.authorities.length === 0 ? [] : facts.published.map((one) => publishedLine(one, info))),
    publicLine(facts),
  ]
  return {
    apiVersion: 'kcert/v1',
    kind: 'ClusterInfoVerification',
    ...given({ server: info.server }),
    verdict: verdictOf(checks),
    checks,
  }
}

/** Returns what all checks come to: one no is no. */
export function verdictOf(checks: readonly CheckLine[]): CheckLine['outcome'] {
  if (checks.some(({ outcome }) => outcome === 'no')) return 'no'
  return checks.some(({ outcome }) => outcome === 'unknown') ? 'unknown' : 'ok'
}

function contentLines({ faults, server }: ClusterInfo): CheckLine[] {
  if (faults.length > 0) return faults.map(({ id, detail, next }) => noLine(id, detail, next))
  return [okLine('content', `one cluster, ${server}, its CA, and no credential`)]
}

function authorityLines({ info, now }: VerificationFacts): CheckLine[] {
  return info.authorities.map((certificate): CheckLine => {
    const name = certificate.subject.text || 'a certificate without a subject'
    const next = 'name a file with the current CAs: kcert cluster-info update --ca FILE'
    const end = certificate.notAfter.toISOString().replace('.000', '')
    if (!certificate.isCa) return noLine('authority', `${name} is no CA`, next)
    if (certificate.notAfter < now) return noLine('authority', `${name} expired at ${end}`, next)
    if (certificate.notBefore > now) return noLine('authority', `${name} is not valid yet`, 'date -u')
    return okLine('authority', `${name} is a CA until ${end}`)
  })
}

function signatureLines({ info, tokens }: VerificationFacts): CheckLine[] {
  const states = signatureFacts(info, tokens)
  if (tokens === undefined)
    return [
      unknownLine(
        'signature',
        `${states.length} signatures, and the Secrets of the tokens that made them may not be read`,
        'ask with a kubeconfig that may list secrets in kube-system',
      ),
    ]
  if (states.length === 0) return [okLine('signature', 'no token signs, so nobody can join by token now')]
  return states.map(({ tokenId, state }): CheckLine => {
    const id = 'signature'
    if (state === 'stands') return okLine(id, `that of token ${tokenId} stands`)
    const next =
      'kubectl -n kube-system logs -l component=kube-controller-manager --tail=-1 | grep -i bootstrap'
    if (state === 'missing') return noLine(id, `token ${tokenId} should sign, and there is none by it`, next)
    if (state === 'stale') return noLine(id, `that of token ${tokenId} is of another text`, next)
    return noLine(
      id,
      `there is one of token ${tokenId}, which is no token that signs: the bootstrap signer has not taken it away`,
      next,
    )
  })
}

function servedLine(one: ServedFacts, { info, now }: VerificationFacts): CheckLine {
  const { place, host } = one
  const id = 'served'
  const next = commandLine`kcert inspect ${place}`
  if ('fault' in one) return unknownLine(id, `${place} showed no certificate: ${one.fault}`, next)
  const refusal = refusalOf(one.chain, host, info.authorities, now)
  if (refusal === undefined) return okLine(id, `what ${place} serves is trusted by it`)
  return noLine(
    id,
    `what ${place} serves is not trusted by it: ${refusal}`,
    commandLine`once the CA is known: kcert verify ${place} --roots FILE && kcert cluster-info update --ca FILE`,
  )
}

/** Returns why a client in Go would refuse what a server shows, in Go's words; undefined when it would not. */
export function refusalOf(
  [leaf, ...rest]: readonly Certificate[],
  host: string,
  authorities: readonly Certificate[],
  at: Date,
): string | undefined {
  if (leaf === undefined) return 'it shows none'
  const question = {
    leaf,
    roots: new CertificatePool(authorities),
    intermediates: new CertificatePool(rest),
    at,
    purpose: 'server',
    name: host,
  } as const
  const verdict = verifyChain(question)
  return verdict.trusted ? undefined : goError(verdict.refusal, question)
}

function publishedLine({ place, certificates }: PublishedAuthorities, info: ClusterInfo): CheckLine {
  const keysOf = (list: readonly Certificate[]) =>
    new Map(
      list.map((one) => [one.fingerprintSha256, one.subject.text || one.fingerprintSha256.slice(0, 16)]),
    )
  const [here, there] = [keysOf(info.authorities), keysOf(certificates)]
  const missing = [...there].filter(([key]) => !here.has(key)).map(([, name]) => name)
  const extra = [...here].filter(([key]) => !there.has(key)).map(([, name]) => name)
  if (missing.length + extra.length === 0) return okLine('published', `the same CAs as in ${place}`)
  const words = [
    ...(missing.length > 0 ? [`${missing.join(', ')} is there and not here`] : []),
    ...(extra.length > 0 ? [`${extra.join(', ')} is here and not there`] : []),
  ]
  return noLine(
    'published',
    `other CAs than in ${place}: ${words.join('; ')}`,
    'outside a rotation (kcert rotate-ca status): kcert cluster-info update --ca FILE',
  )
}

function publicLine({ isPublic }: VerificationFacts): CheckLine {
  const id = 'public'
  if (isPublic === true) return okLine(id, 'anybody may read it, as newcomers must')
  if (isPublic === false)
    return noLine(
      id,
      'system:anonymous may not read it, so kubeadm join cannot',
      'kcert bootstrap rbac -o yaml | kubectl apply -f -',
    )
  return unknownLine(
    id,
    'whether newcomers may read it is not known: we may not ask',
    'kubectl auth can-i get configmap/cluster-info -n kube-public --as=system:anonymous --as-group=system:unauthenticated',
  )
}
