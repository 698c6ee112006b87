import type { ServiceAccountKeyPlan } from '../../rotation/service-account-key/report.ts'
import { indentedLines, joinSections } from '../sections.ts'
import { table } from '../table.ts'
import { printable } from '../terminal.ts'
import { minuteOf } from '../time.ts'
import type { View } from '../view.ts'
import { placesText, splitPlace } from './places.ts'
import { durationText } from './plan.ts'
import { blockerLines } from './status.ts'

type KeyFile = ServiceAccountKeyPlan['apiServers'][number]['keyFiles'][number]

/** Returns the plan: keys by process, tokens by key, steps with their time, and what blocks the rotation. */
export function renderServiceAccountKeyPlan(plan: ServiceAccountKeyPlan, view: View): string {
  const { apiServers, controllerManagers, tokens, mountedTokens, restarts, notes, blockers } = plan
  const { paint } = view
  // The key that signs now is nearly everywhere, and its ID has 43 characters.
  const named = (keyId: string) => (keyId === plan.keyId ? 'this key' : keyId)
  return joinSections([
    [
      paint.heading('service account key rotation plan; nothing was written'),
      `key ID: ${printable(plan.keyId ?? 'not the same on all API servers')}`,
    ],
    table(
      view,
      [...apiServers.map(apiServerRow), ...controllerManagers.map(managerRow)],
      [
        { title: 'PROCESS', cell: ({ name }) => name },
        { title: 'SIGNS WITH', cell: ({ signs }) => named(signs) },
        { title: 'VERIFIES', cell: ({ served }) => served.map(named).join(', ') },
        { title: 'KEY FILES', cell: ({ files }) => files, dropRank: 1 },
        { title: 'SHUTDOWN DELAY', cell: ({ delay }) => delay, dropRank: 2 },
      ],
    ),
    table(view, mountedRows(mountedTokens), [
      { title: 'MOUNTED TOKENS', cell: ({ count }) => count },
      { title: 'KEY ID', cell: ({ keyId }) => named(keyId) },
      { title: 'NODES', cell: ({ nodes }) => nodes },
    ]),
    table(view, tokenRows(tokens), [
      { title: 'TOKEN IN', cell: ({ kind }) => kind },
      {
        title: 'SERVICE ACCOUNT',
        cell: ({ subject }) => subject.replace(/^system:serviceaccount:([^:]*):/, '$1/'),
      },
      {
        title: 'EXPIRES (UTC)',
        cell: ({ expirationTimestamp: time }) => (time === undefined ? 'never' : minuteOf(time)),
        dropRank: 2,
      },
      { title: 'KEY ID', cell: ({ keyId = 'none' }) => named(keyId), dropRank: 3 },
      { title: 'OWNER', cell: ({ owner }) => owner ?? 'unknown', dropRank: 1 },
      { title: 'LOCATION', cell: ({ location }) => location },
    ]),
    verifierLines(plan, view),
    ...plan.steps.map((step, index) => stepLines(step, index + 1, view)),
    table(view, restartRows(restarts), [
      { title: 'NODES', cell: ({ nodes }) => nodes },
      { title: 'KUBE-APISERVER RESTARTS', cell: ({ kubeApiserver }) => `${kubeApiserver}` },
      { title: 'KUBE-CONTROLLER-MANAGER', cell: ({ kubeControllerManager }) => `${kubeControllerManager}` },
      { title: 'KUBELET', cell: ({ kubelet }) => `${kubelet}` },
    ]),
    notes.flatMap((note) => indentedLines(`note: ${note}`, '', view)),
    blockers.length === 0 ? ['nothing blocks the rotation'] : blockerLines(blockers, view),
    [
      `about ${durationText(plan.estimatedSeconds)} in total, estimated from measurements`,
      'next: kcert rotate-sa-key --phase 1 --dry-run',
    ],
  ])
}

function apiServerRow(one: ServiceAccountKeyPlan['apiServers'][number]) {
  const { node, signingKey, signingEndpoint, served, servedUnread, keyFiles, shutdownDelay = 'none' } = one
  return {
    name: `${node}/kube-apiserver`,
    signs: signingEndpoint === undefined ? idsText(signingKey) : 'external signer',
    served: servedUnread === undefined ? served : ['not read'],
    files: keyFiles.map(({ path }) => path).join(', '),
    delay: shutdownDelay,
  }
}

function managerRow({ node, signingKey }: ServiceAccountKeyPlan['controllerManagers'][number]) {
  const files = signingKey?.path ?? ''
  return { name: `${node}/kube-controller-manager`, signs: idsText(signingKey), served: [], files, delay: '' }
}

function idsText(file: KeyFile | undefined): string {
  if (file === undefined) return 'no key'
  return file.unread === undefined ? file.keyIds.slice(0, 1).join() : 'not read'
}

/** Nodes with tokens of the same key share a row. */
function mountedRows(nodes: ServiceAccountKeyPlan['mountedTokens']) {
  const parts = nodes.flatMap(({ node, keys, unread }) => [
    ...keys.map(({ keyId = 'none', tokens }) => ({ node, keyId, tokens })),
    ...(unread === undefined ? [] : [{ node, keyId: `not read: ${unread}`, tokens: 0 }]),
  ])
  return [...Map.groupBy(parts, ({ keyId }) => keyId)].map(([keyId, its]) => ({
    keyId,
    count: `${its.reduce((sum, { tokens }) => sum + tokens, 0)}`,
    nodes: nodesText(its),
  }))
}

function nodesText(its: readonly { readonly node?: string }[]): string {
  const names = its.flatMap(({ node }) => node ?? [])
  return placesText(names, 4)
}

/** The same file of several nodes, such as the kubeconfig of a CNI plugin, has one row. It shows the earliest expiry. */
function tokenRows(tokens: ServiceAccountKeyPlan['tokens']): ServiceAccountKeyPlan['tokens'] {
  const groups = Map.groupBy(tokens, ({ kind, location, subject, keyId }) => {
    const { what = '' } = kind === 'file' ? splitPlace(location) : { what: location }
    return JSON.stringify([kind, what, subject, keyId])
  })
  return [...groups.values()].flatMap((its) => {
    const [first] = its.toSorted((a, b) => order(a.expirationTimestamp) - order(b.expirationTimestamp))
    if (first === undefined || its.length === 1) return its
    const { what = '' } = splitPlace(first.location)
    return {
      ...first,
      location: `${what} on ${nodesText(its.map(({ location }) => splitPlace(location)))}`,
    }
  })
}

function order(time: string | undefined): number {
  return time === undefined ? Number.POSITIVE_INFINITY : Date.parse(time)
}

function restartRows(restarts: ServiceAccountKeyPlan['restarts']) {
  const groups = Map.groupBy(restarts, ({ node: _, ...counts }) => JSON.stringify(counts))
  return [...groups.values()].flatMap((its) =>
    its.slice(0, 1).map((first) => ({
      ...first,
      nodes: nodesText(its),
    })),
  )
}

function verifierLines(
  { externalVerifiers: { mayExist, why } }: ServiceAccountKeyPlan,
  view: View,
): string[] {
  if (!mayExist) return ['no sign of programs other than API servers that verify tokens']
  return [
    'programs other than API servers may verify tokens:',
    ...why.flatMap((reason) => indentedLines(reason, '  ', view)),
  ]
}

function stepLines(step: ServiceAccountKeyPlan['steps'][number], number: number, view: View): string[] {
  const { title, phases, actions, check, waitSeconds, estimatedSeconds } = step
  const [first = 1, last = first] = [phases[0], phases.at(-1)]
  const waits = waitSeconds > 0 ? ` and ${durationText(waitSeconds)} of waiting` : ''
  return [
    `${view.paint.heading(`step ${number}`)} ${title} (${first === last ? `phase ${first}` : `phases ${first} to ${last}`}); about ${durationText(estimatedSeconds)}${waits}`,
    ...actions.flatMap((action) => indentedLines(printable(action), '  ', view)),
    ...indentedLines(`complete when: ${printable(check)}`, '  ', view),
  ]
}
