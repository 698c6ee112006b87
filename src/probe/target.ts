import type { CertificateInput } from '../verification/input.ts'
import type { Certificate } from '../x509/certificate.ts'

// The probed targets and the observations. The adapter (src/probe-io) creates them; evaluation.ts reads them.

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
  /** The source of the CAs: "cp1:/etc/kubernetes/pki/ca.crt", "configmap default/kube-root-ca.crt". */
  readonly source: string
  /** Undefined if they could not be read; then `fault` is the reason. */
  readonly roots?: CertificateInput
  readonly fault?: string
}

/** The certificate that was last issued to a server: in its file, or in a CertificateSigningRequest. */
export interface GivenCertificate {
  readonly source: string
  readonly certificate?: Certificate
  /** Other certificates issued in the same second. Their order is unknown, so each is correct. */
  readonly besides?: readonly Certificate[]
  /** Why it could not be read. */
  readonly fault?: string
}

/** The certificate that is sent to the server. The adapter keeps its key. */
export interface ShownClient {
  /** "kubeconfig user admin", "cp1:/etc/kubernetes/pki/apiserver-etcd-client.crt" */
  readonly source: string
  readonly subject: string
}

export interface Target {
  /** "kubelet w1", "service/shop/admission", or the operator's text. */
  readonly name: string
  readonly kind: EndpointKind
  readonly host: string
  readonly port: number
  /** The node from which the connection is made; undefined for this machine. */
  readonly from?: string
  /** The kubelet's node, if known. */
  readonly node?: string
  /** Names that clients compare the certificate with. */
  readonly expectedNames: readonly string[]
  readonly anchors: readonly Anchor[]
  /** True when a client rejects this server if an anchor does not match or a name is missing. */
  readonly isVerified: boolean
  readonly given?: GivenCertificate
  readonly client?: ShownClient
  readonly notes: readonly string[]
}

/** The observations of a handshake. */
export interface Observed {
  /** DER, in the order that the server sent. At least one certificate. */
  readonly chain: readonly Uint8Array[]
  /** Names (DER) of the CAs whose client certificates the server accepts; undefined when it requests none. */
  readonly clientAuthorities: readonly Uint8Array[] | undefined
  readonly version: 'TLSv1.2' | 'TLSv1.3' | undefined
  /** IANA's name, "TLS_AES_128_GCM_SHA256". */
  readonly cipher: string | undefined
  /** Time until the TCP connection was established; undefined if the caller opened it. */
  readonly connectMs: number | undefined
  /** Time from then until the server's messages were received. */
  readonly handshakeMs: number
  /** The response; undefined when no request was sent. */
  readonly answer: { readonly status: number; readonly body: string } | undefined
  /** The error that ended the connection after the chain was received: the server's alert, or the timeout. */
  readonly fault: Error | undefined
}

/** The reason why there are no observations. */
export interface Unobserved {
  /** True when the server answered, but without TLS or without a certificate. */
  readonly isReached: boolean
  readonly reason: string
  readonly next: string
}
