import { existsSync } from 'node:fs'
import { openClusterOf } from '../../cli/cluster.ts'
import type { Context } from '../../cli/context.ts'
import type { ClusterFlags } from '../../cli/flags.ts'
import { checkCertificate, issuedChain, notIssued, refuseUnfit } from '../../csr/fetched.ts'
import { stateOf } from '../../csr/life.ts'
import { manifestOf } from '../../csr/manifest.ts'
import { signingRequestOfObject } from '../../csr/request-object.ts'
import { makeRequest } from '../../csr/request-spec.ts'
import type { SigningRequest } from '../../csr/signing-request.ts'
import { submitRequest } from '../../csr/submission.ts'
import { waitForCertificate } from '../../csr/waiting.ts'
import { commandLine } from '../../errors/command-line.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { kubeconfigDocument } from '../../kubeconfig/format.ts'
import { CertificateManager, type ManagerNews, type SentRequest } from '../../kubelet/certificate-manager.ts'
import type { ManagedCertificate } from '../../kubelet/manage-report.ts'
import { heldCertificateOf } from '../../kubelet/pair.ts'
import { PairStore, type StoredPair } from '../../kubelet/pair-store.ts'
import { isSameTemplate, type Template, unmetBy } from '../../kubelet/template.ts'
import { formatError } from '../../output/error.ts'
import { type ManagerMetrics, renderManagerMetrics } from '../../output/kubelet-metrics.ts'
import { printable } from '../../output/terminal.ts'
import { renderYaml } from '../../output/yaml.ts'
import { kubeletRotationWindow } from '../../pki/kubelet.ts'
import { rfc3339 } from '../../pki/rfc3339.ts'
import { acquireLock } from '../../system/lock.ts'
import { makeFolders } from '../../system/new-folder.ts'
import { writeKeyFile } from '../../system/output-file.ts'
import { pairFiles } from '../../system/pair-files.ts'
import { writeCertificates } from '../../x509/certificate.ts'
import { generatePrivateKey, writePrivateKey } from '../../x509/new-key.ts'
import { CertificateRequest } from '../../x509/request.ts'
import { certificateFacts } from '../csr/certificate-facts.ts'
import { type AfterRenewal, PendingNotification, runHooks } from './after-renewal.ts'
import { type ManageSettings, specFor, templateIn, templateOfNode } from './manage-settings.ts'
import type { MetricsOutput } from './metrics-output.ts'

// `kcert kubelet manage`: the certificate manager on a real cluster, a real folder and a real clock.

export interface ManageOptions extends AfterRenewal {
  readonly cluster: ClusterFlags
  readonly bootstrapKubeconfig: string | undefined
  readonly dryRun: boolean
  /** Exit as soon as there is a certificate that need not be renewed, or an attempt has failed. */
  readonly once: boolean
  readonly forceRenewal: boolean
  /** Receives a function that returns the text to publish. */
  readonly metrics: (text: () => string) => Promise<MetricsOutput | undefined>
  /** Aborted when the manager must stop. */
  readonly ended: AbortSignal
  readonly note: (text: string) => void
}

/** The interval at which kcert reads a Node's addresses. */
const nodePollMs = 10_000
const templatePollMs = 1_000

/** Keeps the certificate renewed until it must stop, and returns the current one. Throws the error that stopped it. */
export async function manageCertificate(
  settings: ManageSettings,
  options: ManageOptions,
  context: Context,
): Promise<ManagedCertificate> {
  const work = new Management(settings, options, context)
  if (options.dryRun) return work.observe()
  makeFolders(settings.folder, 0o755)
  // One manager per pair: two would both renew it, and each would treat the other's certificate as its own.
  using _lock = await acquireLock(work.store.currentPath, 0)
  return await work.run()
}

class Management {
  readonly store: PairStore
  private readonly settings: ManageSettings
  private readonly options: ManageOptions
  private readonly context: Context
  private readonly notification: PendingNotification
  private readonly counts = { renewals: 0, failures: 0, hooks: 0 }
  private readonly usedSeconds: number[] = []
  private template: Template | undefined
  private manager: CertificateManager | undefined
  private metrics: MetricsOutput | undefined
  private hooks: Promise<void> = Promise.resolve()
  private lastError: unknown
  private isOver: () => void = () => {}

  constructor(settings: ManageSettings, options: ManageOptions, context: Context) {
    this.settings = settings
    this.options = options
    this.context = context
    this.store = new PairStore({ folder: settings.folder, prefix: settings.prefix }, pairFiles())
    this.notification = new PendingNotification(settings.folder, settings.prefix)
  }

  /** Returns what the manager would do. */
  async observe(): Promise<ManagedCertificate> {
    this.store.check()
    await this.readTemplate()
    this.checkTemplate()
    return this.report(this.store.current())
  }

  async run(): Promise<ManagedCertificate> {
    const { options, store } = this
    store.recover()
    store.check()
    await this.readTemplate().catch((error: unknown) => {
      // A Node may not exist yet. An unreadable file is a mistake on the command line.
      if (this.settings.source.by !== 'node' || options.once) throw error
      this.lastError = error
      options.note(this.textOf(error))
    })
    this.checkTemplate()
    if (options.once && this.template === undefined) throw withoutAddress(this.settings)
    const present = store.current()
    this.manager = this.makeManager(present)
    this.metrics = await options.metrics(() => renderManagerMetrics(this.metricsNow()))
    await this.retryHook(present)
    const poll = this.pollTemplate()
    try {
      await this.keep()
    } finally {
      clearInterval(poll)
      await this.manager.stop()
      await this.hooks
      await this.metrics?.close()
    }
    if (options.once && this.lastError !== undefined) throw this.lastError
    if (options.once && store.current() === undefined)
      throw new KcertError('KCERT_CSR_WAIT_OVER', 'stopped before a certificate was issued', {
        why: 'with --once, kcert succeeds only if there is a certificate',
        fix: 'run the same command again',
      })
    return this.report(store.current())
  }

  private makeManager(present: StoredPair | undefined): CertificateManager {
    const { clock } = this.context
    return new CertificateManager(
      {
        clock,
        draw: Math.random,
        after: (ms, wake) => {
          const timer = setTimeout(wake, ms)
          return () => clearTimeout(timer)
        },
        request: (template, signal) => this.request(template, signal),
        store: this.store,
        tell: (news) => this.tell(news),
      },
      {
        template: this.settings.source.by === 'flags' ? this.settings.source.template : () => this.template,
        present,
        forceRenewal: this.options.forceRenewal,
      },
    )
  }

  /** Returns when it is stopped; with `once` as soon as there is an outcome. */
  private async keep(): Promise<void> {
    const { ended, once } = this.options
    const over = new Promise<void>((resolve) => {
      this.isOver = resolve
      ended.addEventListener('abort', () => resolve(), { once: true })
    })
    const renewNow = (): void => this.manager?.force()
    process.on('SIGUSR2', renewNow)
    try {
      if (!ended.aborted) this.manager?.start()
      const isDone = once && this.manager?.nextRenewalMs() !== undefined
      if (!isDone && !ended.aborted) await over
    } finally {
      process.off('SIGUSR2', renewNow)
    }
  }

  private tell(news: ManagerNews): void {
    const { note, once } = this.options
    switch (news.kind) {
      case 'waiting':
        note(`next renewal at ${rfc3339(new Date(news.untilMs))}`)
        if (once) this.isOver()
        break
      case 'requested':
        note(`requested as ${news.name}`)
        break
      case 'renewed': {
        this.counts.renewals++
        if (news.usedSeconds !== undefined) this.usedSeconds.push(news.usedSeconds)
        const [leaf] = news.stored.pair.chain
        note(`renewed: ${news.stored.path}, valid until ${rfc3339(leaf.notAfter)}`)
        this.afterRenewal(news.stored)
        this.lastError = undefined
        if (once) this.isOver()
        break
      }
      case 'failed': {
        this.counts.failures++
        this.lastError = news.error
        const { againAtMs } = news
        if (once) this.isOver()
        else note(this.textOf(news.error))
        if (!once && againAtMs !== undefined) note(`next try at ${rfc3339(new Date(againAtMs))}`)
      }
    }
    this.metrics?.changed()
  }

  private afterRenewal(stored: StoredPair): void {
    const { cluster, bootstrapKubeconfig, note } = this.options
    const { kubeconfig } = cluster
    this.hooks = this.hooks.then(async () => {
      try {
        if (bootstrapKubeconfig !== undefined && kubeconfig !== undefined && !existsSync(kubeconfig))
          await this.writeKubeconfig(kubeconfig, stored)
        await this.notifyOthers(stored)
      } catch (error) {
        this.counts.hooks++
        note(this.textOf(error))
      }
      this.metrics?.changed()
    })
  }

  private async notifyOthers({ pair, path }: StoredPair): Promise<void> {
    const { fingerprintSha256, notAfter } = pair.chain[0]
    const { env } = this.context
    const hookEnv = {
      ...env,
      KCERT_PAIR: this.store.currentPath,
      KCERT_PAIR_FILE: path,
      KCERT_NOT_AFTER: rfc3339(notAfter),
    }
    this.store.nudgeWatchers()
    await runHooks(this.options, hookEnv, this.options.note)
    this.notification.write(fingerprintSha256)
  }

  /** Runs the hooks that were missed because the process was killed after a renewal. */
  private async retryHook(present: StoredPair | undefined): Promise<void> {
    const fingerprint = present?.pair.chain[0].fingerprintSha256 ?? 'none'
    const notified = this.notification.read()
    if (notified === undefined) this.notification.write(fingerprint)
    if (notified === undefined || present === undefined || notified === fingerprint) return
    this.options.note('the hooks of the last renewal did not run')
    this.afterRenewal(present)
  }

  /** Writes a kubeconfig like a kubelet's: it names the link, so it need not change with the certificate. */
  private async writeKubeconfig(path: string, { pair }: StoredPair): Promise<void> {
    const cluster = await openClusterOf(this.context, this.clusterFlags())
    const { clusterName, ...connection } = cluster.connection()
    cluster.close()
    const file = this.store.currentPath
    const name = pair.chain[0].subject.commonName || 'user'
    const document = kubeconfigDocument(
      { name: clusterName, ...connection },
      { name, certificate: { file }, key: { file } },
    )
    writeKeyFile(path, renderYaml(document), { replace: false })
    this.options.note(`${path} written: it references ${file}`)
  }

  /** Returns the bootstrap kubeconfig until there is a certificate, and a kubeconfig that names it. */
  private clusterFlags(): ClusterFlags {
    const { cluster, bootstrapKubeconfig } = this.options
    if (bootstrapKubeconfig === undefined) return cluster
    const isOwn =
      cluster.kubeconfig !== undefined &&
      existsSync(cluster.kubeconfig) &&
      this.manager?.current() !== undefined
    return isOwn ? cluster : { ...cluster, kubeconfig: bootstrapKubeconfig }
  }

  private async request(template: Template, signal: AbortSignal): Promise<SentRequest> {
    const spec = specFor(this.settings.spec, template)
    const key = generatePrivateKey(spec.keyType)
    const der = makeRequest(spec, key)
    const { name: _, ...draft } = signingRequestOfObject(manifestOf(spec, der))
    const cluster = await openClusterOf(this.context, this.clusterFlags())
    const close = (): void => cluster.close()
    signal.addEventListener('abort', close, { once: true })
    try {
      const { object } = await submitRequest(
        cluster.requests,
        { ...draft, generateName: 'csr-' },
        { dryRun: false, sameBy: 'bytes' },
      )
      const sent = signingRequestOfObject(object)
      const { publicKey } = CertificateRequest.parse(der)
      return {
        name: sent.name ?? '',
        keyPem: writePrivateKey(key, 'kubernetes'),
        issued: async (until) => {
          try {
            return await this.issued(cluster.requests, sent, publicKey, until)
          } finally {
            close()
          }
        },
      }
    } catch (error) {
      close()
      throw error
    }
  }

  private async issued(
    api: Parameters<typeof waitForCertificate>[0],
    sent: SigningRequest,
    publicKey: CertificateRequest['publicKey'],
    signal: AbortSignal,
  ): Promise<string> {
    const name = sent.name ?? ''
    const uid = sent.uid === undefined ? {} : { uid: sent.uid }
    const found = await waitForCertificate(api, { name, ...uid, signal })
    if (found === undefined || stateOf(found) !== 'issued') throw notIssued(found ?? sent)
    const chain = issuedChain(found)
    const key = { publicKey, place: 'of this request' }
    refuseUnfit(checkCertificate(chain[0], found, { key, now: this.context.clock() }), found, {
      acceptsNames: false,
    })
    return writeCertificates(chain)
  }

  private async readTemplate(): Promise<void> {
    const { source } = this.settings
    if (source.by === 'flags') this.template = source.template
    else if (source.by === 'file') this.template = await templateIn(source.file, this.context)
    else {
      const cluster = await openClusterOf(this.context, this.clusterFlags())
      try {
        this.template = await templateOfNode(cluster, source)
      } finally {
        cluster.close()
      }
    }
  }

  /** Throws KCERT_CSR_SIGNER_REFUSED for a template that its signer would never sign. */
  private checkTemplate(): void {
    if (this.template === undefined) return
    const spec = specFor(this.settings.spec, this.template)
    manifestOf(spec, makeRequest(spec, generatePrivateKey({ algorithm: 'ECDSA', curve: 'P-256' })))
  }

  /** An unreadable file or Node leaves the template unchanged, and is reported once. */
  private pollTemplate(): NodeJS.Timeout | undefined {
    const { source } = this.settings
    if (source.by === 'flags') return undefined
    let isBusy = false
    let reported = ''
    const observe = async (): Promise<void> => {
      if (isBusy) return
      isBusy = true
      const before = this.template
      try {
        await this.readTemplate()
        this.checkTemplate()
        if (reported !== '' || !isSameTemplate(before, this.template))
          this.options.note('the requested subject and SANs were read again')
        reported = ''
      } catch (error) {
        this.template = before
        const text = this.textOf(error)
        if (text !== reported) this.options.note(text)
        reported = text
      }
      isBusy = false
    }
    return setInterval(observe, source.by === 'file' ? templatePollMs : nodePollMs)
  }

  private metricsNow(): ManagerMetrics {
    const current = this.manager?.current()
    const next = this.manager?.nextRenewalMs()
    return {
      pair: this.settings.prefix,
      notAfterSeconds: current && current.pair.chain[0].notAfterMs / 1000,
      nextRenewalSeconds: next && Math.round(next / 1000),
      isServerHealthy: this.manager?.serverHealthy() ?? false,
      renewals: this.counts.renewals,
      renewFailures: this.counts.failures,
      hookFailures: this.counts.hooks,
      usedSeconds: this.usedSeconds,
    }
  }

  private textOf(error: unknown): string {
    if (error instanceof KcertError) return formatError(error, this.context.stderrColor).trimEnd()
    return printable(error instanceof Error ? error.message : String(error))
  }

  private report(stored: StoredPair | undefined): ManagedCertificate {
    const { template, settings, options, context } = this
    const nowMs = context.clock().getTime()
    const leaf = stored?.pair.chain[0]
    const isValid = leaf !== undefined && nowMs <= leaf.notAfterMs
    const held = stored && isValid ? heldCertificateOf(stored.pair) : undefined
    const window = leaf && kubeletRotationWindow(leaf.notBefore, leaf.notAfter)
    const unmet = leaf !== undefined && !isValid ? 'the certificate has expired' : unmetBy(held, template)
    const isLate = window !== undefined && window.latest.getTime() <= nowMs
    const due =
      unmet ??
      (options.forceRenewal && options.dryRun
        ? '--force-renewal'
        : isLate
          ? 'more than 90 % of its validity has passed'
          : undefined)
    const { signerName, usages, expirationSeconds } = settings.spec
    return {
      apiVersion: 'kcert/v1',
      kind: 'ManagedCertificate',
      generatedAt: rfc3339(context.clock()),
      dryRun: options.dryRun,
      pair: this.store.currentPath,
      signerName,
      usages: [...usages],
      ...(expirationSeconds === undefined ? {} : { expirationSeconds }),
      ...(template === undefined
        ? {}
        : { template: structuredClone(template) as ManagedCertificate['template'] }),
      ...(stored && isValid
        ? { certificate: { path: stored.path, ...certificateFacts(stored.pair.chain[0]) } }
        : {}),
      renewal: {
        ...(due === undefined ? {} : { due }),
        ...(window && isValid ? { earliest: rfc3339(window.earliest), latest: rfc3339(window.latest) } : {}),
      },
      renewals: this.counts.renewals,
      failures: this.counts.failures,
    }
  }
}

function withoutAddress({ source }: ManageSettings): KcertError {
  const node = source.by === 'node' ? source.node : ''
  return new KcertError('KCERT_API_NOT_FOUND', `Node ${JSON.stringify(node)} has no IP address`, {
    why: 'there is no such Node, or its kubelet has not written its status yet; --dns and --ip give the SANs without the Node',
    next: commandLine`kubectl get node ${node} -o wide`,
  })
}
