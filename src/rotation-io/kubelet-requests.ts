import { setTimeout as sleep } from 'node:timers/promises'
import { isKeyOf } from '../ca/certificate-authority.ts'
import { nodeOf } from '../cluster/approval-facts.ts'
import { resources } from '../cluster/kinds.ts'
import { objectIn } from '../cluster/malformed.ts'
import { listAll } from '../cluster/readable.ts'
import { requestsOf } from '../cluster/requests.ts'
import { actOn } from '../csr/approval/acting.ts'
import { evaluateByPolicy } from '../csr/approval/evaluation.ts'
import type { ApprovalFacts } from '../csr/approval/facts.ts'
import { kubeletClientPolicy } from '../csr/approval/kubelet-client.ts'
import { kubeletServingPolicy } from '../csr/approval/kubelet-serving.ts'
import { factsOfNodes } from '../csr/approval/node-list.ts'
import type { RequestObject } from '../csr/requests-api.ts'
import { kubeletClient, kubeletServing, usagesForSigner } from '../csr/signers.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { nodeGroup, nodeUserPrefix } from '../pki/kubelet.ts'
import type { Content } from '../rotation/action.ts'
import type { Site } from '../site/site.ts'
import { type Certificate, readCertificates, writeCertificates } from '../x509/certificate.ts'
import { createRequest } from '../x509/issuing.ts'
import { generatePrivateKey, writePrivateKey } from '../x509/new-key.ts'
import { writePem } from '../x509/pem.ts'
import { verifySignature } from '../x509/signature.ts'
import type { OwnIdentity } from './own-identity.ts'
import type { RotationCas } from './rotation-cas.ts'

type Requested = Extract<Content, { readonly kind: 'requested' }>

const signers = { client: kubeletClient, serving: kubeletServing } as const

// kube-controller-manager approves a kubelet's own client request within about 100 ms, if it approves it at all.
const approvalPatienceMs = 2_000
const issuePatienceMs = 60_000
const pollMs = 100

/**
 * Requests a kubelet's certificates from the cluster in the node's name, so that the cluster's own approver and signer decide.
 */
export class KubeletRequests {
  private readonly site: Site
  private readonly cas: RotationCas
  private readonly identity: OwnIdentity

  constructor(site: Site, cas: RotationCas, identity: OwnIdentity) {
    this.site = site
    this.cas = cas
    this.identity = identity
  }

  /**
   * Returns a new certificate and its key in PEM, in the format of the kubelet's store. The names are those of the replaced
   * certificate. Throws KCERT_ROTATION_CHECK_FAILED if the request is not signed, or not by the new CA.
   */
  async request(node: string, { usage, replaces }: Requested): Promise<string> {
    const before = await this.cas.certificate(replaces)
    const key = generatePrivateKey({ algorithm: 'ECDSA', curve: 'P-256' })
    const { dns, ip } = before.subjectAltNames
    const der = createRequest(
      {
        subject: { organization: [nodeGroup], commonName: nodeUserPrefix + node },
        ...(usage === 'serving' ? { subjectAltNames: { dns, ip } } : {}),
      },
      key,
    )
    const created = await this.create(node, usage, der)
    const name = created.metadata.name ?? ''
    try {
      const chain = await this.issued(name, usage, before)
      const [certificate] = chain
      const newCa = await this.cas.pair('cluster', 'new')
      if (certificate === undefined || !isKeyOf(key, certificate))
        throw unfit(name, 'the certificate is for another key')
      if (!verifySignature(certificate, newCa.certificate.publicKey).ok)
        throw unfit(name, 'it is not signed by the new CA')
      const text = writeCertificates(chain)
      return `${text}${writePrivateKey(key, 'kubernetes')}`
    } finally {
      await this.site.objects.delete({ ...resources.requests, name }).catch(() => false)
    }
  }

  private async create(node: string, usage: Requested['usage'], der: Uint8Array): Promise<RequestObject> {
    const { status, body } = await this.identity.callAny({
      method: 'POST',
      path: '/apis/certificates.k8s.io/v1/certificatesigningrequests',
      headers: { 'Impersonate-User': nodeUserPrefix + node, 'Impersonate-Group': nodeGroup },
      body: {
        apiVersion: 'certificates.k8s.io/v1',
        kind: 'CertificateSigningRequest',
        metadata: { generateName: `kcert-${usage}-` },
        spec: {
          request: Buffer.from(writePem('CERTIFICATE REQUEST', der)).toString('base64'),
          signerName: signers[usage],
          usages: usagesForSigner(signers[usage], 'ECDSA'),
        },
      },
    })
    if (status === 201) return JSON.parse(body) as RequestObject
    throw new KcertError(
      'KCERT_ROTATION_CHECK_FAILED',
      `no ${usage} certificate was issued for node ${node}`,
      {
        why: `the API server refuses the request: ${messageIn(body) ?? `HTTP status ${status}`}`,
        next: 'kcert rotate-ca',
      },
    )
  }

  private async issued(
    name: string,
    usage: Requested['usage'],
    before: Certificate,
  ): Promise<readonly Certificate[]> {
    const api = requestsOf(this.site.objects)
    const begun = this.site.clock().getTime()
    for (;;) {
      const object = await api.get(name)
      if (object === undefined) throw unfit(name, 'the request was deleted')
      const { certificate, conditions = [] } = object.status ?? {}
      if (certificate) return readCertificates(Buffer.from(certificate, 'base64'))
      const refusal = conditions.find(({ type }) => type === 'Denied' || type === 'Failed')
      if (refusal !== undefined) throw unfit(name, refusal.message ?? refusal.type)
      const waitedMs = this.site.clock().getTime() - begun
      const isApproved = conditions.some(({ type }) => type === 'Approved')
      if (!isApproved && (usage === 'serving' || waitedMs > approvalPatienceMs))
        await this.approve(object, before)
      if (waitedMs > issuePatienceMs) throw unfit(name, 'it was not signed within a minute')
      await sleep(pollMs)
    }
  }

  /** Approves with kcert's own policies: the request must contain only the node's own names. */
  private async approve(object: RequestObject, before: Certificate): Promise<void> {
    const evaluate = evaluateByPolicy(
      'approve',
      [kubeletClientPolicy(), kubeletServingPolicy()],
      await this.facts(before),
    )
    const evaluation = await evaluate(object)
    const acted = await actOn(
      requestsOf(this.site.objects),
      { object, evaluation },
      {
        act: 'approve',
        evaluate,
        conditionFor: ({ verdict }) => ({
          reason: 'KcertRotation',
          message: ['approved by kcert rotate-ca by its policy', verdict.policy].join(' '),
        }),
      },
    )
    if (acted.outcome === 'approved' || acted.outcome === 'already-decided') return
    // Another approver may have approved it in the meantime, which the next read shows.
    const now = await requestsOf(this.site.objects).get(object.metadata.name ?? '')
    if (now?.status?.conditions?.some(({ type }) => type === 'Approved')) return
    throw unfit(object.metadata.name ?? '', acted.reason)
  }

  private async facts(before: Certificate): Promise<ApprovalFacts> {
    const nodes = await listAll(this.site.objects, resources.nodes)
    return {
      ...factsOfNodes(nodes.map(nodeOf)),
      // The names come from the kubelet's current serving certificate, so they are not new.
      readServedCertificate: async () => ({ certificate: before, isTrusted: true }),
      readClusterAddresses: async () => ({ apiServers: [], serviceCidrs: [] }),
      isAllowed: async ({ user, uid, groups, extra, resource }) => {
        const answer = await this.site.objects.create(
          { group: 'authorization.k8s.io', version: 'v1', resource: 'subjectaccessreviews' },
          {
            apiVersion: 'authorization.k8s.io/v1',
            kind: 'SubjectAccessReview',
            spec: { user, groups, extra, ...(uid && { uid }), resourceAttributes: resource },
          },
        )
        return (answer as { status?: { allowed?: boolean } }).status?.allowed === true
      },
    }
  }
}

/** Returns the message of a Status object. */
export function messageIn(body: string): string | undefined {
  const { message } = objectIn(body) ?? {}
  return typeof message === 'string' ? message : undefined
}

function unfit(name: string, why: string): KcertError {
  const what = `request ${name} got no usable certificate`
  return new KcertError('KCERT_ROTATION_CHECK_FAILED', what, {
    why: `${why}; check the log of kube-controller-manager, then run the same command again`,
    next: 'kubectl -n kube-system logs -l component=kube-controller-manager --tail=50',
  })
}
