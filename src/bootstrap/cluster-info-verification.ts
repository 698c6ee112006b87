import { commandLine } from '../errors/command-line.ts'
import { given } from '../errors/given.ts'
import type { Certificate } from '../x509/certificate.ts'
import { CertificatePool } from '../x509/certificate-pool.ts'
import { verifyChain } from '../x509/chain.ts'
import { goError } from '../x509/go-words.ts'
import { type CheckLine, noLine, okLine, unknownLine } from './check-line.ts'
import { type ClusterInfo, clusterCaUpdate } from './cluster-info.ts'
import type { ClusterInfoVerification } from './cluster-info-report.ts'
import { signatureFacts } from './signature-facts.ts'
import type { BootstrapToken } from './token.ts'

/** The chain that an API server serves, or the reason why there is none. */
export type ServedFacts = { readonly place: string; readonly host: string } & (
  | { readonly chain: readonly Certificate[] }
  | { readonly fault: string }
)

/** CA certificates from another source. */
export interface PublishedCas {
  /** "ConfigMap kube-root-ca.crt in kube-public", "/etc/kubernetes/pki/ca.crt". */
  readonly place: string
  readonly certificates: readonly Certificate[]
}

/** The facts that cluster-info is compared with. */
export interface VerificationFacts {
  readonly info: ClusterInfo
  /** Tokens that sign; undefined without permission to read their Secrets. */
  readonly tokens: readonly BootstrapToken[] | undefined
  readonly served: readonly ServedFacts[]
  readonly published: readonly PublishedCas[]
  /** Whether unauthenticated clients may read it; undefined without permission to check. */
  readonly isPublic: boolean | undefined
  readonly now: Date
}

/** Evaluates whether nodes that trust cluster-info reach this cluster and can join it. */
export function verifyClusterInfo(facts: VerificationFacts): ClusterInfoVerification {
  const { info } = facts
  const checks = [
    ...contentLines(info),
    ...caLines(facts),
    ...signatureLines(facts),
    ...(info.cas.length === 0 ? [] : facts.served.map((one) => servedLine(one, facts))),
    ...(info.cas.length === 0 ? [] : facts.published.map((one) => publishedLine(one, info))),
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

/** Returns the result of all checks: one failed check fails all. */
export function verdictOf(checks: readonly CheckLine[]): CheckLine['outcome'] {
  if (checks.some(({ outcome }) => outcome === 'failed')) return 'failed'
  return checks.some(({ outcome }) => outcome === 'unknown') ? 'unknown' : 'ok'
}

function contentLines({ faults, server }: ClusterInfo): CheckLine[] {
  if (faults.length > 0) return faults.map(({ id, detail, next }) => noLine(id, detail, next))
  return [okLine('content', `one cluster, ${server}, with its CA and without credentials`)]
}

function caLines({ info, now }: VerificationFacts): CheckLine[] {
  return info.cas.map((certificate): CheckLine => {
    const name = certificate.subject.text || 'a certificate without a subject'
    const next = clusterCaUpdate
    const end = certificate.notAfter.toISOString().replace('.000', '')
    if (!certificate.isCa) return noLine('ca', `${name} is not a CA`, next)
    if (certificate.notAfter < now) return noLine('ca', `${name} expired at ${end}`, next)
    if (certificate.notBefore > now) return noLine('ca', `${name} is not valid yet`, 'date -u')
    return okLine('ca', `CA ${name} is valid until ${end}`)
  })
}

function signatureLines({ info, tokens }: VerificationFacts): CheckLine[] {
  const id = 'signature'
  const states = signatureFacts(info, tokens)
  if (tokens === undefined) {
    const detail = `${states.length} signatures not verified: you may not list secrets in kube-system`
    return [unknownLine(id, detail, 'kubectl auth can-i list secrets -n kube-system')]
  }
  if (states.length === 0) return [okLine(id, 'no token signs it, so no node can join with a token now')]
  return states.map(({ tokenId, state }): CheckLine => {
    if (state === 'valid') return okLine(id, `the signature with token ${tokenId} is valid`)
    const detail =
      state === 'missing'
        ? `there is no signature with token ${tokenId}`
        : state === 'stale'
          ? `the signature with token ${tokenId} is of an older cluster-info`
          : `there is a signature with ${tokenId}, which is not a signing token: the bootstrap signer has not deleted it`
    return noLine(id, detail, signerLog)
  })
}

const signerLog =
  'kubectl -n kube-system logs -l component=kube-controller-manager --tail=-1 | grep -i bootstrap'

function servedLine(one: ServedFacts, { info, now }: VerificationFacts): CheckLine {
  const { place, host } = one
  const id = 'served'
  const next = commandLine`kcert inspect ${place}`
  if ('fault' in one) return unknownLine(id, `${place} served no certificate: ${one.fault}`, next)
  const refusal = refusalOf(one.chain, host, info.cas, now)
  if (refusal === undefined) return okLine(id, `it verifies the certificate that ${place} serves`)
  return noLine(id, `it does not verify the certificate that ${place} serves: ${refusal}`, next)
}

/** Returns why Go's crypto/x509 rejects a server's chain, in Go's words; undefined when it accepts it. */
export function refusalOf(
  [leaf, ...rest]: readonly Certificate[],
  host: string,
  cas: readonly Certificate[],
  at: Date,
): string | undefined {
  if (leaf === undefined) return 'it served no certificate'
  const question = {
    leaf,
    roots: new CertificatePool(cas),
    intermediates: new CertificatePool(rest),
    at,
    purpose: 'server',
    name: host,
  } as const
  const verdict = verifyChain(question)
  return verdict.trusted ? undefined : goError(verdict.refusal, question)
}

function publishedLine({ place, certificates }: PublishedCas, info: ClusterInfo): CheckLine {
  const keysOf = (list: readonly Certificate[]) =>
    new Map(
      list.map((one) => [one.fingerprintSha256, one.subject.text || one.fingerprintSha256.slice(0, 16)]),
    )
  const [here, there] = [keysOf(info.cas), keysOf(certificates)]
  const missing = [...there].filter(([key]) => !here.has(key)).map(([, name]) => name)
  const extra = [...here].filter(([key]) => !there.has(key)).map(([, name]) => name)
  if (missing.length + extra.length === 0) return okLine('published', `the same CAs as in ${place}`)
  const words = [
    ...(missing.length > 0 ? [`cluster-info lacks ${missing.join(', ')}`] : []),
    ...(extra.length > 0 ? [`only cluster-info has ${extra.join(', ')}`] : []),
  ]
  return noLine(
    'published',
    `the CAs differ from ${place} (expected only during a CA rotation): ${words.join('; ')}`,
    clusterCaUpdate,
  )
}

function publicLine({ isPublic }: VerificationFacts): CheckLine {
  const id = 'public'
  if (isPublic === true) return okLine(id, 'joining nodes may read it without credentials')
  if (isPublic === false)
    return noLine(
      id,
      'system:anonymous may not read it, so kubeadm join cannot',
      'kcert bootstrap rbac -o yaml | kubectl apply -f -',
    )
  return unknownLine(
    id,
    'unknown whether joining nodes may read it: you may not create subjectaccessreviews',
    'kubectl auth can-i get configmap/cluster-info -n kube-public --as=system:anonymous --as-group=system:unauthenticated',
  )
}
