import { hash } from 'node:crypto'
import type { Cluster } from '../../../cluster/cluster.ts'
import { explainFactsOf } from '../../../cluster/explain-facts.ts'
import { resources } from '../../../cluster/kinds.ts'
import { listEach } from '../../../cluster/readable.ts'
import { explain } from '../../../csr/explain/explain.ts'
import type { ExplainFacts } from '../../../csr/explain/facts.ts'
import { readSituation } from '../../../csr/explain/situation.ts'
import { isPending } from '../../../csr/life.ts'
import { decidedBy } from '../../../csr/managers.ts'
import { signingRequestOfObject } from '../../../csr/request-object.ts'
import { findSigner } from '../../../csr/signers.ts'
import type { SigningRequest } from '../../../csr/signing-request.ts'
import { KcertError } from '../../../errors/kcert-error.ts'
import { mirroredRotations, rotationSamples } from '../../../rotation-io/mirrored-rotations.ts'
import { type Certificate, readCertificates } from '../../../x509/certificate.ts'
import { CertificatePool } from '../../../x509/certificate-pool.ts'
import { verifyChain } from '../../../x509/chain.ts'
import { apiServerPlaces, readServedAt, verifyClusterInfoOn } from '../../cluster-info/verify.ts'
import { inTurns, requesterOf } from '../fair-queue.ts'
import type { PartSamples } from './part.ts'

const timeoutMs = 3_000
/** An explanation needs several calls. The other requests are counted without a reason. */
const mostExplained = 100
/** In JSON. Larger requests are not explained, because up to twice as many are kept as are explained. In memory they may have six times the size. */
const mostKeptLength = 16_384

interface Pending {
  readonly signer: string
  readonly requester: string
  readonly request: SigningRequest
  readonly decider: string | undefined
}

/** Signers take turns, and for each signer its requesters, so that no flood of requests hides the reasons of others. */
const explained = (pending: readonly Pending[]): Pending[] =>
  inTurns(
    inTurns(pending, ({ signer, requester }) => `${signer} ${requester}`),
    ({ signer }) => signer,
  ).slice(0, mostExplained)

/** Adds the pending requests, each with the first cause of `kcert csr explain`. */
export async function watchRequests(cluster: Cluster, to: PartSamples, now: Date): Promise<void> {
  const facts = rememberedFacts(explainFactsOf(cluster))
  const oldest = new Map<string, number>()
  const unexplained = new Map<string, number>()
  const seen = new Set<string>()
  let kept: Pending[] = []
  for await (const object of cluster.requests.list()) {
    const { uid = '', creationTimestamp = '' } = object.metadata
    if (seen.has(uid) || !isPending(object)) continue
    seen.add(uid)
    const { signerName, username } = object.spec
    // Any user chooses the name of another signer.
    const signer = findSigner(signerName) === undefined ? 'other' : signerName
    const ageSeconds = Math.max(0, (now.getTime() - Date.parse(creationTimestamp)) / 1000) || 0
    oldest.set(signer, Math.max(oldest.get(signer) ?? 0, ageSeconds))
    unexplained.set(signer, (unexplained.get(signer) ?? 0) + 1)
    if (JSON.stringify(object).length > mostKeptLength) continue
    const request = signingRequestOfObject(object)
    kept.push({ signer, requester: requesterOf(username), request, decider: decidedBy(object) })
    if (kept.length >= 2 * mostExplained) kept = explained(kept)
  }
  for (const { signer, request, decider } of explained(kept)) {
    const { causes } = explain(await readSituation(request, decider, facts, now))
    to.count('pending_requests', { signer, reason: causes[0]?.id ?? 'unknown' })
    unexplained.set(signer, (unexplained.get(signer) ?? 0) - 1)
  }
  for (const [signer, count] of unexplained)
    if (count > 0) to.count('pending_requests', { signer, reason: 'not-explained' }, count)
  for (const [signer, seconds] of oldest) to.set('pending_oldest_seconds', { signer }, Math.floor(seconds))
}

/** Looks up the same fact once. */
function rememberedFacts(facts: ExplainFacts): ExplainFacts {
  const known = new Map<string, Promise<unknown>>()
  const once = <Result>(key: unknown, look: () => Promise<Result>): Promise<Result> => {
    const text = JSON.stringify(key)
    const found = known.get(text) ?? look()
    known.set(text, found)
    return found as Promise<Result>
  }
  return {
    isAllowed: (question) => once(question, () => facts.isAllowed(question)),
    readLeftPending: (uid) => facts.readLeftPending(uid),
    readControllerManager: () => once('controller-manager', () => facts.readControllerManager()),
    findHolders: (verb, signer) => once([verb, signer], () => facts.findHolders(verb, signer)),
  }
}

/** Adds whether the kube-root-ca.crt of each namespace verifies each API server that responds. Throws without any of them. */
export async function watchCaBundles(cluster: Cluster, to: PartSamples, now: Date): Promise<void> {
  const served = await readServedAt([cluster.server, ...(await apiServerPlaces(cluster))], timeoutMs)
  const chains = served.flatMap((one) => ('chain' in one ? [one] : []))
  if (chains.length === 0)
    throw new KcertError('KCERT_UNREACHABLE', 'no API server served a certificate', {
      why: served.map((one) => ('fault' in one ? `${one.place}: ${one.fault}` : '')).join(', '),
    })
  // Nearly all namespaces have the same text.
  const known = new Map<string, boolean>()
  const seen = new Set<string>()
  const selection = { fieldSelector: 'metadata.name=kube-root-ca.crt' }
  for await (const { metadata, data } of listEach(cluster.objects, resources.configMaps, selection)) {
    const { namespace = '' } = metadata
    if (seen.has(namespace)) continue
    seen.add(namespace)
    const pem = data?.['ca.crt'] ?? ''
    const digest = hash('sha256', pem)
    const isVerified = known.get(digest) ?? chains.every(({ chain }) => verifies(pem, chain, now))
    known.set(digest, isVerified)
    to.count('ca_bundles', { state: isVerified ? 'verified' : 'rejected' })
    if (!isVerified) to.set('ca_bundle_rejected', { namespace }, 1)
  }
  if (seen.size === 0)
    throw new KcertError('KCERT_API_NOT_FOUND', 'no namespace has the ConfigMap kube-root-ca.crt')
}

/** Only the CA counts here: the parts of servers report expired certificates and missing names. */
function verifies(pem: string, [leaf, ...rest]: readonly Certificate[], now: Date): boolean {
  if (leaf === undefined) return false
  const atMs = Math.min(Math.max(now.getTime(), leaf.notBeforeMs), leaf.notAfterMs)
  try {
    const roots = new CertificatePool(readCertificates(Buffer.from(pem)))
    const intermediates = new CertificatePool(rest)
    return verifyChain({ leaf, roots, intermediates, at: new Date(atMs), purpose: 'server' }).trusted
  } catch {
    return false
  }
}

/** Adds the checks of cluster-info. A cluster without it has the outcome absent. The keys of its signatures are in Secrets. */
export async function watchClusterInfo(
  cluster: Cluster,
  to: PartSamples,
  now: Date,
  readSecrets: boolean,
): Promise<void> {
  try {
    const { checks } = await verifyClusterInfoOn(
      cluster,
      { published: [], timeoutMs, readTokens: readSecrets },
      () => now,
    )
    for (const { id, outcome } of checks) to.count('cluster_info_checks', { check: id, outcome })
  } catch (error) {
    if (!(error instanceof KcertError) || error.code !== 'KCERT_API_NOT_FOUND') throw error
    to.count('cluster_info_checks', { check: 'object', outcome: 'absent' })
  }
}

/** Adds the phase of each rotation whose journal is mirrored in the cluster. Of an incomplete mirror, the phase is left out. */
export async function watchRotations(cluster: Cluster, to: PartSamples): Promise<void> {
  for (const rotation of await mirroredRotations(cluster.objects)) {
    if (rotation.state === 'unknown') to.leftOut++
    for (const sample of rotationSamples(rotation)) to.set(...sample)
  }
}
