import { setTimeout as sleep } from 'node:timers/promises'
import { hostOf } from '../cluster/cluster-addresses.ts'
import { resources } from '../cluster/kinds.ts'
import { objectIn } from '../cluster/malformed.ts'
import { listEach } from '../cluster/readable.ts'
import { requestsOf } from '../cluster/requests.ts'
import { messageOf, systemCode } from '../errors/caught.ts'
import { isObject } from '../errors/is-object.ts'
import { wordsOf } from '../errors/kcert-error.ts'
import { currentOf, type Material } from '../kubeconfig/kubeconfig.ts'
import { itemsOf, type Node, textOf, valueAt } from '../kubeconfig/node.ts'
import { usableKubeconfig } from '../kubeconfig/open.ts'
import { bindingCommand, kubeletClientBinding } from '../pki/kubeadm.ts'
import type { ComponentName, ProcessFacts } from '../pki/node-access.ts'
import type { Probe, ProbeSubject } from '../rotation/action.ts'
import type { ProbeAnswer } from '../rotation/ports.ts'
import { nodeOfProcess, type ProcessId } from '../rotation/snapshot.ts'
import { etcdClientVerdict } from '../site/etcd-client.ts'
import { callHttps, type HttpsAnswer } from '../site/http-call.ts'
import { configurationOf, listeningOf } from '../site/listening.ts'
import { readCertificates, writeCertificates } from '../x509/certificate.ts'
import { createRequest } from '../x509/issuing.ts'
import { generatePrivateKey } from '../x509/new-key.ts'
import { writePem } from '../x509/pem.ts'
import { verifySignature } from '../x509/signature.ts'
import { beside } from './file-writing.ts'
import { probeName } from './own-identity.ts'
import type { Parts } from './parts.ts'
import { provingTokens, watchTokenUse } from './proving-tokens.ts'
import { watchEtcdClients } from './watching-etcd-clients.ts'
import { WatchingHandshakes } from './watching-handshakes.ts'

const pollMs = 250

type Subject<Kind extends ProbeSubject['kind']> = Extract<ProbeSubject, { readonly kind: Kind }>

/**
 * Tests in the cluster what a phase must prove. Each test makes a new TLS handshake, because a pooled connection hides failures.
 */
export class Probing {
  private readonly parts: Omit<Parts, 'requests'>
  private readonly handshakes: WatchingHandshakes

  constructor(parts: Omit<Parts, 'requests'>) {
    const { site, planes, identity } = parts
    this.parts = parts
    this.handshakes = new WatchingHandshakes({ site, planes, identity })
  }

  async probe({ subject, deadlineMs }: Probe): Promise<ProbeAnswer> {
    const deadline = this.now() + deadlineMs
    if (subject.kind === 'handshake-rate') return this.handshakes.rate(subject, deadline)
    if (subject.kind === 'handshake-errors') return this.handshakes.errors(subject, deadline)
    if (subject.kind === 'etcd-clients') return watchEtcdClients(subject, this.parts)
    if (subject.kind === 'token-use') return watchTokenUse(subject, this.parts.site)
    for (;;) {
      const { ok, detail } = await this.tryOnce(subject).catch((error: unknown) => ({
        ok: false,
        detail: wordsOf(error),
      }))
      if (ok || this.now() >= deadline) return { ok, detail }
      await sleep(pollMs)
    }
  }

  private tryOnce(
    subject: Exclude<
      ProbeSubject,
      { kind: 'handshake-rate' | 'handshake-errors' | 'etcd-clients' | 'token-use' }
    >,
  ): Promise<{ ok: boolean; detail: string }> {
    switch (subject.kind) {
      case 'client':
        return subject.ca === 'etcd' ? this.etcdClient(subject) : this.client(subject)
      case 'old-trust':
        return this.oldTrust(subject)
      case 'signer':
        return this.signer(subject)
      case 'kubeconfig':
        return this.kubeconfig(subject)
      case 'issued-token':
      case 'token-secret':
      case 'mounted-tokens':
        return provingTokens(subject, this.parts)
      case 'logs':
        return this.logs(subject)
      case 'copies':
        return this.parts.copies
          .rehearse(subject.node)
          .then((wrong) => ({ ok: wrong === undefined, detail: wrong ?? 'restored and compared' }))
    }
  }

  /**
   * Connects as a client without permissions. HTTP status 403 with the client's name means that the server accepted its
   * certificate. 401 means that the server rejected it.
   */
  private async client({ at, ca, generation, expects }: Subject<'client'>) {
    const running = await this.running(at)
    const headers = ca === 'front-proxy' ? { 'X-Remote-User': probeName } : {}
    const commonName = ca === 'front-proxy' ? await this.frontProxyName() : probeName
    const pair = await this.parts.identity.client(ca, generation, { commonName })
    const answer = await this.dial(nodeOfProcess(at), running, {
      path: askedOf(running),
      headers,
      client: pair,
    })
    const said = `${at} answers ${answer.status} to a client of the ${generation} ${ca} CA`
    const verdict = verdictOf(answer)
    if (verdict === undefined) return { ok: false, detail: `${said}: ${answer.body.slice(0, 200).trim()}` }
    return { ok: verdict === expects, detail: said }
  }

  /** Connects to a member of etcd with a new client certificate. A client of the new CA also presents the bridge certificate. */
  private async etcdClient({ at, ca, generation, expects }: Subject<'client'>) {
    const running = await this.running(at)
    const { certificate, key } = await this.parts.identity.client(ca, generation, { commonName: probeName })
    const bridge = generation === 'new' ? writeCertificates([await this.parts.cas.bridge(ca)]) : ''
    const client = { certificate: `${certificate}${bridge}`, key }
    const listening = listeningOf(running.argv)
    const { verdict, detail } = await etcdClientVerdict(this.parts.site, nodeOfProcess(at), listening, client)
    const said = `${at}, for a client of the ${generation} etcd CA: ${verdict}`
    return { ok: verdict === expects, detail: detail === undefined ? said : `${said} (${detail})` }
  }

  /** Connects as a client that trusts only the old CA. The handshake must fail because of the missing trust. */
  private async oldTrust({ at }: Subject<'old-trust'>) {
    const running = await this.running(at)
    const { certificate } = await this.parts.cas.pair(at.endsWith('/etcd') ? 'etcd' : 'cluster', 'old')
    try {
      const trust = { ca: writeCertificates([certificate]) }
      const { status } = await this.dial(nodeOfProcess(at), running, { path: '/healthz', trust })
      return {
        ok: false,
        detail: `a client that trusts only the old CA still connects to ${at} (${status})`,
      }
    } catch (error) {
      const code = systemCode(error) ?? ''
      const isDistrust = distrust.has(code)
      return {
        ok: isDistrust,
        detail: `${at}, trusting only the old CA: ${code || messageOf(error)}`,
      }
    }
  }

  private async signer({ generation }: Subject<'signer'>) {
    const { certificate: wanted } = await this.parts.cas.pair('cluster', generation)
    const key = generatePrivateKey({ algorithm: 'ECDSA', curve: 'P-256' })
    const der = createRequest({ subject: { commonName: probeName } }, key)
    const api = requestsOf(this.parts.site.objects)
    const created = await api.create({
      metadata: { generateName: 'kcert-signer-' },
      spec: {
        request: Buffer.from(writePem('CERTIFICATE REQUEST', der)).toString('base64'),
        signerName: 'kubernetes.io/kube-apiserver-client',
        usages: ['client auth'],
        expirationSeconds: 600,
      },
    })
    // The code that reads the request rejects a request without a name.
    const name = created.metadata.name ?? ''
    try {
      await api.replaceApproval({
        ...created,
        status: {
          conditions: [
            { type: 'Approved', status: 'True', reason: 'KcertRotation', message: 'which CA signs' },
          ],
        },
      })
      const begun = this.now()
      while (this.now() - begun < 25_000) {
        const status = (await api.get(name))?.status
        const [issued] = status?.certificate
          ? readCertificates(Buffer.from(status.certificate, 'base64'))
          : []
        if (issued !== undefined) {
          const detail = `a test request was signed by ${issued.issuer.text}, key ${issued.authorityKeyId ?? 'unnamed'}`
          return { ok: verifySignature(issued, wanted.publicKey).ok, detail }
        }
        const failed = status?.conditions?.find(({ type }) => type === 'Failed')
        if (failed !== undefined) return { ok: false, detail: `the signer refuses: ${failed.message ?? ''}` }
        await sleep(100)
      }
      return { ok: false, detail: 'no controller signed a test request within 25 s' }
    } finally {
      await this.parts.site.objects.delete({ ...resources.requests, name }).catch(() => {})
    }
  }

  /** Connects with the CAs, certificate and key of a kubeconfig to each API server, with the server name that clients use. */
  private async kubeconfig({ id }: Subject<'kubeconfig'>) {
    const [name, path] = [id.slice(0, id.indexOf(':')), id.slice(id.indexOf(':') + 1)]
    const own = await this.credentialsIn(name, path)
    if (own === undefined)
      return { ok: true, detail: `${id} has neither a client certificate nor a token: nothing to test` }
    const users = new Set<string>()
    for (const { node } of await this.parts.planes.everyApiServer()) {
      const running = await this.running(`${node}/kube-apiserver`)
      const answer = await this.dial(node, running, {
        ...whoAmI,
        ...(own.client && { client: own.client }),
        headers: { ...whoAmI.headers, ...(own.token && { Authorization: `Bearer ${own.token}` }) },
        // A kubeconfig without CA data uses the trust store of its machine, or none.
        ...(own.ca !== undefined && { trust: { ca: own.ca, name: this.nameAt(node, own.serverName) } }),
      })
      if (answer.status !== 201)
        return { ok: false, detail: `${id} at ${node}: HTTP status ${answer.status}` }
      const user = userIn(answer.body)
      if (user === undefined || user === 'system:anonymous')
        return { ok: false, detail: `${id} at ${node}: the API server returned no user name` }
      users.add(user)
    }
    return {
      ok: users.size > 0,
      detail: `every API server authenticates ${id} as ${[...users].join(' and ')}`,
    }
  }

  /**
   * Returns the server name to verify. A kubeadm kubeconfig on a control-plane node contains the address of its own node, which
   * no other node's certificate contains. For the other nodes, kcert uses their own address.
   */
  private nameAt(node: string, wanted: string): string {
    const { nodes } = this.parts.site.inventory
    const named = nodes.find(({ addresses }) => addresses.includes(wanted))
    if (named === undefined || named.name === node) return wanted
    return nodes.find(({ name }) => name === node)?.addresses[0] ?? 'kubernetes'
  }

  /** Tests the path from an API server to a kubelet, in both directions of trust. */
  private async logs({ node }: Subject<'logs'>) {
    const pod = await this.runningPod(node)
    // If no pod runs, kcert reads the kubelet's health endpoint through the API server.
    const [what, path] =
      pod === undefined
        ? [`health of the kubelet on ${node}`, `/api/v1/nodes/${node}/proxy/healthz`]
        : [
            `logs of ${pod.namespace}/${pod.name} on ${node}`,
            `/api/v1/namespaces/${pod.namespace}/pods/${pod.name}/log?container=${pod.container}&tailLines=1`,
          ]
    const apis = await this.parts.planes.everyApiServer()
    for (const { node: at } of apis) {
      const { status, body } = await this.parts.identity.call(at, { method: 'GET', path })
      if (status !== 200) {
        const said = `${what} through ${at}: ${status} ${body.slice(0, 200).trim()}`
        return {
          ok: false,
          detail:
            status === 403 && body.includes(kubeletClientBinding.user)
              ? `${said}; to allow it: ${bindingCommand(kubeletClientBinding)}`
              : said,
        }
      }
    }
    return { ok: apis.length > 0, detail: `${what} through API servers: ${apis.length}` }
  }

  private async runningPod(node: string) {
    const selection = { fieldSelector: `spec.nodeName=${node}` }
    const pods = await Array.fromAsync(listEach(this.parts.site.objects, resources.pods, selection))
    const candidates = pods.flatMap(({ metadata, status }) => {
      const { namespace = '', name, deletionTimestamp } = metadata
      const running = status?.containerStatuses?.find(({ state }) => state?.running !== undefined)
      if (running === undefined || deletionTimestamp !== undefined) return []
      return [{ namespace, name, container: running.name }]
    })
    // DaemonSet pods and static pods are less likely to be replaced during the test than Deployment pods.
    return candidates.find(({ namespace }) => namespace === 'kube-system') ?? candidates[0]
  }

  private async running(at: ProcessId): Promise<ProcessFacts> {
    const [node, program] = at.split('/') as [string, ComponentName]
    const { planes } = this.parts
    const running =
      program === 'etcd' ? await planes.runningEtcd(node) : (await planes.node(node).processes([program]))[0]
    if (running === undefined) throw new Error(`${at} is not running`)
    return running
  }

  private async dial(
    node: string,
    running: ProcessFacts,
    call: Omit<Parameters<typeof callHttps>[0], 'stream'>,
  ): Promise<HttpsAnswer> {
    const { host, port } = listeningOf(
      running.argv,
      await configurationOf(this.parts.planes.node(node), running),
    )
    return callHttps({ stream: this.parts.site.dial(node, host, port), ...call })
  }

  private async frontProxyName(): Promise<string> {
    const [api] = await this.parts.planes.apiServers()
    return api?.flags['requestheader-allowed-names']?.split(',')[0] ?? 'front-proxy-client'
  }

  private async credentialsIn(node: string, path: string) {
    const access = this.parts.planes.node(node)
    const contentOf = async (at: string, what = ''): Promise<Uint8Array> => {
      const [file] = await access.readFiles([at])
      if (file?.found !== 'file') throw new Error(`${node}:${at}${what} cannot be read`)
      return file.content
    }
    const { root, kubeconfig } = await usableKubeconfig(await contentOf(path), `${node}:${path}`)
    const { cluster, user } = currentOf(kubeconfig)
    const read = async (material: Material | undefined): Promise<string | undefined> => {
      if (material?.data !== undefined) return Buffer.from(material.data).toString('utf8')
      if (material?.file === undefined) return undefined
      const content = await contentOf(beside(path, material.file), `, a file that ${path} refers to,`)
      return Buffer.from(content).toString('utf8')
    }
    const [ca, certificate, key] = await Promise.all([
      read(cluster?.certificateAuthority),
      read(user?.clientCertificate),
      read(user?.clientKey),
    ])
    const token = tokenIn(root, user?.name)
    const client = certificate !== undefined && key !== undefined ? { certificate, key } : undefined
    if (client === undefined && (certificate ?? key) !== undefined)
      throw new Error(
        `${node}:${path} has a client certificate without a key, or a key without a certificate`,
      )
    if ((client ?? token) === undefined) return undefined
    const serverName = cluster?.tlsServerName ?? hostOf(cluster?.server) ?? 'kubernetes'
    return { ca, client, token, serverName }
  }

  private now(): number {
    return this.parts.site.clock().getTime()
  }
}

const whoAmI = {
  method: 'POST',
  path: '/apis/authentication.k8s.io/v1/selfsubjectreviews',
  headers: { 'Content-Type': 'application/json', Accept: 'application/json' } as Readonly<
    Record<string, string>
  >,
  body: JSON.stringify({ apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' }),
}

/** OpenSSL's error codes for an untrusted chain. */
const distrust = new Set([
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'CERT_SIGNATURE_FAILURE',
])

/** Returns a path for which every server of this kind requires a permission. */
function askedOf({ program }: ProcessFacts): string {
  return program === 'kube-apiserver' ? '/api/v1/namespaces/kube-system/secrets' : '/metrics'
}

/** Returns the server's decision on the client certificate, or undefined when the response does not show it. */
export function verdictOf({ status, body }: HttpsAnswer): 'accepted' | 'refused' | undefined {
  if (status === 401) return 'refused'
  // HTTP status 403 without the name is the response to an anonymous client.
  if (status === 403 && body.includes(probeName)) return 'accepted'
  return undefined
}

/** Returns the user name from a SelfSubjectReview response, or undefined. */
function userIn(body: string): string | undefined {
  const { status } = objectIn(body) ?? {}
  const userInfo = isObject(status) ? status.userInfo : undefined
  const username = isObject(userInfo) ? userInfo.username : undefined
  return (typeof username === 'string' && username) || undefined
}

/** Returns the token of a user. The kubeconfig reader does not keep tokens. */
function tokenIn(document: Node, name: string | undefined): string | undefined {
  const user = itemsOf(valueAt(document, 'users')).find((one) => textOf(valueAt(one, 'name')) === name)
  return textOf(valueAt(user, 'user', 'token')) || undefined
}
