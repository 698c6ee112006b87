import { readFileSync } from 'node:fs'
import { request as httpsRequest, type RequestOptions } from 'node:https'
import { issueRequest } from './certificates.ts'
import { sleep } from './command.ts'
import { isTrue, type Pod } from './kubectl.ts'
import { probeFiles } from './prober.ts'
import { type NodeIdentity, network } from './spec.ts'
import type { Sample } from './verdict.ts'

// Checks that the Go prober does not make: whether nodes are Ready, whether aggregated API and webhook respond, whether requests
// are signed, and the counts of clients in pods, including new pods. Each check opens a new TLS connection.

/** Watches a cluster during a test. Needs the prober's files. */
export class Watcher {
  private readonly observed: Sample[] = []
  private readonly ending = new AbortController()
  private readonly work: Promise<unknown>

  /** `addons`: whether the cluster has them. */
  constructor(nodes: readonly NodeIdentity[], options: { readonly addons: boolean }) {
    const apis = nodes.filter(({ role }) => role === 'control-plane')
    const endpoints = [
      ...apis.map(({ name, address }) => ({ name, host: address })),
      { name: 'lb', host: network.loadBalancer },
    ]
    const jobs = [
      this.every(1000, () => this.nodes()),
      this.every(3000, () => this.signing()),
      ...(options.addons
        ? [
            ...endpoints.map((endpoint) => this.every(2000, () => this.aggregated(endpoint))),
            ...endpoints.map((endpoint) => this.every(2000, () => this.webhook(endpoint))),
            this.every(2000, () => this.counters()),
          ]
        : []),
    ]
    this.work = Promise.all(jobs)
  }

  async stop(): Promise<readonly Sample[]> {
    this.ending.abort()
    await this.work
    return this.observed
  }

  private async every(ms: number, observe: () => Promise<void>): Promise<void> {
    while (!this.ending.signal.aborted) {
      const begun = performance.now()
      await observe()
      await sleep(Math.max(10, ms - (performance.now() - begun)))
    }
  }

  /** Records one sample of `ask`. An error that it throws is the outcome. */
  private async sample(
    facts: Pick<Sample, 'kind' | 'endpoint' | 'target'>,
    ask: () => Promise<void>,
  ): Promise<void> {
    const at = new Date()
    const begun = performance.now()
    const end = (outcome: string, error?: string): void => {
      const ms = performance.now() - begun
      this.observed.push({
        at: at.toISOString(),
        ...facts,
        outcome,
        ms,
        ...(error === undefined ? {} : { error }),
      })
    }
    try {
      await ask()
      end('ok')
    } catch (error) {
      const { code = '', message } = error as NodeJS.ErrnoException
      end(outcomeOf(code, message), `${code} ${message}`.trim())
    }
  }

  private async nodes(): Promise<void> {
    let found: readonly { metadata: { name: string }; status: { conditions: Conditions } }[]
    try {
      found = JSON.parse(await this.call({ path: '/api/v1/nodes' })).items
    } catch {
      // The prober checks whether the API responds.
      return
    }
    for (const { metadata, status } of found) {
      await this.sample({ kind: 'node', target: metadata.name }, async () => {
        if (isTrue(status.conditions, 'Ready')) return
        const ready = status.conditions?.find(({ type }) => type === 'Ready')
        throw new Error(`the node is not Ready: ${ready?.message ?? 'nothing is said of it'}`)
      })
    }
  }

  private aggregated(endpoint: Endpoint): Promise<void> {
    return this.sample({ kind: 'aggregated', endpoint: endpoint.name }, async () => {
      await this.call({ host: endpoint.host, path: '/apis/metrics.k8s.io/v1beta1' })
    })
  }

  private webhook(endpoint: Endpoint): Promise<void> {
    return this.sample({ kind: 'webhook', endpoint: endpoint.name }, async () => {
      await this.call({
        host: endpoint.host,
        method: 'POST',
        path: '/api/v1/namespaces/lab/configmaps?dryRun=All',
        body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { generateName: 'passes-' } },
      })
    })
  }

  /** Requests, approves and waits for a client certificate. The sample has the time of the request. */
  private signing(): Promise<void> {
    return this.sample({ kind: 'signing' }, async () => {
      const path = '/apis/certificates.k8s.io/v1/certificatesigningrequests'
      const spec = {
        request: Buffer.from(await request()).toString('base64'),
        signerName: 'kubernetes.io/kube-apiserver-client',
        usages: ['client auth'],
        expirationSeconds: 600,
      }
      const metadata = { generateName: 'lab-watcher-' }
      const created = JSON.parse(
        await this.call({
          method: 'POST',
          path,
          body: { apiVersion: 'certificates.k8s.io/v1', kind: 'CertificateSigningRequest', metadata, spec },
        }),
      )
      const own = `${path}/${created.metadata.name}`
      const conditions = [{ type: 'Approved', status: 'True', reason: 'Lab', message: 'of the watcher' }]
      await this.call({
        method: 'PUT',
        path: `${own}/approval`,
        body: { ...created, status: { conditions } },
      })
      const deadline = performance.now() + 30_000
      while (JSON.parse(await this.call({ path: own })).status?.certificate === undefined) {
        if (performance.now() > deadline) throw new Error('nobody signed within 30 s')
        await sleep(100)
      }
      await this.call({ method: 'DELETE', path: own })
    })
  }

  private async counters(): Promise<void> {
    const pods = await this.countingPods().catch(() => [])
    const counts = await Promise.all(
      pods.map(async ({ name, url }) => {
        const at = new Date().toISOString()
        const answer = await fetch(url, { signal: AbortSignal.timeout(4000) }).then(
          (response) => response.json() as Promise<NonNullable<Sample['counts']>>,
          () => undefined,
        )
        // A pod that is being replaced does not respond. The remaining pods respond the next time.
        return (
          answer && ({ at, kind: 'counter', target: name, outcome: 'ok', ms: 0, counts: answer } as const)
        )
      }),
    )
    this.observed.push(...counts.flatMap((one) => one ?? []))
  }

  private async countingPods(): Promise<{ name: string; url: string }[]> {
    const path = '/api/v1/namespaces/lab/pods?labelSelector=lab.local/counts'
    const { items } = JSON.parse(await this.call({ path })) as { items: Pod[] }
    return items
      .filter(({ status }) => status.phase === 'Running' && status.podIP !== undefined)
      .map(({ metadata, status }) => ({ name: metadata.name, url: `http://${status.podIP}:8080/counts` }))
  }

  private call({
    host = network.loadBalancer,
    method = 'GET',
    path,
    body,
  }: {
    host?: string
    method?: string
    path: string
    body?: object
  }): Promise<string> {
    const text = body === undefined ? '' : JSON.stringify(body)
    const options: RequestOptions = {
      host,
      port: 6443,
      method,
      path,
      agent: false,
      timeout: 10_000,
      ca: readFileSync(probeFiles.trust('both')),
      headers: {
        Authorization: `Bearer ${readFileSync(probeFiles.token, 'utf8').trim()}`,
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
      },
    }
    return new Promise((resolve, reject) => {
      const call = httpsRequest(options, (response) => {
        const parts: Buffer[] = []
        response.on('data', (part: Buffer) => parts.push(part))
        response.on('error', reject)
        response.on('end', () => {
          const answer = Buffer.concat(parts).toString()
          const { statusCode = 0 } = response
          if (statusCode >= 200 && statusCode < 300) resolve(answer)
          else reject(new Error(`HTTP ${statusCode}: ${answer.slice(0, 1000)}`))
        })
      })
      call.on('timeout', () => call.destroy(Object.assign(new Error('no answer'), { code: 'ETIMEDOUT' })))
      call.on('error', reject)
      call.end(text)
    })
  }
}

type Conditions = Parameters<typeof isTrue>[0]

interface Endpoint {
  readonly name: string
  readonly host: string
}

let requestText: Promise<string> | undefined

/** One request suffices: it shows whether the signer works. */
function request(): Promise<string> {
  requestText ??= issueRequest('lab-watcher')
  return requestText
}

/**
 * The condition that a kubelet reports before its first check of its containers. Its own workaround (kubernetes 1.36,
 * kubelet_node_status.go, fastNodeStatusUpdate) ends as soon as it finds the node Ready from before the restart.
 */
const startingKubelet =
  /^the node is not Ready: .*(?:pleg has yet to be successful|status check may not have completed yet|CSINode is not yet initialized)/

function outcomeOf(code: string, message: string): string {
  if (startingKubelet.test(message)) return 'starting'
  if (/^HTTP 401/.test(message)) return 'unauthorized'
  if (/^HTTP /.test(message)) return 'http'
  if (code === 'ECONNREFUSED') return 'refused'
  if (code === 'ETIMEDOUT') return 'timeout'
  if (/CERT|ISSUER|SIGNATURE/.test(code)) return 'untrusted'
  if (/^ERR_SSL/.test(code)) return 'tls'
  return code === 'ECONNRESET' || code === 'EPIPE' ? 'cut' : 'error'
}
