import { setTimeout as pauseFor } from 'node:timers/promises'
import { type ClusterInfo, readClusterInfo } from '../../bootstrap/cluster-info.ts'
import { type ClusterInfoUpdate, caFacts } from '../../bootstrap/cluster-info-report.ts'
import { refusalOf } from '../../bootstrap/cluster-info-verification.ts'
import { signatureKeyPrefix, signKubeconfig } from '../../bootstrap/signature.ts'
import { signatureFacts } from '../../bootstrap/signature-facts.ts'
import type { BootstrapToken } from '../../bootstrap/token.ts'
import { agreed } from '../../cli/consent.ts'
import type { Context } from '../../cli/context.ts'
import type { Cluster } from '../../cluster/cluster.ts'
import { type ExitCode, exitCodes } from '../../errors/codes.ts'
import { commandLine } from '../../errors/command-line.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { editKubeconfig } from '../../kubeconfig/edit.ts'
import { lineDiff } from '../../output/line-diff.ts'
import { renderYaml } from '../../output/yaml.ts'
import { noteChange } from '../../system/lasting-changes.ts'
import { writeKeyFile } from '../../system/output-file.ts'
import { type Certificate, writeCertificates } from '../../x509/certificate.ts'
import {
  clusterInfoOf,
  clusterInfoPlace,
  clusterInfoResource,
  type FoundClusterInfo,
  tokensOf,
} from '../bootstrap/objects.ts'
import { readServedAt } from './verify.ts'

export interface UpdateSettings {
  /** In order. */
  readonly cas: readonly Certificate[]
  readonly dryRun: boolean
  readonly yes: boolean
  /** Write it even if the certificate of an API server would not be trusted. */
  readonly force: boolean
  /** The file for a backup of the object; undefined for no backup. */
  readonly backup: string | undefined
  readonly waitMs: number
  readonly timeoutMs: number
}

interface Plan {
  readonly found: FoundClusterInfo
  readonly kubeconfig: string
  readonly after: ClusterInfo
  readonly diff: readonly string[]
}

const mostConflicts = 8
const pollMs = 1_000

/**
 * Writes these CAs to cluster-info and returns when every token's signature is valid. Other fields, comments and order are kept.
 * The write requires the version that was read: if the kubeconfig changes meanwhile, nothing is written (KCERT_API_CONFLICT).
 */
export async function updateClusterInfo(
  cluster: Cluster,
  settings: UpdateSettings,
  context: Context,
): Promise<{ readonly report: ClusterInfoUpdate; readonly exit: ExitCode }> {
  const { clock } = context
  const plan = await planOf(await clusterInfoOf(cluster), settings.cas)
  const notices = await trustNotices(plan.after, settings, clock())
  const tokens = async () => (await tokensOf(cluster, clock()))?.signing
  const report = async (
    outcome: ClusterInfoUpdate['outcome'],
    now: FoundClusterInfo,
    backup?: string,
  ): Promise<ClusterInfoUpdate> => ({
    apiVersion: 'kcert/v1',
    kind: 'ClusterInfoUpdate',
    outcome,
    ...(plan.after.server === undefined ? {} : { server: plan.after.server }),
    before: plan.found.info.cas.map(caFacts),
    after: plan.after.cas.map(caFacts),
    signatures: signatureFacts(now.info, await tokens()),
    diff: [...plan.diff],
    ...(backup === undefined ? {} : { backup }),
    notices,
  })
  if (settings.dryRun && plan.diff.length > 0)
    return { report: await report('would-update', plan.found), exit: exitCodes.done }
  if (plan.diff.length === 0) {
    const signed = settings.dryRun
      ? plan.found
      : await untilSigned(cluster, settings.waitMs, clock, plan.found)
    return { report: await report('unchanged', signed), exit: exitCodes.done }
  }
  const isAgreed = await agreed(context, {
    yes: settings.yes,
    proposal: [...notices, ...plan.diff],
    question: `Write this into ${clusterInfoPlace} of ${cluster.server}?`,
    what: `changing ${clusterInfoPlace} requires confirmation`,
  })
  if (!isAgreed) return { report: await report('declined', plan.found), exit: exitCodes.no }
  const backup = keepBackup(plan.found, settings.backup)
  await write(cluster, plan, tokens)
  const signed = await untilSigned(cluster, settings.waitMs, clock, plan.found)
  return { report: await report('updated', signed, backup), exit: exitCodes.done }
}

async function planOf(found: FoundClusterInfo, cas: readonly Certificate[]): Promise<Plan> {
  const { info, data } = found
  const [fault] = info.faults.filter(({ id }) => !['no-ca', 'ca-by-path', 'ca-malformed'].includes(id))
  // A new CA does not repair other problems, and their text must not be signed.
  if (fault !== undefined)
    throw new KcertError('KCERT_EDIT_REFUSED', `joining nodes cannot use ${clusterInfoPlace}`, {
      why: fault.detail,
      next: fault.next,
    })
  const pem = writeCertificates(cas)
  const kubeconfig = await withCas(info, cas, pem)
  const after = await readClusterInfo({ ...data, kubeconfig })
  return { found, kubeconfig, after, diff: lineDiff(info.kubeconfig, kubeconfig) }
}

/** The same CAs in the same order, in another encoding, are not a change. */
async function withCas(info: ClusterInfo, cas: readonly Certificate[], pem: string): Promise<string> {
  const digests = (list: readonly Certificate[]) =>
    list.map(({ fingerprintSha256 }) => fingerprintSha256).join()
  if (info.faults.length === 0 && digests(info.cas) === digests(cas)) return info.kubeconfig
  return editKubeconfig(info.kubeconfig, {
    clusters: [{ name: info.clusterName, certificateAuthority: { data: Buffer.from(pem) } }],
  })
}

/**
 * Returns notices about the server in cluster-info, as a joining node would see it. Throws KCERT_TRUST_LOST if the node would
 * reject it.
 */
async function trustNotices(
  after: ClusterInfo,
  { force, timeoutMs }: UpdateSettings,
  now: Date,
): Promise<string[]> {
  const [served] = await readServedAt(after.server === undefined ? [] : [after.server], timeoutMs)
  if (served === undefined) return []
  if ('fault' in served) return [`unknown whether joining nodes would trust ${served.place}: ${served.fault}`]
  const refusal = refusalOf(served.chain, served.host, after.cas, now)
  if (refusal === undefined) return []
  const what = `joining nodes would not trust the certificate that ${served.place} serves`
  if (force) return [`${what}: ${refusal}`]
  throw new KcertError('KCERT_TRUST_LOST', what, {
    why: `${refusal}; add the CA of that certificate with another --ca, or use --force`,
    next: commandLine`kcert inspect ${served.place}`,
  })
}

function keepBackup({ object }: FoundClusterInfo, file: string | undefined): string | undefined {
  if (file === undefined) return undefined
  const { name, namespace, labels, annotations } = object.metadata
  const kept = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, namespace, ...(labels ? { labels } : {}), ...(annotations ? { annotations } : {}) },
    data: object.data,
  }
  writeKeyFile(file, renderYaml(kept), { replace: false })
  return file
}

/**
 * Writes text and signatures in one step, so that a joining node never finds one without the other. The bootstrap signer computes
 * the same signatures and changes nothing. If the tokens cannot be read, the old signatures are removed: a joining node waits for
 * a missing signature, but fails at a wrong one.
 */
async function write(
  { objects }: Cluster,
  plan: Plan,
  tokens: () => Promise<readonly BootstrapToken[] | undefined>,
): Promise<void> {
  let { object, data } = plan.found
  for (let attempt = 1; ; attempt++) {
    const others = Object.entries(data).filter(([key]) => !key.startsWith(signatureKeyPrefix))
    const signatures = ((await tokens()) ?? []).map((token) => [
      signatureKeyPrefix + token.id,
      signKubeconfig(plan.kubeconfig, token),
    ])
    const wanted = {
      ...Object.fromEntries(others),
      kubeconfig: plan.kubeconfig,
      ...Object.fromEntries(signatures),
    }
    try {
      await objects.replace(clusterInfoResource, { ...object, data: wanted })
      noteChange(`${clusterInfoPlace} is changed`)
      return
    } catch (error) {
      const isConflict = error instanceof KcertError && error.code === 'KCERT_API_CONFLICT'
      if (!isConflict || attempt >= mostConflicts) throw error
      const now = await clusterInfoOf({ objects })
      // Only the response was lost: the object is written.
      if (now.info.kubeconfig === plan.kubeconfig) return
      // The signer may write here at any time. A change of the text is by another user, and was not shown.
      if (now.info.kubeconfig !== plan.found.info.kubeconfig) throw changedMeanwhile(error)
      object = now.object
      data = now.data
    }
  }
}

/** Returns cluster-info once every signature is valid. Throws KCERT_CLUSTER_INFO_UNSIGNED after `waitMs`. */
async function untilSigned(
  cluster: Cluster,
  waitMs: number,
  clock: Context['clock'],
  before: FoundClusterInfo,
): Promise<FoundClusterInfo> {
  const end = clock().getTime() + waitMs
  for (;;) {
    const found = await clusterInfoOf(cluster)
    const tokens = await tokensOf(cluster, clock())
    const open =
      tokens === undefined
        ? [...before.info.signatures.keys()].filter((id) => !found.info.signatures.has(id))
        : signatureFacts(found.info, tokens.signing)
            .filter(({ state }) => state === 'stale' || state === 'missing')
            .map(({ tokenId }) => tokenId)
    if (open.length === 0) return found
    if (clock().getTime() >= end) throw unsigned(open)
    await pauseFor(pollMs)
  }
}

function unsigned(ids: readonly string[]): KcertError {
  const what = `${clusterInfoPlace} has these CAs, but no valid signature of ${ids.length === 1 ? 'token' : 'tokens'} ${ids.join(', ')}`
  return new KcertError('KCERT_CLUSTER_INFO_UNSIGNED', what, {
    why: '--wait timed out; the bootstrapsigner controller of kube-controller-manager signs it',
    next: 'kcert cluster-info verify',
  })
}

function changedMeanwhile(cause: unknown): KcertError {
  const what = `the kubeconfig in ${clusterInfoPlace} was changed by another client in the meantime`
  return new KcertError('KCERT_API_CONFLICT', what, {
    why: 'it differs from the text of the shown change',
    next: 'kcert cluster-info show',
    cause,
  })
}
