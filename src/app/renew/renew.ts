import type { LeafPlace, MissingLeaf, RenewedLeaf, SurveyedLeaf } from '../../ca/renewal.ts'
import type { CertificateRenewal } from '../../ca/renewal-report.ts'
import { agreed } from '../../cli/consent.ts'
import type { Context } from '../../cli/context.ts'
import { whileStoppable } from '../../cli/interruption.ts'
import { tellLine } from '../../cli/tell-line.ts'
import { type ExitCode, exitCodes } from '../../errors/codes.ts'
import { argumentVector, commandLine, embed } from '../../errors/command-line.ts'
import { given } from '../../errors/given.ts'
import { type Advice, KcertError } from '../../errors/kcert-error.ts'
import { creationCommand, creationNote } from '../../inspection/advice.ts'
import { defaultThresholds, parseThreshold, thresholdMs } from '../../inspection/thresholds.ts'
import { counted } from '../../output/sections.ts'
import { kubeadmKubeconfigs, kubeadmLeaves } from '../../pki/kubeadm.ts'
import { bindingNotices } from '../../pki/kubeadm-organization.ts'
import type { NeededRestart, RenewalSite, SiteSurvey } from '../../renewal-io/renewing.ts'
import type { Inventory } from '../../rotation/inventory.ts'
import type { Site } from '../../site/site.ts'
import type { Certificate } from '../../x509/certificate.ts'
import { isMlDsa } from '../../x509/ml-dsa.ts'
import { inTree, inventoryOrThisMachine, withNodes } from '../rotate-ca/node-inventory.ts'

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
  /** A folder with a node's files, instead of nodes. */
  readonly root: string | undefined
}

interface Answer {
  readonly report: CertificateRenewal
  readonly exit: ExitCode
}

/**
 * Runs `kcert renew`, or shows its plan. Throws node errors, and KCERT_RENEWAL_REFUSED if a CA has expired or there is no
 * terminal to confirm on.
 */
export async function renewCertificates(context: Context, flags: RenewFlags): Promise<Answer> {
  const { clock, random, stderr } = context
  const isDue = duePolicy(flags.within, () => clock().getTime())
  const renewing = await import('../../renewal-io/renewing.ts')
  return onNodesOrTree(context, flags, async ({ site, live }) => {
    const look = (): Promise<SiteSurvey> =>
      live === undefined
        ? renewing.surveyTree(site, flags.root ?? '', isDue)
        : renewing.surveySite(live, isDue)
    const survey = await look()
    checkSeen(survey, flags)
    const wanted = wantedOf(survey, flags)
    const expiredCa = wanted.find((one) => one.hindrance === 'ca-expired')
    if (expiredCa !== undefined)
      throw new KcertError('KCERT_RENEWAL_REFUSED', `the CA ${expiredCa.ca.subject.text} has expired`, {
        why: `it expired at ${expiredCa.ca.notAfter.toISOString()}, so no client or server accepts what it signs; kcert renew never changes a CA. kcert rotate-ca recover gives the CA and every certificate a new expiry`,
        next: 'kcert rotate-ca recover --dry-run',
      })
    const chosen = wanted.filter(({ signer }) => signer !== undefined)
    const acts = flags.all || flags.names.length > 0
    const restarts = (live === undefined ? [] : renewing.neededRestarts(survey, chosen)).filter(
      ({ node }) => flags.node.length === 0 || flags.node.includes(node),
    )
    const plan = { survey, wanted, restarts, flags }
    if (!acts) return listed(plan, clock())
    if (chosen.length === 0 && restarts.length === 0) return settled(plan, clock())
    if (flags.dryRun) return { report: reportOf(plan, 'planned', clock()), exit: exitOf(plan) }
    if (!(await agrees(context, flags.yes, chosen, restarts)))
      return { report: reportOf(plan, 'declined', clock()), exit: exitCodes.no }
    return whileStoppable(
      () => 'renewed certificates are kept; run the same command again to continue',
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
        if (live !== undefined) await restartAll(live, survey, restarts, backups, tell)
        for (const node of survey.nodes) if (backups.has(node.name)) await renewing.clearIntent(site, node)
        if (live !== undefined) tell('checking the served and the accepted certificates')
        const after = await look()
        const isWritten = ({ place }: SurveyedLeaf): boolean =>
          written.some((one) => isSame(one.place, place))
        const isRestarted = ({ place }: SurveyedLeaf): boolean =>
          restarts.some(({ node, program }) => node === place.node && program === place.usedBy)
        const toProve = after.leaves.filter((leaf) => isWritten(leaf) || isRestarted(leaf))
        const proofs = live === undefined ? [] : await proveLeaves(live, after, toProve)
        const done = { ...plan, survey: after, written, proofs, backups }
        const isWhole = exitOf(plan) === exitCodes.done && proofs.every(({ ok }) => ok)
        const exit = isWhole ? exitCodes.done : exitOf(plan) === exitCodes.done ? exitCodes.no : exitOf(plan)
        return { report: reportOf(done, isWhole ? 'renewed' : 'incomplete', clock()), exit }
      },
    )
  })
}

/** Where certificates are renewed; `live` if running programs use them. */
interface Place {
  readonly site: RenewalSite
  readonly live?: Site
}

async function onNodesOrTree(
  context: Context,
  flags: RenewFlags,
  act: (place: Place) => Promise<Answer>,
): Promise<Answer> {
  const { root } = flags
  if (root !== undefined)
    return inTree(root, context, (node) => act({ site: { node: () => node, clock: context.clock } }))
  return withNodes(
    await chosenNodes(flags, context),
    context,
    (site) => act({ site, live: site }),
    flags.inventory,
  )
}

/** Returns the control planes, which are always read because they have the CA keys, and the named workers, or all. */
async function chosenNodes({ inventory: name, node }: RenewFlags, context: Context): Promise<Inventory> {
  const inventory = await inventoryOrThisMachine(name, node, context)
  const nodes = inventory.nodes.filter(
    ({ name: its, role }) => node.length === 0 || role === 'control-plane' || node.includes(its),
  )
  return { ...inventory, nodes }
}

/** Throws if no certificate was read: an empty list would suggest that everything is in order. */
function checkSeen({ nodes, unreachable, leaves, missing }: SiteSurvey, { root }: RenewFlags): void {
  const [first] = unreachable
  if (nodes.length === 0 && first !== undefined) throw first.error
  if (leaves.length + missing.length > 0) return
  const what = `no kubeadm certificates on ${nodes.map(({ name }) => name).join(', ')}`
  throw new KcertError('KCERT_FILE_NOT_FOUND', what, {
    why: 'there is no certificate in /etc/kubernetes/pki and no kubeconfig with a client certificate in /etc/kubernetes; renew on a control-plane node',
    next: root === undefined ? 'kcert renew --all-nodes' : commandLine`ls ${root}/etc/kubernetes`,
  })
}

/**
 * The warning threshold of kcert inspect. A kubelet renews its own certificate at 70 to 90 % of its validity, so that is due
 * later.
 */
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

/** Returns the named certificates, due or not; without names, all that are due. */
function wantedOf({ leaves, missing }: SiteSurvey, { names, node }: RenewFlags): SurveyedLeaf[] {
  const isHere = ({ place }: SurveyedLeaf): boolean => node.length === 0 || node.includes(place.node)
  const unknown = names.find(
    (name) => !leaves.some(({ place }) => place.name === name) && !missing.some((one) => one.name === name),
  )
  if (unknown !== undefined) {
    const known = [...new Set(leaves.map(({ place }) => place.name))]
    throw new KcertError('KCERT_USAGE', `no certificate named ${JSON.stringify(unknown)}`, {
      why: known.length === 0 ? 'there are no kubeadm certificates' : `there are: ${known.join(', ')}`,
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
  readonly written?: readonly RenewedLeaf[]
  readonly proofs?: CertificateRenewal['checks']
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

/** Returns the exit code for the rest: an unreachable node, or a certificate whose CA key is elsewhere. */
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
      made !== undefined ? 'renewed' : asked === undefined ? 'none' : asked.signer ? 'renew' : 'not-renewable'
    return [
      {
        ...{ node: place.node, name: place.name, path: place.path, subject: certificate.subject.text },
        ...{ notAfter: certificate.notAfter.toISOString(), state, action },
        ...(made && { previousNotAfter: made.old.notAfter.toISOString(), newKey: made.hasNewKey }),
        ...(action === 'not-renewable' && hindranceWords(leaf)),
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
      .map((one) => ({ node: one.node, name: one.name, path: one.path, ...missingAdvice(one, flags) })),
    restarts: restarts.map((one) => ({ ...one })),
    checks: [...proofs],
    backups: [...backups].flatMap(([node, { folder, isEmpty }]) => (isEmpty ? [] : [{ node, folder }])),
    unreachable: survey.unreachable.map(({ node, why }) => ({ node, why })),
    ...(flags.root !== undefined && { root: flags.root }),
    ...(next && { next }),
  }
}

function nextCommand({ node, within, root }: RenewFlags): string {
  const words = [
    ...node.flatMap((one) => ['--node', one]),
    ...(within === undefined ? [] : ['--within', within]),
    ...(root === undefined ? [] : ['--root', root]),
  ]
  return commandLine`kcert renew --all ${argumentVector(words)}`
}

function hindranceWords(one: SurveyedLeaf) {
  const { name, path } = one.place
  if (one.hindrance === 'external-ca') {
    return {
      why: `the private key of its CA (${one.ca.subject.text}) is on none of these nodes; ${
        name.startsWith('kubelet')
          ? 'renew with an inventory that has this node and the node with that key'
          : 'create a request, and have the owner of that key sign it'
      }`,
      next: name.startsWith('kubelet')
        ? 'kcert renew --all --all-nodes'
        : commandLine`kcert csr create --kubeadm ${name}`,
    }
  }
  const { signatureAlgorithm } = one.leaf
  if (isMlDsa(signatureAlgorithm)) {
    return {
      why: `it is signed with ${signatureAlgorithm}, and kcert signs only with RSA, ECDSA and Ed25519 keys`,
      next: commandLine`kcert inspect ${path}`,
    }
  }
  return {
    why: `no CA on these nodes has signed it; its issuer is ${one.leaf.issuer.text}, which must sign it again`,
    next: commandLine`kcert inspect ${path}`,
  }
}

/** Returns how to create the files of a missing leaf. */
export function missingAdvice({ name, present }: MissingLeaf, { root }: Pick<RenewFlags, 'root'>): Advice {
  const row = [...kubeadmLeaves, ...kubeadmKubeconfigs].find((one) => one.name === name)
  if (row === undefined || name.startsWith('kubelet')) {
    const tree = root === undefined ? undefined : embed(commandLine`--root ${root}`)
    return { next: commandLine`kcert kubelet doctor ${tree}` }
  }
  // kubeadm uses the host name and addresses of the machine that it runs on, even after chroot.
  return root === undefined
    ? {
        ...given({ fix: bindingNotices(row)[0] }),
        next: creationCommand(row, row.kind === 'leaf' ? present : undefined),
      }
    : { fix: `start the node, and ${creationNote(row)}` }
}

function agrees(
  context: Context,
  yes: boolean,
  chosen: readonly SurveyedLeaf[],
  restarts: readonly NeededRestart[],
): Promise<boolean> {
  const what = `${counted(chosen.length, 'certificate')} will be written; ${
    restarts.length === 0
      ? 'nothing restarts'
      : `${counted(restarts.length, 'process', 'processes')} will restart`
  }`
  const proposal = [
    ...chosen.map(({ place }) => `  renew    ${place.node}  ${place.name}`),
    ...restarts.map(({ node, program }) => `  restart  ${node}  ${program}`),
  ]
  return agreed(context, {
    yes,
    proposal,
    question: `${what}. Continue?`,
    code: 'KCERT_RENEWAL_REFUSED',
    what,
  })
}

function isSame(a: LeafPlace, b: LeafPlace): boolean {
  return a.node === b.node && a.name === b.name
}
