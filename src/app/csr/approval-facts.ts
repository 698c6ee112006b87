import { approvalFactsOf as factsOf, kept } from '../../cluster/approval-facts.ts'
import type { Cluster } from '../../cluster/cluster.ts'
import { resources } from '../../cluster/kinds.ts'
import { getReadable } from '../../cluster/readable.ts'
import type { ApprovalFacts, NodeFacts, ServedCertificate } from '../../csr/approval/facts.ts'
import { systemCode } from '../../errors/caught.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { nodeHost } from '../../pki/node-address.ts'
import type { Clock } from '../../system/clock.ts'
import { readServed } from '../../tls/served.ts'
import { type Certificate, readCertificates } from '../../x509/certificate.ts'
import { CertificatePool } from '../../x509/certificate-pool.ts'
import { verifyChain } from '../../x509/chain.ts'

// The cluster facts that approval policies need: src/cluster reads the API server, src/tls connects to the kubelets' ports.

const kubeletTimeoutMs = 3000

const rootCa = { ...resources.configMaps, namespace: 'kube-system', name: 'kube-root-ca.crt' }

/** Returns the facts of a cluster. */
export function approvalFactsOf(cluster: Cluster, clock: Clock): ApprovalFacts {
  const cas = kept(clock, () => kubeletCas(cluster))
  return factsOf(
    cluster,
    async (node, port) => {
      const roots = await cas()
      return roots && servedBy(node, port, roots, clock)
    },
    clock,
  )
}

/** Returns the cluster's CA, as in every pod, which signs for kubelets unless they have a separate CA. */
async function kubeletCas(cluster: Cluster): Promise<readonly Certificate[] | undefined> {
  const object = await getReadable(cluster.objects, rootCa)
  const pem = object === 'absent' ? undefined : object?.data?.['ca.crt']
  return pem === undefined ? undefined : readCertificates(Buffer.from(pem))
}

/** Returns the certificate that a node's kubelet presents; undefined if it cannot be reached from here. */
async function servedBy(
  node: NodeFacts,
  port: number,
  roots: readonly Certificate[],
  clock: Clock,
): Promise<ServedCertificate | 'none' | undefined> {
  const host = nodeHost(node.addresses)
  if (host === undefined) return 'none'
  const served = await chainAt(`${node.name}:${port}`, host, port)
  if (served === undefined || served === 'none') return served
  const [certificate, ...intermediates] = served
  if (certificate === undefined) return 'none'
  const verdict = verifyChain({
    leaf: certificate,
    roots: new CertificatePool(roots),
    intermediates: new CertificatePool(intermediates),
    at: clock(),
    purpose: 'server',
  })
  return verdict.trusted
    ? { certificate, isTrusted: true }
    : { certificate, isTrusted: false, reason: verdict.refusal.code }
}

async function chainAt(
  name: string,
  host: string,
  port: number,
): Promise<readonly Certificate[] | 'none' | undefined> {
  try {
    return readCertificates((await readServed({ name, host, port }, kubeletTimeoutMs)).bytes)
  } catch (error) {
    if (!(error instanceof KcertError)) throw error
    // A kubelet without a serving certificate aborts the handshake with "internal error".
    return systemCode(error.cause)?.includes('ALERT_INTERNAL_ERROR') ? 'none' : undefined
  }
}
