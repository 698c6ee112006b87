import type { CertificateInput } from '../verification/input.ts'
import type { Certificate } from '../x509/certificate.ts'

// What is probed, and what was seen there: the adapter (src/probe-io) fills these in, evaluating.ts reads them.

export const endpointKinds = [
  'server',
  'api-server',
  'kubelet',
  'etcd',
  'etcd-peer',
  'controller-manager',
  'scheduler',
  'webhook',
  'aggregated-api',
  'conversion-webhook',
] as const

export type EndpointKind = (typeof endpointKinds)[number]

/** A set of CAs that servers are verified against. */
export interface Anchor {
  /** "cluster CA", "--kubelet-certificate-authority", "caBundle" */
  readonly by: string
  /** Where the CAs were read: "cp1:/etc/kubernetes/pki/ca.crt", "configmap default/kube-root-ca.crt". */
  readonly source: string
  /** Undefined where they could not be read; `fault` says why. */
  readonly roots?: CertificateInput
  readonly fault?: string
}

/** The certificate that a server was given last: of its file, or of a CertificateSigningRequest. */
export interface GivenCertificate {
  readonly source: string
  readonly certificate?: Certificate
  /** Others that it was given in the same second: which of them is the last no one can tell, and each is right. */
  readonly besides?: readonly Certificate[]
  /** Why it could not be read. */
  readonly fault?: string
}

/** The certificate that the server is shown; its key stays with the adapter. */
export interface ShownClient {
  /** "kubeconfig user admin", "cp1:/etc/kubernetes/pki/apiserver-etcd-client.crt" */
  readonly source: string
  readonly subject: string
}

export interface Target {
  /** "kubelet w1", "service/shop/admission", or what the operator wrote. */
  readonly name: string
  readonly kind: EndpointKind
  readonly host: string
  readonly port: number
  /** The node that the connection begins at; undefined for this machine. */
  readonly from?: string
  /** The node whose kubelet it is, where that is known. */
  readonly node?: string
  /** Names that clients hold the certificate against. */
  readonly expectedNames: readonly string[]
  readonly anchors: readonly Anchor[]
  /** True when somebody refuses this server where an anchor does not hold, or a name is missing. */
  readonly isVerified: boolean
  readonly given?: GivenCertificate
  readonly client?: ShownClient
  readonly notes: readonly string[]
}

/** What a handshake showed. */
export interface Observed {
  readonly chain: readonly Uint8Array[]
  readonly clientAuthorities: readonly Uint8Array[] | undefined
  readonly version: 'TLSv1.2' | 'TLSv1.3' | undefined
  readonly cipher: string | undefined
  readonly connectMs: number | undefined
  readonly handshakeMs: number
  readonly answer: { readonly status: number; readonly body: string } | undefined
  readonly fault: Error | undefined
}

/** That nothing was seen, and why. */
export interface Unobserved {
  /** True when something answered there: it spoke no TLS, or had no certificate to show. */
  readonly isReached: boolean
  readonly reason: string
  readonly next: string
}
