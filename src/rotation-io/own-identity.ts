import { messageOf } from '../errors/caught.ts'
import { given } from '../errors/given.ts'
import { KcertError } from '../errors/kcert-error.ts'
import type { Generation } from '../rotation/signing.ts'
import type { CaName } from '../rotation/target.ts'
import type { ControlPlanes } from '../site/control-planes.ts'
import type { ClientPair } from '../site/dialling.ts'
import { callHttps, type HttpsAnswer, type HttpsCall } from '../site/http-call.ts'
import { listeningOf } from '../site/listening.ts'
import { ownUser } from '../site/node-jobs-objects.ts'
import type { Site } from '../site/site.ts'
import { Certificate, writeCertificates } from '../x509/certificate.ts'
import { issueCertificate } from '../x509/issuing.ts'
import type { NameInput } from '../x509/name-encoding.ts'
import { generatePrivateKey, writePrivateKey } from '../x509/new-key.ts'
import type { RotationCas } from './rotation-cas.ts'

const lifetimeMs = 30 * 60_000
const backdateMs = 5 * 60_000
// Reissued well before it expires.
const keptMs = lifetimeMs - 10 * 60_000

/** The administrator of kcert's own requests, as audit logs show it. */
export const ownSubject: NameInput = { organization: ['system:masters'], commonName: ownUser }

/** A client without permissions: the response shows whether the server accepted its certificate. */
export const probeName = 'kcert-rotation-probe'

export interface ApiCall extends Pick<HttpsCall, 'path' | 'headers' | 'timeoutMs'> {
  readonly method: string
  readonly body?: object
  /** Sent unchanged, instead of a JSON body. */
  readonly text?: string
}

/**
 * Client certificates of the rotation's CAs that are valid for minutes. The operators' kubeconfigs stop working in the middle of
 * phase 12; a process with the CA's key needs none.
 */
export class OwnIdentity {
  private readonly site: Site
  private readonly planes: ControlPlanes
  private readonly cas: RotationCas
  private readonly pairs = new Map<string, { readonly pair: ClientPair; readonly untilMs: number }>()
  private accepted: Generation = 'old'

  constructor(site: Site, planes: ControlPlanes, cas: RotationCas) {
    this.site = site
    this.planes = planes
    this.cas = cas
  }

  /** Returns a client certificate of this CA for a name. The key exists only in the memory of this process. */
  async client(ca: CaName, generation: Generation, subject: NameInput): Promise<ClientPair> {
    const signingCa = await this.cas.pair(ca, generation)
    const { certificate } = signingCa
    // Not by generation: a new CA that exists only in memory may be replaced by one of another key type.
    const name = `${certificate.fingerprintSha256} ${JSON.stringify(subject)}`
    const now = this.site.clock().getTime()
    const known = this.pairs.get(name)
    if (known !== undefined && now < known.untilMs) return known.pair
    const key = generatePrivateKey({ algorithm: 'ECDSA', curve: 'P-256' })
    const { serialNumber } = this.cas.issuing()
    const wholeSeconds = (ms: number): Date => new Date(Math.floor(ms / 1000) * 1000)
    const der = issueCertificate(
      {
        serialNumber,
        subject,
        issuer: certificate.subject,
        notBefore: wholeSeconds(now - backdateMs),
        notAfter: wholeSeconds(Math.min(now + lifetimeMs, certificate.notAfterMs)),
        publicKey: key,
        keyUsage: ['digitalSignature'],
        extendedKeyUsage: ['clientAuth'],
        basicConstraints: { ca: false },
        ...given({ authorityKeyId: certificate.subjectKeyId }),
      },
      signingCa.key,
    )
    const pair = {
      certificate: writeCertificates([Certificate.parse(der)]),
      key: writePrivateKey(key, 'pkcs8'),
    }
    this.pairs.set(name, { pair, untilMs: now + keptMs })
    return pair
  }

  /**
   * Returns the response of one node's API server to an administrator. The client certificate comes from the CA that the server
   * trusts; the server must present a certificate of one of the two CAs. Throws KCERT_UNREACHABLE.
   */
  async call(node: string, call: ApiCall): Promise<HttpsAnswer> {
    const first = this.accepted
    const answer = await this.callAs(node, first, call)
    if (answer.status !== 401) return answer
    const other = first === 'old' ? 'new' : 'old'
    const again = await this.callAs(node, other, call)
    if (again.status !== 401) this.accepted = other
    return again
  }

  /** Returns the response of any API server that responds. */
  async callAny(call: ApiCall): Promise<HttpsAnswer> {
    let failure: unknown = new KcertError('KCERT_UNREACHABLE', 'no API server on any node answers')
    for (const { node } of await this.planes.apiServers()) {
      try {
        return await this.call(node, call)
      } catch (error) {
        failure = error
      }
    }
    throw failure
  }

  /** Returns the CAs of both generations in PEM. */
  async trust(): Promise<string> {
    const [old, next] = await Promise.all([this.cas.pair('cluster', 'old'), this.cas.pair('cluster', 'new')])
    return writeCertificates([old.certificate, next.certificate])
  }

  private async callAs(
    node: string,
    generation: Generation,
    { method, path, headers = {}, body, text, timeoutMs }: ApiCall,
  ): Promise<HttpsAnswer> {
    const client = await this.client('cluster', generation, ownSubject)
    const [running] = await this.planes.node(node).processes(['kube-apiserver'])
    const { host, port } = listeningOf(running?.argv ?? ['kube-apiserver'])
    try {
      return await callHttps({
        stream: this.site.dial(node, host, port),
        method,
        path,
        headers: {
          Accept: 'application/json',
          ...(body && { 'Content-Type': 'application/json' }),
          ...headers,
        },
        client,
        trust: { ca: await this.trust() },
        ...given({ body: text ?? (body && JSON.stringify(body)), timeoutMs }),
      })
    } catch (error) {
      throw new KcertError('KCERT_UNREACHABLE', `the API server on node ${node} does not answer`, {
        why: `${messageOf(error)}; check the container on ${node}`,
        next: 'crictl ps -a --name kube-apiserver',
        cause: error,
      })
    }
  }
}
