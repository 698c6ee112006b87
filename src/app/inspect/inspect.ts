import { existsSync } from 'node:fs'
import type { Context } from '../../cli/context.ts'
import type { ClusterFlags } from '../../cli/flags.ts'
import { type ExitCode, exitCodes, worstExit } from '../../errors/codes.ts'
import { commandLine } from '../../errors/command-line.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import type { InspectedReport } from '../../inspection/entry-reports.ts'
import { Inspection } from '../../inspection/inspection.ts'
import type { InspectionReport } from '../../inspection/report.ts'
import { type Selection, select } from '../../inspection/selection.ts'
import type { Source, UnreadableSource } from '../../inspection/source.ts'
import { summaryOf } from '../../inspection/summary.ts'
import type { Thresholds } from '../../inspection/thresholds.ts'
import { nagiosUnknown, renderNagios } from '../../output/inspection/nagios.ts'
import { renderPem } from '../../output/inspection/pem.ts'
import { renderPrometheus } from '../../output/inspection/prometheus.ts'
import { renderNames, renderShort } from '../../output/inspection/short.ts'
import { renderText } from '../../output/inspection/text.ts'
import { renderTree } from '../../output/inspection/tree.ts'
import { renderWide } from '../../output/inspection/wide.ts'
import { renderJson } from '../../output/json.ts'
import { type JsonPathTemplate, renderJsonPath } from '../../output/jsonpath.ts'
import type { View } from '../../output/view.ts'
import { renderYaml } from '../../output/yaml.ts'
import { tuneForManyCertificates } from '../../system/engine.ts'
import { readFile } from '../../system/files.ts'
import { writePem } from '../../x509/pem.ts'
import type { ClusterScope, Findings } from './cluster.ts'
import { defaultTargets, listedKubeconfigs, mostDialsAtOnce, readTargets } from './targets.ts'

export const inspectFormats = [
  'text',
  'short',
  'name',
  'wide',
  'tree',
  'json',
  'yaml',
  'jsonpath',
  'prometheus',
  'nagios',
  'pem',
  'html',
] as const
export type InspectFormat = (typeof inspectFormats)[number]

// Any user who may write EndpointSlices in the namespace default can add addresses.
const mostAnnounced = 100

/** What to inspect and how to evaluate it. */
export interface InspectJob {
  /** Files, folders, "-" and host:port; empty means the default places on this machine. */
  readonly targets: readonly string[]
  readonly now: Date
  readonly thresholds: Thresholds
  readonly selection: Selection
  readonly password?: string
  readonly timeoutMs: number
  /** Also read this cluster; then, without targets, the only file is the kubeconfig. */
  readonly cluster?: ClusterFlags & ClusterScope
}

/** The findings, and the servers that did not respond. Files that cannot be read are problems in the report. */
export interface Inspected {
  readonly report: InspectedReport
  readonly unreachable: readonly KcertError[]
  /** False if the API server forbade reading a part of the cluster. */
  readonly isPermitted: boolean
  /** The number of files in the default places that this user may not read; they are not a problem there. */
  readonly closed: number
  /** Notes in addition to the report. */
  readonly notes: readonly string[]
}

/** Returns the report on the job's targets. Throws the first failure if nothing at all could be read. */
export async function inspectTargets(job: InspectJob, context: Context): Promise<Inspected> {
  const { now, thresholds, password, cluster } = job
  const isDefault = job.targets.length === 0 && cluster === undefined
  const isMerged = isDefault || (cluster !== undefined && !cluster.chosen && cluster.kubeconfig === undefined)
  const inspection = new Inspection({
    now,
    generatedAt: context.clock(),
    thresholds,
    readReferencedFile: readFile,
    ...(isMerged && { mergedKubeconfigs: listedKubeconfigs(context) }),
    ...(password === undefined ? {} : { password }),
  })
  const targets = isDefault ? defaultTargets(context) : job.targets
  const closed = new Set<string>()
  const visit = (input: Source | UnreadableSource): Promise<void> | void => {
    if (!('reason' in input)) return inspection.add(input)
    if (input.reason === 'permission') closed.add(input.name)
    return inspection.addUnreadable(input)
  }
  const { failed, read, notes, isPermitted } =
    cluster === undefined
      ? {
          ...(await readTargets(targets, { context, timeoutMs: job.timeoutMs }, visit)),
          notes: [],
          isPermitted: true,
        }
      : await readWithCluster({ ...job, cluster }, context, inspection, visit)
  if (read === 0 && failed[0]) throw failed[0]
  const { report } = inspection.finish()
  if (isBlank(report) && failed.length === 0)
    throw cluster === undefined ? nothingIn(targets) : nothingSelected(cluster)
  return {
    report: select(isDefault ? withoutClosed(report, closed) : report, job.selection),
    unreachable: cluster === undefined ? failed.filter(({ code }) => code === 'KCERT_UNREACHABLE') : failed,
    closed: isDefault ? closed.size : 0,
    notes,
    isPermitted,
  }
}

/** Reads the kubeconfig in use, the API servers' served certificates, the other named targets, and then the cluster's objects. */
async function readWithCluster(
  job: InspectJob & { readonly cluster: ClusterFlags & ClusterScope },
  context: Context,
  inspection: Inspection,
  visit: (input: Source | UnreadableSource) => Promise<void> | void,
) {
  const { cluster: flags, timeoutMs, targets } = job
  const [
    { kubeconfigsOf, withCluster },
    { apiServersOf, isScoped, scanCluster },
    { readServed },
    { default: pMap },
  ] = await Promise.all([
    import('../../cli/cluster.ts'),
    import('./cluster.ts'),
    import('../../tls/served.ts'),
    import('p-map'),
  ])
  const { chosen } = flags
  if (chosen === undefined) tuneForManyCertificates()
  return withCluster(context, flags, async (cluster) => {
    const isPart = isScoped(flags)
    const { own, announced, hidden } = isPart
      ? { own: '', announced: [], hidden: false }
      : await apiServersOf(cluster)
    const { files } = chosen === undefined ? kubeconfigsOf(context, flags.kubeconfig) : { files: [] }
    const kubeconfigs = isPart ? [] : files.filter((file) => existsSync(file))
    // The file may contain the contexts of other clusters.
    if (chosen !== undefined) {
      const { minified } = await import('../../cluster/kubeconfig-files.ts')
      await visit({ name: chosen.selected.source, bytes: minified(chosen.selected) })
    }
    const isTls = !isPart && cluster.server.startsWith('https:')
    const { failed, read } = await readTargets(
      [...kubeconfigs, ...(isTls ? [own] : []), ...targets],
      { context, timeoutMs },
      visit,
    )
    const unseen: string[] = []
    const dials = announced.slice(0, mostAnnounced)
    await pMap(
      dials,
      async (endpoint) => {
        if (chosen?.signal?.aborted) return
        // Behind a load balancer they are often unreachable from outside, and they are not targets of the command line.
        const served = await readServed(endpoint, timeoutMs).catch((error: unknown) => {
          if (error instanceof KcertError) return undefined
          throw error
        })
        if (served === undefined) unseen.push(endpoint.name)
        else await visit(served)
      },
      { concurrency: mostDialsAtOnce },
    )
    const { failure, notes, isPermitted } = await scanCluster(
      cluster,
      counting(inspection, chosen?.onKept),
      flags,
    )
    return {
      failed: failure === undefined ? failed : [failure, ...failed],
      read,
      isPermitted,
      notes: [
        ...notes,
        ...(announced.length > dials.length
          ? [
              `only ${dials.length} of the ${announced.length} API servers in the EndpointSlice were inspected`,
            ]
          : []),
        ...(hidden ? ['other API servers were not inspected: you may not list EndpointSlices'] : []),
        ...(unseen.length === 0
          ? []
          : [
              `not reachable from here: ${unseen.sort().join(', ')}, which the EndpointSlice of the kubernetes Service lists`,
            ]),
      ],
    }
  })
}

/** Estimates of the memory that an object and a certificate take until the report is complete, in bytes. */
const keptOfObject = 250
const keptOfCertificate = 5_000

/** Returns the inspection. It also estimates how much memory each object takes. */
function counting(inspection: Inspection, onKept: ((bytes: number) => void) | undefined): Findings {
  if (onKept === undefined) return inspection
  return {
    addRefused: (name, error) => inspection.addRefused(name, error),
    async addObject(name, object, kind) {
      const before = inspection.found.length
      await inspection.addObject(name, object, kind)
      onKept(keptOfObject + (inspection.found.length - before) * keptOfCertificate)
    },
  }
}

// These files are defaults. An ordinary user should not be able to read the node's keys and kubeconfigs.
function withoutClosed(report: InspectedReport, closed: ReadonlySet<string>): InspectedReport {
  const problems = report.problems.filter(
    ({ code, source }) => code !== 'SOURCE_UNREADABLE' || !closed.has(source),
  )
  return {
    ...report,
    problems,
    summary: { ...report.summary, problems: summaryOf({ ...report, problems }).problems },
  }
}

// A file without content is a problem in the report. A folder without any is probably a mistyped path.
function isBlank(report: InspectionReport): boolean {
  const { certificates, requests, keys, tokens, kubeconfigs, withoutCertificate, missing, problems } = report
  return [certificates, requests, keys, tokens, kubeconfigs, withoutCertificate, missing, problems].every(
    ({ length }) => length === 0,
  )
}

function nothingIn(targets: readonly string[]): KcertError {
  return new KcertError('KCERT_USAGE', `there is nothing to inspect in ${targets.join(', ')}`, {
    why: 'no file there contains a certificate, a request, a key or a kubeconfig',
    next: commandLine`ls -lR ${targets[0]}`,
  })
}

function nothingSelected({ namespace, selector }: ClusterScope): KcertError {
  const place = namespace === undefined ? 'the cluster' : `namespace ${JSON.stringify(namespace)}`
  const labels = selector === undefined ? '' : ` with labels ${JSON.stringify(selector)}`
  return new KcertError('KCERT_API_NOT_FOUND', `no certificates in ${place}${labels}`, {
    next: 'kcert inspect --cluster',
  })
}

/** Returns the report in a format, and its exit code. */
export async function renderInspected(
  { report, unreachable, isPermitted }: Inspected,
  format: InspectFormat,
  view: View,
  template: JsonPathTemplate,
): Promise<{ text: string; exit: ExitCode }> {
  const [silent] = unreachable
  if (format === 'nagios') {
    const verdict = renderNagios(report)
    const { line, exit } = silent && verdict.exit === 0 ? nagiosUnknown(silent.message, silent.why) : verdict
    return { text: line, exit }
  }
  return {
    text: await textOf(report, format, view, template),
    exit: exitOf({ report, unreachable, isPermitted }),
  }
}

/** Returns the exit code of an inspection in all formats except nagios. */
export function exitOf({
  report,
  unreachable,
  isPermitted,
}: Pick<Inspected, 'report' | 'unreachable' | 'isPermitted'>): ExitCode {
  return worstExit([
    ...unreachable.map(({ exitCode }) =>
      exitCode === exitCodes.notPermitted ? exitCode : exitCodes.unreachable,
    ),
    isPermitted ? exitCodes.done : exitCodes.notPermitted,
    report.problems.some(({ severity }) => severity !== 'info') ? exitCodes.no : exitCodes.done,
  ])
}

async function textOf(
  report: InspectedReport,
  format: Exclude<InspectFormat, 'nagios'>,
  view: View,
  template: JsonPathTemplate,
): Promise<string> {
  switch (format) {
    case 'text':
      return renderText(report, view)
    case 'short':
      return renderShort(report, view)
    case 'name':
      return renderNames(report)
    case 'wide':
      return renderWide(report, view)
    case 'tree':
      return renderTree(report, view)
    case 'json':
      return renderJson(report)
    case 'yaml':
      return renderYaml(report)
    case 'jsonpath':
      return renderJsonPath(template, report)
    case 'prometheus':
      return renderPrometheus(report)
    case 'pem':
      return renderPem(
        report.certificates.map((one) => ({
          report: one,
          pem: writePem('CERTIFICATE', one.of.certificate.der),
        })),
        report,
      )
    case 'html': {
      const { renderHtml } = await import('../../output/inspection/html.ts')
      return renderHtml(report)
    }
  }
}
