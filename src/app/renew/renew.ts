import type { Hindrance, LeafPlace, SurveyedLeaf } from '../../ca/renewal.ts'
import type { CertificateRenewal } from '../../ca/renewal-report.ts'
import { agreed } from '../../cli/consent.ts'
import type { Context } from '../../cli/context.ts'
import { whileStoppable } from '../../cli/interruption.ts'
import { tellLine } from '../../cli/tell-line.ts'
import { type ExitCode, exitCodes } from '../../errors/codes.ts'
import { argumentVector, commandLine } from '../../errors/command-line.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { anewAdvice } from '../../inspection/advice.ts'
import { defaultThresholds, parseThreshold, thresholdMs } from '../../inspection/thresholds.ts'
import { kubeadmKubeconfigs, kubeadmLeaves } from '../../pki/kubeadm.ts'
import type { NeededRestart, SiteSurvey } from '../../renewal-io/renewing.ts'
import type { Inventory } from '../../rotation/inventory.ts'
import type { Certificate } from '../../x509/certificate.ts'
import { inventoryOrThisMachine, withNodes } from '../rotate-ca/node-inventory.ts'

export interface RenewFlags {
  readonly names: readonly string[]
  readonly all: boolean
  readonly within: string | undefined
  readonly inventory: string | undefined
  readonly node: readonly string[]
  readonly keepKeys: boolean
  readonly ttlMs: number | undefined
  readonly yes: boolean
  readonly dryRun: boolean
}

interface Answer {
  readonly report: CertificateRenewal
  readonly exit: ExitCode
}

/** Does what `kcert renew` says, or shows it. Throws as the nodes do, where a CA has expired, and where nobody can be asked. */
export async function renewCertificates(context: Context, flags: RenewFlags): Promise<Answer> {
  const { clock, random, stderr } = context
  const isDue = duePolicy(flags.within, () => clock().getTime())
  const inventory = await chosenNodes(flags, context)
  const renewing = await import('../../renewal-io/renewing.ts')
  return withNodes(inventory, context, async (site) => {
    const survey = await renewing.surveySite(site, isDue)
    checkSeen(survey)
    const wanted = wantedOf(survey, flags)
    const expiredCa = wanted.find(({ hindrance }) => hindrance === 'ca-expired')
    if (expiredCa !== undefined) throw caExpired(expiredCa)
    const chosen = wanted.filter(({ signer }) => signer !== undefined)
    const acts = flags.all || flags.names.length > 0
    const restarts = renewing
      .neededRestarts(survey, chosen)
      .filter(({ node }) => flags.node.length === 0 || flags.node.includes(node))
    const plan = { survey, wanted, restarts, flags }
    if (!acts) return listed(plan, clock())
    if (chosen.length === 0 && restarts.length === 0) return settled(plan, clock())
    if (flags.dryRun) return { report: reportOf(plan, 'planned', clock()), exit: exitOf(plan) }
    if (!(await agrees(context, flags.yes, chosen, restarts)))
      return { report: reportOf(plan, 'declined', clock()), exit: exitCodes.no }
    return whileStoppable(
      () => 'what is renewed stands; the same command does the rest',
      stderr,
      async () => {
        const tell = (what: string): void => tellLine(stderr, what)
        const [{ restartAll }, { proveLeaves }] = await Promise.all([
          import('../../renewal-io/renewal-restarts.ts'),
          import('../../renewal-io/renewal-proofs.ts'),
        ])
        const choice = { keepKeys: flags.keepKeys, ...(flags.ttlMs !== undefined && { ttlMs: flags.ttlMs }) }
        const { written, backups } = await renewing.writeRenewals(
          ...([site, survey, chosen, restarts, choice, random, tell] as const),
        )
        await restartAll(site, survey, restarts, backups, tell)
        for (const node of survey.nodes) if (backups.has(node.name)) await renewing.clearIntent(site, node)
        tell('looking at what is served and accepted now')
        const after = await renewing.surveySite(site, isDue)
        const isWritten = ({ place }: SurveyedLeaf): boolean =>
          written.some((one) => isSame(one.place, place))
        const isRestarted = ({ place }: SurveyedLeaf): boolean =>
          restarts.some(({ node, program }) => node === place.node && program === place.usedBy)
        const toProve = after.leaves.filter((leaf) => isWritten(leaf) || isRestarted(leaf))
        const proofs = await proveLeaves(site, after, toProve)
        const done = { ...plan, survey: after, written, proofs, backups }
        const isWhole = exitOf(plan) === exitCodes.done && proofs.every(({ ok }) => ok)
        const exit = isWhole ? exitCodes.done : exitOf(plan) === exitCodes.done ? exitCodes.no : exitOf(plan)
        return { report: reportOf(done, isWhole ? 'renewed' : 'incomplete', clock()), exit }
      },
    )
  })
}

/** The keys of CAs are on control planes, so these are always read; of workers those that are named, or all. */
async function chosenNodes({ inventory: name, node }: RenewFlags, context: Context): Promise<Inventory> {
  const inventory = await inventoryOrThisMachine(name, node, context)
  const nodes = inventory.nodes.filter(
    ({ name: its, role }) => node.length === 0 || role === 'control-plane' || node.includes(its),
  )
  return { ...inventory, nodes }
}

/** Of nothing at all no list is made. */
function checkSeen({ nodes, unreachable, leaves, missing }: SiteSurvey): void {
  const [first] = unreachable
  if (nodes.length === 0 && first !== undefined) throw first.error
  if (leaves.length + missing.length > 0) return
  throw new KcertError(
    'KCERT_FILE_NOT_FOUND',
    `${nodes.map(({ name }) => name).join(', ')}: no certificates of kubeadm`,
    {
      why: 'there is nothing in /etc/kubernetes/pki, and no kubeconfig with a client certificate in /etc/kubernetes',
      next: 'run it on a control-plane node, or name an inventory that leads to one: --inventory kcert.yaml',
    },
  )
}

/** As kcert inspect warns; a kubelet's own certificate is left to it until it is late, unless told otherwise. */
function duePolicy(
  within: string | undefined,
  nowMs: () => number,
): (leaf: Certificate, place: LeafPlace) => boolean {
  const threshold = within === undefined ? defaultThresholds.warn : parseThreshold(within)
  return ({ notBeforeMs, notAfterMs }, { form }) => {
    const lifetimeMs = notAfterMs - notBeforeMs
    const limitMs =
      within === undefined && form === 'store' ? lifetimeMs / 10 : thresholdMs(threshold, lifetimeMs)
    return notAfterMs - nowMs() <= limitMs
  }
}

/** Those that are named whatever their time, else all that are due. */
function wantedOf({ leaves, missing }: SiteSurvey, { names, node }: RenewFlags): SurveyedLeaf[] {
  const isHere = ({ place }: SurveyedLeaf): boolean => node.length === 0 || node.includes(place.node)
  const unknown = names.find(
    (name) => !leaves.some(({ place }) => place.name === name) && !missing.some((one) => one.name === name),
  )
  if (unknown !== undefined) {
    const known = [...new Set(leaves.map(({ place }) => place.name))]
    throw new KcertError('KCERT_USAGE', `these nodes have no certificate called ${JSON.stringify(unknown)}`, {
      why: known.length === 0 ? "they have none of kubeadm's at all" : `they have: ${known.join(', ')}`,
      next: unknown === 'all' ? 'kcert renew --all' : 'kcert renew',
    })
  }
  return leaves
    .filter(isHere)
    .filter(({ place, state }) => (names.length > 0 ? names.includes(place.name) : state !== 'valid'))
}

interface Plan {
  readonly survey: SiteSurvey
  readonly wanted: readonly SurveyedLeaf[]
  readonly restarts: readonly NeededRestart[]
  readonly flags: RenewFlags
  readonly written?: readonly {
    readonly place: LeafPlace
    readonly old: Certificate
    readonly hasNewKey: boolean
  }[]
  readonly proofs?: CertificateRenewal['proofs']
  readonly backups?: ReadonlyMap<string, { readonly folder: string; readonly isEmpty: boolean }>
}

function listed(plan: Plan, now: Date): Answer {
  const needs = plan.wanted.length > 0 || plan.restarts.length > 0
  const report = reportOf(plan, 'listed', now)
  return { report, exit: needs ? exitCodes.no : exitOf(plan) }
}

function settled(plan: Plan, now: Date): Answer {
  const exit = exitOf(plan)
  return { report: reportOf(plan, exit === exitCodes.done ? 'nothing-due' : 'incomplete', now), exit }
}

/** What stays undone: a node that does not answer, a certificate that somebody else signs. */
function exitOf({ survey, wanted }: Plan): ExitCode {
  if (survey.unreachable.length > 0) return exitCodes.unreachable
  return wanted.some(({ signer }) => signer === undefined) || survey.missing.length > 0
    ? exitCodes.no
    : exitCodes.done
}

function reportOf(plan: Plan, outcome: CertificateRenewal['outcome'], now: Date): CertificateRenewal {
  const { survey, wanted, restarts, written = [], proofs = [], backups = new Map(), flags } = plan
  const isHere = (node: string): boolean => flags.node.length === 0 || flags.node.includes(node)
  const certificates = survey.leaves.flatMap((leaf): CertificateRenewal['certificates'] => {
    const { place, leaf: certificate, state } = leaf
    if (!isHere(place.node)) return []
    const made = written.find((one) => isSame(one.place, place))
    const asked = wanted.find((one) => isSame(one.place, place))
    const action =
      made !== undefined ? 'renewed' : asked === undefined ? 'none' : asked.signer ? 'renew' : 'cannot'
    return [
      {
        ...{ node: place.node, name: place.name, path: place.path, subject: certificate.subject.text },
        ...{ notAfter: certificate.notAfter.toISOString(), state, action },
        ...(made && { expired: made.old.notAfter.toISOString(), newKey: made.hasNewKey }),
        ...(action === 'cannot' && hindranceWords(leaf, leaf.hindrance!)),
      },
    ]
  })
  const next =
    outcome === 'listed' && (wanted.length > 0 || restarts.length > 0) ? nextCommand(flags) : undefined
  return {
    apiVersion: 'kcert/v1',
    kind: 'CertificateRenewal',
    generatedAt: now.toISOString(),
    outcome,
    certificates,
    missing: survey.missing
      .filter(({ node }) => isHere(node))
      .map(({ node, name, path }) => ({ node, name, path, next: missingNext(name) })),
    restarts: restarts.map((one) => ({ ...one })),
    proofs: [...proofs],
    backups: [...backups].flatMap(([node, { folder, isEmpty }]) => (isEmpty ? [] : [{ node, folder }])),
    unreachable: survey.unreachable.map(({ node, why }) => ({ node, why })),
    ...(next && { next }),
  }
}

function nextCommand({ node, within }: RenewFlags): string {
  const words = [
    ...node.flatMap((one) => ['--node', one]),
    ...(within === undefined ? [] : ['--within', within]),
  ]
  return commandLine`kcert renew --all ${argumentVector(words)}`
}

function hindranceWords({ place, leaf, ca }: SurveyedLeaf, hindrance: Hindrance) {
  const { name, path } = place
  if (hindrance === 'external-ca') {
    return {
      why: `the key of its CA (${ca!.subject.text}) is on none of these nodes`,
      next: name.startsWith('kubelet')
        ? 'run kcert renew where that key is, with an inventory that has this node'
        : commandLine`create a request for the owner of that key to sign: kcert csr create --kubeadm ${name}`,
    }
  }
  return {
    why: `no CA on these nodes has signed it; its issuer is ${leaf.issuer.text}`,
    next: commandLine`whoever signed it signs it again; by whom: kcert inspect ${path}`,
  }
}

function missingNext(name: string): string {
  if (name.startsWith('kubelet')) return 'kcert kubelet doctor'
  return anewAdvice([...kubeadmLeaves, ...kubeadmKubeconfigs].find((row) => row.name === name)!)
}

function caExpired({ ca }: SurveyedLeaf): KcertError {
  return new KcertError('KCERT_RENEWAL_REFUSED', `the CA ${ca!.subject.text} has expired`, {
    why: `it ended at ${ca!.notAfter.toISOString()}, so nobody would accept what it signs; kcert renew never touches a CA`,
    next: 'give the CA and every leaf a new notAfter: kcert rotate-ca recover --dry-run',
  })
}

function agrees(
  context: Context,
  yes: boolean,
  chosen: readonly SurveyedLeaf[],
  restarts: readonly NeededRestart[],
): Promise<boolean> {
  const what = `${chosen.length} certificates are written and ${restarts.length} processes restart`
  const proposal = [
    ...chosen.map(({ place }) => `  renew    ${place.node}  ${place.name}`),
    ...restarts.map(({ node, program }) => `  restart  ${node}  ${program}`),
  ]
  return agreed(context, { yes, proposal, question: `${what}. Go on?`, code: 'KCERT_RENEWAL_REFUSED', what })
}

function isSame(a: LeafPlace, b: LeafPlace): boolean {
  return a.node === b.node && a.name === b.name
}
